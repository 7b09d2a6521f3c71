"""Who may import whom: services call each other over the wire only, and cores know nothing of the outside world."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "srbench_planner": ROOT / "services/planner/srbench_planner",
    "srbench_executor": ROOT / "services/executor/srbench_executor",
    "srbench_grader": ROOT / "services/grader/srbench_grader",
    "srbench_accounting": ROOT / "services/accounting/srbench_accounting",
    "srbench_gateway": ROOT / "gateway/srbench_gateway",
    "srbench_cli": ROOT / "cli/srbench_cli",
    "srbench_testbed": ROOT / "services/testbed/srbench_testbed",
    "srbench_kit": ROOT / "services/kit/srbench_kit",
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


def modules() -> list[tuple[str, Path]]:
    return [(name, path) for name, root in PACKAGES.items() for path in sorted(root.rglob("*.py"))]


@pytest.mark.parametrize(("package", "path"), modules(), ids=lambda value: getattr(value, "stem", value))
def test_a_process_imports_no_other_process(package: str, path: Path) -> None:
    foreign = {name.split(".")[0] for name in imports(path)} & (set(PACKAGES) - {package, "srbench_kit"})
    assert not foreign, f"{path.relative_to(ROOT)} imports {foreign}"


# The outside world: files of rules import none of it.
OUTSIDE = {"grpc", "httpx", "sqlalchemy", "asyncio", "socket", "subprocess", "starlette", "uvicorn", "pyarrow", "time"}
CORES = {
    "srbench_accounting": ("usage", "pricing", "reservation", "report", "compare", "intervals"),
    "srbench_grader": ("choice", "grid"),
    "srbench_planner": ("selection", "plan_identity", "sampling"),
    "srbench_kit": ("canonical", "errors", "sse", "completion"),
}
CORE_FILES = [PACKAGES[package] / f"{name}.py" for package, names in CORES.items() for name in names]


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda path: path.stem)
def test_a_core_file_knows_nothing_of_the_outside(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & OUTSIDE
