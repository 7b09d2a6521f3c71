"""Figures and cases with known values: those kept beside the tests, and those of a folder `shared` beside the checkout."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
SHARED = next((folder / "shared" for folder in TESTS.parents if (folder / "shared" / "goldens").is_dir()), None)
OWN = sorted((TESTS / "unit" / "accounting_core" / "goldens").glob("*.json"))
GOLDENS = [*OWN, *(sorted((SHARED / "goldens").glob("*.json")) if SHARED else [])]


def read_golden(path: Path) -> Any:
    return json.loads(path.read_text())


def same(ours: Any, theirs: Any, where: str) -> None:
    """Asserts that our figures are those of a golden: floats within 1e-9, all else exactly."""
    if isinstance(theirs, dict):
        for name, item in theirs.items():
            if name.endswith("_reason_given"):
                # The goldens leave sentences out and say only whether there was one.
                given = ours[name.removesuffix("_given")]
                assert item is (given is not None), f"{where}.{name}: {given!r}"
            elif name in ours or item is not None:
                same(ours[name], item, f"{where}.{name}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for index, item in enumerate(theirs):
            same(ours[index], item, f"{where}[{index}]")
    elif isinstance(theirs, float) and ours is not None:
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9), f"{where}: {ours} is not {theirs}"
    else:
        assert ours == theirs, f"{where}: {ours} is not {theirs}"


def shared_cases(kind: str) -> list[dict[str, Any]]:
    """The shared cases of one kind; skips the test where there is no shared folder."""
    if SHARED is None:
        pytest.skip("there are no shared cases beside this checkout")
    found = [json.loads(path.read_text()) for path in sorted((SHARED / "cases").glob("*.json"))]
    wanted = [case for case in found if case["kind"] == kind]
    assert wanted, f"no shared case is of kind {kind}"
    return wanted
