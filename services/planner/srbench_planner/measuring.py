"""What the planner shows of its queue to Prometheus, and to whatever sets the number of executors by it."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit import metrics

from srbench_planner.cells import CellState
from srbench_planner.queue import WorkQueue

_SHOWN = {"queued": CellState.QUEUED, "leased": CellState.LEASED}


def watch(queue: WorkQueue) -> None:
    """Shows how much work waits and how much is handed out."""

    def cells() -> Mapping[str, float]:
        runs = list(queue.runs.values())
        return {name: sum(run.counts[state] for run in runs) for name, state in _SHOWN.items()}

    def wanted() -> float:
        # What executors could work on now: a run never has more in hand than its concurrency.
        return sum(
            min(run.concurrency, run.counts[CellState.QUEUED] + run.counts[CellState.LEASED])
            for run in list(queue.runs.values())
        )

    metrics.readings("srbench_queue_cells", "Cells of runs that have not ended, by state.", "state", cells)
    metrics.gauge("srbench_queue_runs", "Runs that have not ended.", lambda: len(queue.runs))
    metrics.gauge("srbench_queue_wanted_cells", "Cells that executors could work on at once.", wanted)
