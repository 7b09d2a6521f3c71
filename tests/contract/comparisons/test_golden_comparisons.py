"""Whole evaluations through the service: recorded as facts, read back, compared; the figures are the released ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import views

from tests.goldens import GOLDENS, OWN, read_golden, same


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
