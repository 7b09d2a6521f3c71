"""What an operator changes of a run that goes on: pause, resume, concurrency. The plan and its digest never change."""

from __future__ import annotations

from collections.abc import Callable

from srbench.v1 import planner_service_pb2 as pb
from srbench_kit.auth import Actor
from srbench_kit.errors import Conflict, InvalidInput

from srbench_planner.run_cells import RunCells
from srbench_planner.runs import Runs
from srbench_planner.scheduler import Scheduler

MAX_CONCURRENCY = 100_000


class RunControl:
    """Changes runs in hand; each change is durable, and an event, before it is answered."""

    def __init__(self, runs: Runs, scheduler: Scheduler) -> None:
        self._runs = runs
        self._scheduler = scheduler

    async def pause(self, actor: Actor, run_id: str) -> pb.Run:
        """See `PlannerService.PauseRun`."""

        def change(cells: RunCells) -> None:
            if not cells.paused:
                self._scheduler.pause(cells, actor.id)

        return await self._change(actor, run_id, change)

    async def resume(self, actor: Actor, run_id: str) -> pb.Run:
        """See `PlannerService.ResumeRun`."""

        def change(cells: RunCells) -> None:
            if cells.paused:
                self._scheduler.resume(cells, actor.id)

        return await self._change(actor, run_id, change)

    async def set_concurrency(self, actor: Actor, run_id: str, concurrency: int) -> pb.Run:
        """See `PlannerService.SetRunConcurrency`."""
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise InvalidInput(
                "BAD_FIELD", f"concurrency is {concurrency}; expected 1 to {MAX_CONCURRENCY}", field="concurrency"
            )

        def change(cells: RunCells) -> None:
            if cells.concurrency != concurrency:
                self._scheduler.set_concurrency(cells, concurrency, actor.id)

        return await self._change(actor, run_id, change)

    async def _change(self, actor: Actor, run_id: str, change: Callable[[RunCells], None]) -> pb.Run:
        run = await self._runs.in_hand(actor, run_id)
        if run is None or run.cells.stop_status or not run.cells.open_count:
            how = "is being stopped" if run is not None else "has ended or is a replay"
            raise Conflict("RUN_ENDED", f"run {run_id} {how}; expected one that goes on", run_id=run_id)
        change(run.cells)
        # Also when nothing changed: the same change may be on its way to the tables for another caller.
        await self._scheduler.save()
        return self._runs.message(await self._runs.row(actor, run_id))
