"""A planner that starts again under another wall clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from srbench.v1 import plan_pb2
from srbench_planner import runs
from srbench_planner.cells import CellMatrix

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("set_by_us", "left_s"), [(0, 1500.0), (-HOUR_US, 1740.0), (HOUR_US, 1500.0 - 3600.0), (100_000_000, 1400.0)]
)
def test_a_clock_that_was_set_back_gives_a_run_no_more_time_than_when_it_was_saved_last(
    monkeypatch: pytest.MonkeyPatch, set_by_us: int, left_s: float
) -> None:
    """It may take 1800 s, was saved after 60 s, and the planner starts again after 300 s."""
    began = 1_790_000_000_000_000
    row = SimpleNamespace(
        number=1, id="r", concurrency=0, paused=0, deadline_us=began + 1_800_000_000, update_us=began + 60_000_000
    )
    monkeypatch.setattr(runs, "now_us", lambda: began + 300_000_000 + set_by_us)
    scheduler = cast("Any", SimpleNamespace(clock=lambda: 5000.0))
    plan = plan_pb2.Plan(limits=plan_pb2.Limits(concurrency=1), case_count=1)
    plan.targets.add(id="t")
    cells = runs.run_cells(row, CellMatrix(1, 1), plan, scheduler)
    assert cells.deadline - 5000.0 == pytest.approx(left_s)
