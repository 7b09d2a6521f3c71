"""All of `PlannerService`: targets, plans and runs, and beside them the catalog and datasets."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from srbench.v1 import power_pb2

from srbench_planner import power_convert
from srbench_planner.catalog import Catalog
from srbench_planner.dataset_servicer import DatasetServicer
from srbench_planner.datasets import DatasetStore
from srbench_planner.freeze import Freezer
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.loop_servicer import LoopParts, LoopServicer
from srbench_planner.plans import Plans
from srbench_planner.ports import Benchmarks
from srbench_planner.preparation import PreparationJobs
from srbench_planner.prerequisites import Grader, Runners
from srbench_planner.runs import Runs
from srbench_planner.scheduler import Scheduler
from srbench_planner.servicer import Context, PlanServicer
from srbench_planner.target_registry import TargetRegistry

PlanParts: TypeAlias = tuple[TargetRegistry, Freezer, Plans, Runs, Scheduler]
DatasetParts: TypeAlias = tuple[Catalog, DatasetStore, PreparationJobs]
NeedParts: TypeAlias = tuple[Benchmarks, HiddenParts, Grader, Runners]


class PlannerServicer(PlanServicer, LoopServicer, DatasetServicer):
    """Each part keeps its own things; none knows of the others'."""

    def __init__(self, plans: PlanParts, datasets: DatasetParts, needs: NeedParts, loop: LoopParts) -> None:
        benchmarks, hidden, grader, runners = needs
        PlanServicer.__init__(self, *plans, benchmarks=benchmarks, hidden=hidden, grader=grader, runners=runners)
        LoopServicer.__init__(self, loop)
        DatasetServicer.__init__(self, *datasets)
        self._known = datasets[0]

    async def EstimatePower(self, request: power_pb2.EstimatePowerRequest, context: Context) -> power_pb2.PowerEstimate:
        frozen = await self.freeze(request, context)
        return await asyncio.to_thread(power_convert.estimate, frozen, request, self._known.benchmarks)
