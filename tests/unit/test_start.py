"""What is slow to import and not needed for a start is not imported by one: six processes start at once, on few cores."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("numpy", "pyarrow", "alembic", "httpx", "huggingface_hub", "yaml", "rich", "grpc_reflection.v1alpha")
MODULES = (
    *("srbench_planner.__main__", "srbench_accounting.__main__", "srbench_grader.__main__", "srbench_executor.__main__"),
    *("srbench_gateway.__main__", "srbench_cli.commands.serve"),
)


@pytest.mark.parametrize("module", MODULES)
def test_a_start_imports_nothing_slow_that_it_does_not_need(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set({SLOW!r}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []
