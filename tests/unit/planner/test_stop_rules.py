"""When a run stops early and how it ends."""

from __future__ import annotations

import pytest
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.rates import TargetLimits
from srbench_planner.run_cells import RunCells
from srbench_planner.stop_rules import early_stop, run_end

NAMES = ("small", "large")


def run(cases: int, targets: int = 2, most: int = 25) -> RunCells:
    return RunCells(
        number=1,
        run_id="r",
        matrix=CellMatrix(cases, targets),
        targets=[TargetLimits(key=(str(index),)) for index in range(targets)],
        concurrency=9,
        max_failed_cells=most,
        deadline=1e9,
    )


def end(cells: RunCells, target: int, count: int, state: CellState, reason: str = "", start: int = 0) -> None:
    for case in range(start, start + count):
        cells.end(case * cells.matrix.target_count + target, state, reason)


def test_one_failed_cell_ends_no_run() -> None:
    cells = run(1)
    end(cells, 0, 1, CellState.FAILED, "http_error")
    assert early_stop(cells) == ""
    end(cells, 1, 1, CellState.DONE)
    assert run_end(cells, NAMES) == ("completed", "", "")


def test_the_tolerance_ends_a_run_of_many_different_failures() -> None:
    cells = run(100, most=3)
    end(cells, 0, 1, CellState.DONE)
    end(cells, 0, 2, CellState.FAILED, "http_error", start=1)
    assert early_stop(cells) == ""
    end(cells, 0, 1, CellState.INTERRUPTED, "executor_lost", start=3)
    assert early_stop(cells) == "too_many_failures"
    cells.stop("failed", "too_many_failures", at_once=False)
    ended = run_end(cells, NAMES)
    assert (ended.status, ended.reason) == ("failed", "too_many_failures")
    assert ended.error == "3 of 200 cells failed, as many as limits.max_failed_cells tolerates"


def test_a_target_that_fails_ten_times_in_one_way_ends_the_run() -> None:
    cells = run(100)
    end(cells, 1, 9, CellState.FAILED, "auth_refused")
    assert early_stop(cells) == ""
    end(cells, 1, 1, CellState.FAILED, "auth_refused", start=9)
    assert early_stop(cells) == "target_failing"


@pytest.mark.parametrize(("state", "reason"), [(CellState.DONE, ""), (CellState.FAILED, "idle_timeout")])
def test_one_other_end_of_that_target_lets_the_run_go_on(state: CellState, reason: str) -> None:
    cells = run(100)
    end(cells, 1, 1, state, reason)
    end(cells, 1, 20, CellState.FAILED, "auth_refused", start=1)
    assert early_stop(cells) == ""


def test_a_small_run_of_which_a_target_never_answered_is_no_completed_run() -> None:
    cells = run(3)
    end(cells, 0, 3, CellState.DONE)
    end(cells, 1, 3, CellState.FAILED, "connect_failed")
    assert early_stop(cells) == "target_failing"
    cells.stop("failed", "target_failing", at_once=False)
    ended = run_end(cells, NAMES)
    assert ended == ("failed", "target_failing", "every cell of large that ended failed alike: connect_failed")


@pytest.mark.parametrize("reason", ["budget_exhausted", "storage_full"])
def test_a_cell_that_found_nothing_left_ends_the_run(reason: str) -> None:
    cells = run(5)
    end(cells, 0, 1, CellState.FAILED, reason)
    assert early_stop(cells) == reason


def test_an_interrupted_cell_makes_an_interrupted_run() -> None:
    cells = run(1)
    end(cells, 0, 1, CellState.INTERRUPTED, "executor_lost")
    end(cells, 1, 1, CellState.DONE)
    assert run_end(cells, NAMES)[:2] == ("interrupted", "executor_lost")


def test_a_stop_that_stopped_nothing_does_not_count() -> None:
    cells = run(1)
    end(cells, 0, 1, CellState.DONE)
    cells.held.clear()
    cells.lease(1, 1, 15.0)
    cells.stop("cancelled", "cancelled", at_once=True)
    cells.end(1, CellState.DONE, "")
    assert run_end(cells, NAMES).status == "completed"


def test_a_cancel_goes_before_an_earlier_stop_but_not_after() -> None:
    cells = run(5)
    cells.stop("failed", "too_many_failures", at_once=False)
    cells.stop("cancelled", "cancelled", at_once=True)
    assert run_end(cells, NAMES)[:2] == ("cancelled", "cancelled")
    cells.stop("failed", "deadline", at_once=True)
    assert run_end(cells, NAMES)[:2] == ("cancelled", "cancelled")
