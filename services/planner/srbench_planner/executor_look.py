"""What a deployment's inspection shows of executors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from srbench.v1 import operations_service_pb2 as pb
from srbench_kit.operations import Look, failed, ok, warning

from srbench_planner.scheduler import Scheduler

REMEDY = "start such an executor, or a grader beside it that has what is missing; docs/operations.md says how"


def look(scheduler: Scheduler, ready: asyncio.Event) -> tuple[str, Look]:
    """Whether executors are there, and whether each run that goes on has one that can take its cells."""

    async def look(_request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
        if not ready.is_set():
            # Another planner has the queue, and knows.
            return []
        found = [
            failed("executors", f"run {run.run_id} waits for {'; '.join(waiting)}", REMEDY)
            for run in list(scheduler.queue.runs.values())
            if (waiting := scheduler.presence.waiting_for(run))
        ]
        count = scheduler.presence.count()
        if not count and not found:
            return [warning("executors", "no executor asks for cells", REMEDY)]
        asking = "1 executor asks" if count == 1 else f"{count} executors ask"
        return found or [ok("executors", f"{asking} for cells, and no run waits for another kind")]

    return "executors", look
