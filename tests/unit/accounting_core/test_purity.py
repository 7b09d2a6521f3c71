"""The accounting core knows no message, no file, no clock and no network."""

from __future__ import annotations

import ast
from pathlib import Path

import srbench_accounting

PACKAGE = Path(srbench_accounting.__file__).parent
CORE = (
    "band",
    "bootstrap",
    "cell_costs",
    "claims",
    "columns",
    "comparable",
    "compare",
    "comparing",
    "continuity",
    "diagnostics",
    "dialects",
    "intervals",
    "limitations",
    "metrics",
    "paired",
    "pairs",
    "percentiles",
    "plain_usage",
    "pricing",
    "receipts",
    "report",
    "reservation",
    "routing",
    "routers",
    "routing_flow",
    "run_times",
    "saving_interval",
    "savings",
    "settlement",
    "usage",
    "usage_fields",
    "verdicts",
)
ALLOWED = {
    "__future__",
    "collections.abc",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "numpy",
    "numpy.typing",
    "random",
    "srbench_kit.adaptive",
    "srbench_kit.errors",
    "srbench_kit.saying",
    "typing",
}


def imported(name: str) -> set[str]:
    tree = ast.parse((PACKAGE / f"{name}.py").read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_core_files_import_core_files_and_arithmetic_only() -> None:
    own = {f"srbench_accounting.{name}" for name in CORE}
    for name in CORE:
        assert imported(name) <= ALLOWED | own, name
