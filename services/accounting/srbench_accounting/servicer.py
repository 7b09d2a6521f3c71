"""One RPC each: parse, call the core or the ledger, render."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import price_estimate_pb2, report_pb2, routing_flow_pb2, run_times_pb2
from srbench_kit import pages
from srbench_kit.auth import require_role
from srbench_kit.errors import InvalidInput

from srbench_accounting import checking, evidence, price_estimates, views
from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.lineage_runs import lineage_runs
from srbench_accounting.listing import Start
from srbench_accounting.recording import FactStream
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.store import Store

if TYPE_CHECKING:
    from srbench_accounting.comparing_servicer import ComparingServicer
    from srbench_accounting.figures import Sides
    from srbench_accounting.judging_servicer import JudgingServicer
    from srbench_accounting.retrospect_servicer import RetrospectServicer

PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
Context: TypeAlias = "aio.ServicerContext[Any, Any]"


def _answer_of(part: str, method: str) -> Any:
    """A method with one answer, which is that of the same method of `part`."""

    async def call(self: Accounting, request: Any, context: Context) -> Any:
        return await getattr(getattr(self, part), method)(request, context)

    return call


def _answers_of(part: str, method: str) -> Any:
    """A method with a stream of answers, which are those of the same method of `part`."""

    async def call(self: Accounting, request: Any, context: Context) -> AsyncIterator[Any]:
        async for answer in getattr(getattr(self, part), method)(request, context):
            yield answer

    return call


class Accounting(rpc.AccountingServiceServicer):
    """The ledger's face. Comparisons and what looks back at a run are parts of their own, imported when they are asked for:
    NumPy takes longer to import than the service may take to start."""

    CompareRuns = _answer_of("comparing", "CompareRuns")
    ComparePairs = _answer_of("comparing", "ComparePairs")
    ListComparisonOptions = _answer_of("comparing", "ListComparisonOptions")
    RegradeRun = _answer_of("retrospect", "RegradeRun")
    ExportRun = _answers_of("retrospect", "ExportRun")
    ReconcileUsage = _answer_of("retrospect", "ReconcileUsage")
    ListCorrections = _answer_of("retrospect", "ListCorrections")
    GetJudging = _answer_of("judging", "GetJudging")
    ImportAudit = _answer_of("judging", "ImportAudit")

    def __init__(self, store: Store, planner: PlannerClient, graders: GraderClient) -> None:
        self._store = store
        self._planner = planner
        self._graders = graders

    @cached_property
    def sides(self) -> Sides:
        """The figures of runs, shared by all that looks at whole runs."""
        from srbench_accounting import figures

        return figures.Sides(self._store)

    @cached_property
    def comparing(self) -> ComparingServicer:
        """Compares runs."""
        from srbench_accounting import comparing_servicer

        return comparing_servicer.ComparingServicer(self._store, self._planner, self.sides)

    @cached_property
    def retrospect(self) -> RetrospectServicer:
        """Looks back at finished runs."""
        from srbench_accounting import retrospect_servicer

        return retrospect_servicer.RetrospectServicer(self._store, self._planner, self._graders, self.sides)

    @cached_property
    def judging(self) -> JudgingServicer:
        """Looks at how well judges judge."""
        from srbench_accounting import judging_servicer

        return judging_servicer.JudgingServicer(self._store)

    async def RecordFacts(self, request_iterator: Any, context: Context) -> AsyncIterator[pb.RecordFactsResponse]:
        require_role(context, "executor")
        store = self._store
        async for response in FactStream(store.recorder, store.registry, store.board).answer(request_iterator):
            yield response

    async def FenceCells(self, request: pb.FenceCellsRequest, context: Context) -> pb.FenceCellsResponse:
        require_role(context, "planner")
        store, run = self._store, await self._store.registry.run(request.run_id)
        bad = checking.fences(request, run)
        if bad is not None:
            raise InvalidInput(bad.reason, bad.message)
        recorded, cells = await store.writer.run(lambda connection: store.ledger.fence(connection, run, request))
        store.vocabulary.learn(recorded.words)
        return pb.FenceCellsResponse(cells=cells)

    async def HaltRun(self, request: pb.HaltRunRequest, context: Context) -> pb.HaltRunResponse:
        require_role(context, "planner")
        store, run = self._store, await self._store.registry.run(request.run_id)
        reason = request.reason[:64] or "halted"
        await store.writer.run(lambda connection: store.ledger.halt(connection, run, reason))
        return pb.HaltRunResponse()

    async def GetSpend(self, request: pb.GetSpendRequest, context: Context) -> pb.Spend:
        run = await self._store.registry.run(request.run_id)
        return await self._store.reader.run(lambda connection: views.spend(self._store, connection, run))

    async def GetReport(self, request: pb.GetReportRequest, context: Context) -> report_pb2.Report:
        store = self._store
        lineage = await lineage_runs(store, request.run_id)
        cases = await store.registry.cases(lineage[0][0])
        read = views.merged_report if request.lineage else views.report
        return await store.reader.run(lambda connection: read(store, connection, lineage, cases))

    async def ListOutcomes(self, request: pb.ListOutcomesRequest, context: Context) -> pb.ListOutcomesResponse:
        run, cases = await self._run_with_cases(request.run_id)
        correct = request.correct if request.HasField("correct") else None
        cell = request.cell if request.HasField("cell") else None
        asked: tuple[object, ...] = (
            "outcomes",
            request.run_id,
            request.target_id,
            request.benchmark,
            request.state,
            correct,
        )
        wanted = views.outcome_filter(request, run, cases), views.outcome_ranking(request)
        if cell is not None or not wanted[1].changes_nothing:
            asked += (cell, wanted[1])
        start, size = _start(request, *asked)
        page, results = await self._store.reader.run(
            lambda connection: views.outcomes(self._store, connection, run, cases, wanted, start, size)
        )
        token = pages.encode(page.last, *asked) if page.more else ""
        return pb.ListOutcomesResponse(results=results, total=page.total, next_page_token=token)

    async def ListCalls(self, request: pb.ListCallsRequest, context: Context) -> pb.ListCallsResponse:
        run, cases = await self._run_with_cases(request.run_id)
        asked: tuple[object, ...] = ("calls", request.run_id, request.active, request.target_id, request.case_id)
        wanted = views.call_filter(request, run, cases), views.call_ranking(request)
        if not wanted[1].changes_nothing:
            asked += (wanted[1],)
        start, size = _start(request, *asked)
        page, calls = await self._store.reader.run(
            lambda connection: views.calls(self._store, connection, run, cases, wanted, request.active, start, size)
        )
        token = pages.encode(page.last, *asked) if page.more else ""
        return pb.ListCallsResponse(calls=calls, total=page.total, next_page_token=token)

    async def GetCall(self, request: pb.GetCallRequest, context: Context) -> pb.Call:
        run, cases = await self._run_with_cases(request.run_id)
        return await views.whole_call(self._store, run, cases, request.call_id)

    async def ReadEvidence(self, request: pb.ReadEvidenceRequest, context: Context) -> AsyncIterator[pb.EvidenceChunk]:
        run = await self._store.registry.run(request.run_id)
        key, data = await views.evidence_of(self._store, run, request.call_id)
        for chunk in evidence.chunks(key, data):
            yield chunk

    async def RecordReplay(self, request: pb.RecordReplayRequest, context: Context) -> pb.RecordReplayResponse:
        require_role(context, "planner")
        store, now_us = self._store, time.time_ns() // 1000
        run, source = await store.registry.run(request.run_id), await store.registry.run(request.source_run_id)
        count, words = await store.writer.run(
            lambda connection: store.replays.record(connection, run, source, request, now_us)
        )
        store.vocabulary.learn(words)
        return pb.RecordReplayResponse(cell_count=count)

    async def GetRoutingFlow(
        self, request: routing_flow_pb2.GetRoutingFlowRequest, context: Context
    ) -> routing_flow_pb2.RoutingFlow:
        run, cases = await self._run_with_cases(request.run_id)
        return await self._store.reader.run(
            lambda connection: views.routing_flow(self._store, connection, run, cases, request.target_id)
        )

    async def GetRunTimes(self, request: run_times_pb2.GetRunTimesRequest, context: Context) -> run_times_pb2.RunTimes:
        run, cases = await self._run_with_cases(request.run_id)
        return await self._store.reader.run(lambda connection: views.run_times(self._store, connection, run, cases))

    async def EstimatePrices(
        self, request: price_estimate_pb2.EstimatePricesRequest, context: Context
    ) -> price_estimate_pb2.PriceEstimate:
        run = await self._store.registry.run(request.run_id)
        return await price_estimates.estimate(self._store, run, request.prices)

    async def _run_with_cases(self, run_id: str) -> tuple[KnownRun, PlanCases]:
        run = await self._store.registry.run(run_id)
        return run, await self._store.registry.cases(run)


def _start(request: pb.ListOutcomesRequest | pb.ListCallsRequest, *asked: object) -> tuple[Start, int]:
    """Where the page begins, and its size."""
    after = pages.decode(request.page_token, *asked)
    if not isinstance(after, int | None) or (after or 0) < 0:
        raise InvalidInput("BAD_PAGE_TOKEN", "the page token is not one that this service gave out")
    if request.offset < 0 or (request.offset and request.page_token):
        raise InvalidInput(
            "BAD_OFFSET", f"offset is {request.offset}; expected 0 or more, and no page_token", field="offset"
        )
    return Start(after or 0, request.offset), pages.page_size(request.page_size, PAGE_SIZE, MAX_PAGE_SIZE)
