"""What calls are doing now, told once a second; and how late the event loop runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.times import fill_time

from srbench_executor.facts import FactStream
from srbench_executor.work import Cell

REPORT_S = 1.0
_STEP_S = 0.1


def describe(cell: Cell) -> pb.CallActivity | None:
    """What a cell's call is doing; `None` when it has none."""
    if cell.key is None:
        return None
    entry = pb.CallActivity(key=cell.key)
    call = cell.call
    if call is not None:
        entry.phase = call.phase
        fill_time(entry.phase_start_time, int(call.phase_since * 1e9))
        entry.received_bytes = call.body.size
        if call.http_status is not None:
            fill_time(entry.last_activity_time, int((time.time() - call.quiet_s) * 1e9))
    elif cell.grading_since:
        entry.phase = "grading"
        fill_time(entry.phase_start_time, int(cell.grading_since * 1e9))
    else:
        return None
    return entry


class Activity:
    """Reports to accounting and measures the loop: `loop_lag_s` is the largest delay of the last second."""

    def __init__(self, executor_id: str, facts: FactStream, cells: Callable[[], Iterable[Cell]]) -> None:
        self._executor_id = executor_id
        self._facts = facts
        self._cells = cells
        self.loop_lag_s = 0.0

    async def run(self) -> None:
        """Once a second."""
        loop = asyncio.get_running_loop()
        while True:
            worst = 0.0
            for _ in range(round(REPORT_S / _STEP_S)):
                due = loop.time() + _STEP_S
                await asyncio.sleep(_STEP_S)
                worst = max(worst, loop.time() - due)
            self.loop_lag_s = worst
            calls = [entry for cell in self._cells() if (entry := describe(cell)) is not None]
            if calls:
                self._facts.report_activity(pb.ActivityReport(executor_id=self._executor_id, calls=calls))
