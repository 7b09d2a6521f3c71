"""The RPCs of `PlannerService` about targets, plans and runs; those about datasets are a mixin of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from grpc import aio
from srbench.v1 import plan_pb2, power_pb2, setup_pb2
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench_kit import auth, tracing
from srbench_kit.documents import received
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, object_of, to_value

from srbench_planner import cell_reads, convert, dataset_convert, events
from srbench_planner.freeze import Freezer, FrozenPlan, Registry
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.plans import Plans
from srbench_planner.ports import Benchmarks
from srbench_planner.prerequisites import Grader, Prerequisites, Runners
from srbench_planner.run_control import RunControl
from srbench_planner.runs import TERMINAL, Runs
from srbench_planner.scheduler import Scheduler
from srbench_planner.target_registry import TargetRegistry

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
M = TypeVar("M", bound=Message)
Manifested: TypeAlias = pb.FreezePlanRequest | pb.CreateRunRequest | power_pb2.EstimatePowerRequest
WATCH_S = 0.5
BATCH_BYTES = 1024 * 1024
BATCH_COUNT = 500


class PlanServicer(rpc.PlannerServiceServicer):
    """Targets, plans and runs."""

    def __init__(
        self,
        registry: TargetRegistry,
        freezer: Freezer,
        plans: Plans,
        runs: Runs,
        scheduler: Scheduler,
        *,
        benchmarks: Benchmarks,
        hidden: HiddenParts,
        grader: Grader,
        runners: Runners,
    ) -> None:
        self._benchmarks = benchmarks
        self._hidden = hidden
        self._prerequisites = Prerequisites(hidden, grader, runners)
        self._registry = registry
        self._freezer = freezer
        self._plans = plans
        self._runs = runs
        self._control = RunControl(runs, scheduler)
        self._scheduler = scheduler

    async def ListTargets(self, request: pb.ListTargetsRequest, context: Context) -> pb.ListTargetsResponse:
        return _targets(*await asyncio.to_thread(self._registry.load_revision))

    async def RegisterTargets(self, request: pb.RegisterTargetsRequest, context: Context) -> pb.ListTargetsResponse:
        document = received(request.document, "the document")
        return _targets(*await self._registry.replace(document, request.expected_revision))

    async def GetBenchmarkOptions(self, request: pb.GetBenchmarkOptionsRequest, context: Context) -> pb.BenchmarkOptions:
        options, revision = await asyncio.to_thread(self._registry.options_revision)
        return pb.BenchmarkOptions(options=to_value(options), revision=revision)

    async def RegisterBenchmarkOptions(
        self, request: pb.RegisterBenchmarkOptionsRequest, context: Context
    ) -> pb.BenchmarkOptions:
        document, specs = received(request.document, "the document"), self._benchmarks.specs
        options, revision = await self._registry.replace_options(document, specs, request.expected_revision)
        return pb.BenchmarkOptions(options=to_value(options), revision=revision)

    async def FreezePlan(self, request: pb.FreezePlanRequest, context: Context) -> plan_pb2.Plan:
        stored = await self._plans.save(await self.freeze(request, context))
        return await self._plans.show(stored, whole=True)

    async def GetPlan(self, request: pb.GetPlanRequest, context: Context) -> plan_pb2.Plan:
        return await self._plans.show(await self._plans.get(request.plan_sha256), whole=False)

    async def StreamPlanCases(
        self, request: pb.StreamPlanCasesRequest, context: Context
    ) -> AsyncIterator[pb.StreamPlanCasesResponse]:
        stored = await self._plans.get(request.plan_sha256)
        cases = await self._plans.cases(stored.summary.case_sha256)
        shown = convert.plan_cases(cases.cases, stored.matrix, cases.graders(), digests=request.digests)
        for batch in _batches(shown):
            yield pb.StreamPlanCasesResponse(cases=batch)

    async def StreamReferences(
        self, request: pb.StreamReferencesRequest, context: Context
    ) -> AsyncIterator[pb.StreamReferencesResponse]:
        auth.require_role(context, "grader")
        cases = await self._plans.cases(request.case_sha256)
        for batch in _batches(cases.references()):
            yield pb.StreamReferencesResponse(references=batch)

    async def StreamHiddenTests(
        self, request: pb.StreamHiddenTestsRequest, context: Context
    ) -> AsyncIterator[pb.StreamHiddenTestsResponse]:
        auth.require_role(context, "grader")
        for piece in await asyncio.to_thread(lambda: list(self._hidden.pieces(request.sha256))):
            yield pb.StreamHiddenTestsResponse(data=piece)

    async def InspectSetup(
        self, request: setup_pb2.InspectSetupRequest, context: Context
    ) -> setup_pb2.InspectSetupResponse:
        known = self._benchmarks.specs
        unknown = [name for name in request.benchmarks if name not in known]
        if unknown:
            raise InvalidInput(
                "NO_SUCH_BENCHMARK", f"there is no benchmark {unknown[0]!r}; expected one of {', '.join(known)}"
            )
        options = object_of(request.options)
        if not request.HasField("options"):
            options = await asyncio.to_thread(self._registry.benchmark_options)
        registered = await asyncio.to_thread(self._registry.load)
        specs = [known[name] for name in request.benchmarks or known]
        return setup_pb2.InspectSetupResponse(items=await self._prerequisites.inspect(specs, options, registered))

    async def StreamSealedCases(
        self, request: pb.StreamSealedCasesRequest, context: Context
    ) -> AsyncIterator[pb.StreamSealedCasesResponse]:
        auth.require_role(context, "accounting")
        cases = await self._plans.cases(request.case_sha256)
        for batch in _batches(cases.sealed(digests_only=request.digests_only)):
            yield pb.StreamSealedCasesResponse(cases=batch)

    async def CreateRun(self, request: pb.CreateRunRequest, context: Context) -> pb.Run:
        parent = dict(context.invocation_metadata() or ()).get(tracing.KEY, "") if tracing.ON else ""
        span = tracing.begin("create run", str(parent))
        try:
            frozen = await self.freeze(request, context)
            run = await self._runs.create(auth.actor(context), request.idempotency_key, frozen)
        finally:
            tracing.end(span)
        tracing.remember(run.id, tracing.header(span))
        return run

    async def GetRun(self, request: pb.GetRunRequest, context: Context) -> pb.Run:
        actor, with_cases = auth.actor(context), not request.without_cases
        return await self._runs.get(actor, request.id, summary=request.summary, with_cases=with_cases)

    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsResponse:
        return await self._runs.list(auth.actor(context), request)

    async def WatchRun(self, request: pb.WatchRunRequest, context: Context) -> AsyncIterator[pb.Run]:
        last: pb.Run | None = None
        while last is None or last.status not in TERMINAL:
            run = await self._runs.get(auth.actor(context), request.id, summary=True)
            if run != last:
                yield run
                last = run
            if run.status not in TERMINAL:
                await asyncio.sleep(WATCH_S)

    async def CancelRun(self, request: pb.CancelRunRequest, context: Context) -> pb.Run:
        return await self._runs.cancel(auth.actor(context), request.id)

    async def PauseRun(self, request: pb.PauseRunRequest, context: Context) -> pb.Run:
        return await self._control.pause(auth.actor(context), request.id)

    async def ResumeRun(self, request: pb.ResumeRunRequest, context: Context) -> pb.Run:
        return await self._control.resume(auth.actor(context), request.id)

    async def SetRunConcurrency(self, request: pb.SetRunConcurrencyRequest, context: Context) -> pb.Run:
        return await self._control.set_concurrency(auth.actor(context), request.id, request.concurrency)

    async def ListRunEvents(self, request: pb.ListRunEventsRequest, context: Context) -> pb.ListRunEventsResponse:
        row = await self._runs.row(auth.actor(context), request.run_id)
        return await events.list_events(self._runs.reader, row.id, row.number, request)

    async def GetRunCase(self, request: pb.GetRunCaseRequest, context: Context) -> pb.DatasetCase:
        row = await self._runs.row(auth.actor(context), request.run_id)
        stored = await self._plans.by_number(row.plan)
        cases = await self._plans.cases(stored.summary.case_sha256)
        return dataset_convert.case(cases.public(request.case_id))

    async def ListCells(self, request: pb.ListCellsRequest, context: Context) -> pb.ListCellsResponse:
        row = await self._runs.row(auth.actor(context), request.run_id)
        stored = await self._plans.by_number(row.plan)
        cases = await self._plans.cases(stored.summary.case_sha256)
        return await cell_reads.list_cells(
            self._runs.reader, row.number, stored, self._scheduler.active.get(row.id), cases, request
        )

    async def freeze(self, request: Manifested, context: Context) -> FrozenPlan:
        """The frozen plan of a request's manifest, under the operator's registry where the caller was forwarded."""
        forwarded = auth.actor(context).role != auth.LOCAL

        def work() -> FrozenPlan:
            options = self._registry.benchmark_options()
            registry = Registry(targets=self._registry.load(), options=options, binding=forwarded)
            return self._freezer.freeze(received(request.manifest, "the manifest"), registry, collect=True)

        frozen = await asyncio.to_thread(work)
        if frozen.manifest["mode"] == "live":
            names = {str(case["benchmark"]) for case in frozen.cases}
            used = [spec for name, spec in self._benchmarks.specs.items() if name in names]
            options = frozen.manifest.get("benchmark_options")
            given = options if isinstance(options, dict) else {}
            await self._prerequisites.check(frozen.missing, used, given, frozen.cases, _asked(frozen))
        return frozen


def _asked(frozen: FrozenPlan) -> list[dict[str, Json]]:
    """All targets of a plan, those of judges and simulators among them."""
    own, auxiliary = frozen.manifest["targets"], frozen.manifest.get("auxiliary_targets")
    listed = [*(own if isinstance(own, list) else ()), *(auxiliary.values() if isinstance(auxiliary, dict) else ())]
    return [target for target in listed if isinstance(target, dict)]


def _targets(found: list[Any], revision: str) -> pb.ListTargetsResponse:
    return pb.ListTargetsResponse(targets=[convert.target(item) for item in found], revision=revision)


def _batches(messages: Iterable[M]) -> Iterable[list[M]]:
    """Lists of messages, each small enough for one response."""
    batch: list[M] = []
    size = 0
    for message in messages:
        batch.append(message)
        size += message.ByteSize()
        if size >= BATCH_BYTES or len(batch) >= BATCH_COUNT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
