"""The RPCs that look back at a finished run: grade it again, export it, reconcile its usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeAlias

from grpc import aio
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as planner_pb

from srbench_accounting import exporting, reconciling, regrading
from srbench_accounting.figures import Sides
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.store import Store

Context: TypeAlias = "aio.ServicerContext[Any, Any]"


class Sources(Protocol):
    """What looking back asks of the planner. Raises: `Unreachable`."""

    async def adapter_versions(self) -> dict[str, str]:
        """The installed adapter version by benchmark."""
        ...

    def sealed_cases(self, case_sha256: str, *, digests_only: bool) -> AsyncIterator[list[plan_pb2.SealedCase]]:
        """The cases of that digest in full, in batches."""
        ...


class RetrospectServicer:
    """Looks back at runs; originals stay as they are."""

    def __init__(self, store: Store, planner: Sources, graders: regrading.Graders, sides: Sides) -> None:
        self._kept = store
        self._figures = sides
        self._sources = planner
        self._graders = graders

    async def RegradeRun(self, request: pb.RegradeRunRequest, context: Context) -> pb.Regrading:
        run, known = await self._run(request.run_id)
        cases = await self._kept.registry.cases(known)
        regrading.check(run, cases)
        installed = await self._sources.adapter_versions()
        return await regrading.regrade(self._kept, known, run, cases, self._graders, installed)

    async def ExportRun(self, request: pb.ExportRunRequest, context: Context) -> AsyncIterator[pb.ExportPart]:
        side = await self._figures.side(request.run_id)
        async for part in exporting.export(self._kept, side, self._sources):
            yield part

    async def ReconcileUsage(self, request: pb.ReconcileUsageRequest, context: Context) -> pb.AccountingCorrection:
        run, known = await self._run(request.run_id)
        return await reconciling.reconcile(self._kept, known, run)

    async def ListCorrections(self, request: pb.ListCorrectionsRequest, context: Context) -> pb.ListCorrectionsResponse:
        known = await self._kept.registry.run(request.run_id)
        found = await self._kept.reader.run(
            lambda connection: self._kept.corrections.of_run(connection, known.run_no, calls=request.calls)
        )
        return pb.ListCorrectionsResponse(corrections=found)

    async def _run(self, run_id: str) -> tuple[planner_pb.Run, KnownRun]:
        registry = self._kept.registry
        return await asyncio.gather(registry.planner_run(run_id, summary=True), registry.run(run_id))
