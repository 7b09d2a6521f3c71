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


def loaded_with(name: str, path: Path) -> set[str]:
    """The modules of ours that `path` imports when it is itself imported: not inside functions, not for types alone."""
    found = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            waiting.append(node)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(name):
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_needs_itself_to_be_imported(package: str) -> None:
    root = PACKAGES[package].parent
    names = {".".join(path.relative_to(root).with_suffix("").parts): path for path in PACKAGES[package].rglob("*.py")}
    needs = {name: loaded_with(package, path) & set(names) for name, path in names.items()}
    # Those that need nothing are taken away, again and again; what is left stands in a circle or behind one.
    while ready := {name for name, needed in needs.items() if not needed & set(needs)}:
        needs = {name: needed for name, needed in needs.items() if name not in ready}
    assert needs == {}


# The outside world: files of rules import none of it. Accounting's core is held to more, in `test_purity.py`.
OUTSIDE = {"grpc", "httpx", "sqlalchemy", "asyncio", "socket", "subprocess", "starlette", "uvicorn", "pyarrow", "time"}
CORES = {
    "srbench_grader": ("choice", "grid"),
    "srbench_planner": ("selection", "plan_identity", "sampling"),
    "srbench_kit": ("canonical", "errors", "sse", "completion"),
}
CORE_FILES = [PACKAGES[package] / f"{name}.py" for package, names in CORES.items() for name in names]


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda path: path.stem)
def test_a_core_file_knows_nothing_of_the_outside(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & OUTSIDE
