"""Whole evaluations through the service: recorded as facts, read back, compared; the figures are the released ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import views

TESTS = Path(__file__).parents[2]
SHARED = next((folder / "shared" for folder in TESTS.parents if (folder / "shared" / "goldens").is_dir()), None)
OWN = sorted((TESTS / "unit" / "accounting_core" / "goldens").glob("*.json"))
GOLDENS = [*OWN, *(sorted((SHARED / "goldens").glob("*.json")) if SHARED else [])]


def same(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, dict):
        for name, item in theirs.items():
            if name.endswith("_reason_given"):
                assert item is (ours[name.removesuffix("_given")] is not None), f"{where}.{name}"
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


def read_golden(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
async def test_a_comparison_through_the_service_has_the_released_figures(
    stand: Any, evaluation_of: Callable[..., Any], path: Path
) -> None:
    golden = read_golden(path)
    for side in ("baseline", "candidate"):
        await stand.add(evaluation_of(golden, side))
    request = pb.CompareRunsRequest(baseline_run_id="baseline", candidate_run_ids=["candidate"])
    shown = views.deep(await stand.gateway.CompareRuns(request))
    expected = golden["compare"]
    # Times go through whole microseconds and nanoseconds, and metric rows of the goldens have times as floats.
    same(shown, expected, golden["scenario"])


def test_there_are_goldens_of_our_own() -> None:
    assert len(OWN) >= 3
