"""When a run is stopped early, and how it ends. Pure.

Every run ends with every cell in a terminal state with a reason:
- `completed`: every cell ended by its own execution, done or failed.
- `failed`: it was stopped early. `too_many_failures`: as many cells failed as `limits.max_failed_cells` says.
  `target_failing`: all ended cells of one target failed for one reason, at least ten of them, or all of its cells where it
  has fewer; a single cell never counts, for one failure ends no run. `budget_exhausted`, `storage_full`: a cell said so.
  `deadline`: `limits.max_run_seconds` passed. `cases_unavailable`: the bound dataset cannot be read any more.
- `cancelled`: somebody cancelled it before its last cell had ended by itself.
- `interrupted`: nothing stopped it, but the end of at least one dispatched cell is unknown, because its executor was lost.
A stop that came too late to stop any cell does not change how the run ends; only `target_failing` does, since a run of
which one target never answered has compared nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from srbench_planner.cells import CellState
from srbench_planner.run_cells import RunCells

SAME_FAILURE_CELLS = 10
LEAST_FAILURES = 2
FATAL_REASONS = ("budget_exhausted", "storage_full")
# Reasons of cells that ended because the run was ending.
STOPPED_REASONS = frozenset({"cancelled", "run_stopped", "deadline", "deadline_exceeded", *FATAL_REASONS})

_SENTENCES = {
    "too_many_failures": "{failed} of {total} cells failed, as many as limits.max_failed_cells tolerates",
    "target_failing": "every cell of {target} that ended failed alike: {why}",
    "budget_exhausted": "the budget limits.max_cost_usd does not allow another call",
    "storage_full": "the store has no space left",
    "deadline": "limits.max_run_seconds passed",
    "cases_unavailable": "the cases of the plan cannot be read any more",
    "cancelled": "the run was cancelled",
    "executor_lost": "an executor was lost while {interrupted} dispatched cells were open; what became of those is unknown",
}


class RunEnd(NamedTuple):
    """How a run ended: its status, a stable reason, a sentence."""

    status: str
    reason: str
    error: str


def early_stop(run: RunCells) -> str:
    """The reason for which `run` has to stop now; empty when it may go on."""
    for cell in run.newly_failed:
        if run.reasons.get(cell) in FATAL_REASONS and run.states[cell] == CellState.FAILED:
            return run.reasons[cell]
    if failing_target(run) is not None:
        return "target_failing"
    if run.open_count and run.counts[CellState.FAILED] + run.counts[CellState.INTERRUPTED] >= run.max_failed_cells:
        return "too_many_failures"
    return ""


def failing_target(run: RunCells) -> int | None:
    """The position of a target whose ended cells all failed for one reason; `None` when there is none."""
    for index, tally in enumerate(run.tallies):
        enough = max(LEAST_FAILURES, min(SAME_FAILURE_CELLS, tally.total))
        if tally.ended >= enough and tally.failed == tally.ended and len(tally.reasons) == 1:
            return index
    return None


def run_end(run: RunCells, target_ids: Sequence[str]) -> RunEnd:
    """How `run`, whose cells have all ended, ended. `target_ids` name the plan's targets in order."""
    stopped = run.stop_reason == "target_failing" or any(
        run.states[cell] == CellState.CANCELLED or reason in STOPPED_REASONS for cell, reason in run.reasons.items()
    )
    if run.stop_status and stopped:
        return _end(run, run.stop_status, run.stop_reason, target_ids)
    if run.counts[CellState.INTERRUPTED]:
        return _end(run, "interrupted", "executor_lost", target_ids)
    if run.counts[CellState.CANCELLED]:
        return _end(run, "cancelled", "cancelled", target_ids)
    return RunEnd("completed", "", "")


def _end(run: RunCells, status: str, reason: str, target_ids: Sequence[str]) -> RunEnd:
    failed = run.counts[CellState.FAILED] + run.counts[CellState.INTERRUPTED]
    target = failing_target(run)
    facts = {
        "failed": failed,
        "total": run.total,
        "interrupted": run.counts[CellState.INTERRUPTED],
        "target": "a target" if target is None else target_ids[target],
        "why": "" if target is None else next(iter(run.tallies[target].reasons)),
    }
    return RunEnd(status, reason, _SENTENCES.get(reason, reason).format(**facts))
