"""The fake accounting service: facts of runs that are the same for every run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import zstandard
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import comparison_pb2 as comparison
from srbench.v1 import judging_pb2, price_estimate_pb2, report_pb2, routing_flow_pb2, run_times_pb2, usage_pb2
from srbench.v1 import ledger_service_pb2 as ledger
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench_kit import auth, pages
from srbench_kit.errors import NotFound
from srbench_kit.values import to_value

BODY = b'data: {"choices":[]}\n\ndata: <script>alert(1)</script>\n\ndata: [DONE]\n\n'


class FakeAccounting(accounting_rpc.AccountingServiceServicer):
    """Knows five outcomes and three calls of every run."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked: list[str] = []
        self.evidence: bytes | None = None
        self.knows_run = True
        self.audits: list[judging_pb2.ImportAuditRequest] = []
        self.prices: dict[str, usage_pb2.Price] = {}

    def _enter(self, request: Any, context: Any) -> None:
        auth.require_role(context, "gateway")
        self.asked.append(type(request).__name__)
        if self.failure is not None:
            raise self.failure
        if not self.knows_run:
            raise NotFound("NO_SUCH_RUN", f"there is no run of {type(request).__name__}")

    async def GetSpend(self, request: Any, context: Any) -> accounting.Spend:
        self._enter(request, context)
        return accounting.Spend(
            run_id=request.run_id, known_cost_picodollars=1_500_000_000, max_cost_picodollars=5 * 10**12, call_count=3
        )

    async def GetReport(self, request: Any, context: Any) -> report_pb2.Report:
        self._enter(request, context)
        found = report_pb2.Report(version="sr-bench-1.0", run_id=request.run_id, status="completed", mode="live")
        row = found.summary.targets.add(id="s", total=2, completed=2, scored=2, correct=1, accuracy=0.5)
        row.accuracy_ci95.extend([0.1, 0.9])
        row.selected_models["m"] = 2
        found.summary.targets.add(id="r")
        found.benchmarks.add(id="s", benchmark="arc-agi-2", target_id="s", total=2)
        found.provenance.target_profiles.add(id="s", model="m", kind="single")
        found.provenance.adapter_versions["arc-agi-2"] = "sr-bench-1.0"
        return found

    async def GetJudging(self, request: Any, context: Any) -> judging_pb2.Judging:
        self._enter(request, context)
        audited = judging_pb2.AuditedAccuracy(benchmark="hle", target_id="t", planned_count=4, judged_accuracy=0.5)
        agreement = judging_pb2.JudgeAgreement(benchmark="hle", pair_count=3, observed=1.0)
        return judging_pb2.Judging(run_id=request.run_id, agreements=[agreement], audited=[audited], audit_id="audit-1")

    async def ImportAudit(self, request: Any, context: Any) -> judging_pb2.Judging:
        self.audits.append(request)
        return await self.GetJudging(request, context)

    async def GetRoutingFlow(self, request: Any, context: Any) -> routing_flow_pb2.RoutingFlow:
        self._enter(request, context)
        found = routing_flow_pb2.RoutingFlow(run_id=request.run_id, cell_count=2)
        found.rows.add(target_id="s", benchmark="arc-agi-2", outcome="pending", cell_count=2)
        return found

    async def GetRunTimes(self, request: Any, context: Any) -> run_times_pb2.RunTimes:
        self._enter(request, context)
        found = run_times_pb2.RunTimes(run_id=request.run_id)
        found.targets.add(target_id="s", answer_count=1, answer_quantiles_s=[0.5] * 101)
        return found

    async def EstimatePrices(self, request: Any, context: Any) -> price_estimate_pb2.PriceEstimate:
        self._enter(request, context)
        self.prices = dict(request.prices)
        found = price_estimate_pb2.PriceEstimate(run_id=request.run_id)
        found.targets.add(target_id="s", call_count=2, frozen_cost_picodollars=10**12, estimated_unknown_count=1)
        return found

    async def ListOutcomes(self, request: Any, context: Any) -> accounting.ListOutcomesResponse:
        self._enter(request, context)
        filters = (request.run_id, request.target_id, request.benchmark, request.state)
        after = pages.decode(request.page_token, *filters) or 0
        assert isinstance(after, int)
        rows = [number for number in range(1, 6) if number > after]
        found = accounting.ListOutcomesResponse(total=5)
        for number in rows[: request.page_size]:
            row = found.results.add(sequence=number, case_id=f"c{number}", benchmark="arc-agi-2", target_id="s")
            row.status, row.correct, row.score = "completed", number % 2 == 0, float(number % 2 == 0)
            row.answer.CopyFrom(to_value([[1, 2], [2**70, 0.5]]))
        if len(rows) > request.page_size:
            found.next_page_token = pages.encode(rows[request.page_size - 1], *filters)
        return found

    @staticmethod
    def _call(run_id: str, number: int) -> accounting.Call:
        call = accounting.Call(
            id=f"call-{number:032x}",
            run_id=run_id,
            case_id="c1",
            target_id="s",
            role=accounting.CALL_ROLE_SUBJECT,
            status=accounting.CALL_STATUS_SENT if number == 3 else accounting.CALL_STATUS_COMPLETED,
            http_status=200,
            sequence=number,
            cost_picodollars=7_000_000,
        )
        call.usage.input_tokens = 2**53 + 1
        call.start_time.FromSeconds(1_700_000_000)
        if number == 3:
            call.activity.phase = "streaming"
            call.activity.received_bytes = 10
        return call

    async def ListCalls(self, request: Any, context: Any) -> accounting.ListCallsResponse:
        self._enter(request, context)
        filters = (request.run_id, request.active)
        after = pages.decode(request.page_token, *filters) or 0
        rows = [number for number in ((3,) if request.active else (1, 2, 3)) if number > int(after)]
        found = accounting.ListCallsResponse(total=1 if request.active else 3)
        found.calls.extend(self._call(request.run_id, number) for number in rows[: request.page_size])
        if len(rows) > request.page_size:
            found.next_page_token = pages.encode(rows[request.page_size - 1], *filters)
        return found

    async def GetCall(self, request: Any, context: Any) -> accounting.Call:
        self._enter(request, context)
        if request.call_id != f"call-{1:032x}":
            raise NotFound("NO_SUCH_CALL", f"there is no call named {request.call_id!r}", call=request.call_id)
        call = self._call(request.run_id, 1)
        call.final, call.reasoning = "<img src=x onerror=alert(1)>", ""
        call.raw_usage.CopyFrom(to_value({"prompt_tokens": 3}))
        return call

    async def ReadEvidence(self, request: Any, context: Any) -> AsyncIterator[accounting.EvidenceChunk]:
        self._enter(request, context)
        if request.call_id != f"call-{1:032x}":
            raise NotFound("NO_EVIDENCE", f"the call {request.call_id!r} has no evidence", call=request.call_id)
        data = self.evidence
        if data is None:
            evidence = accounting.Evidence(http_status=200, body=BODY, clean_end=True)
            evidence.headers.add(name="content-type", value="text/event-stream")
            data = zstandard.compress(evidence.SerializeToString())
        for offset in range(0, len(data), 50):
            yield accounting.EvidenceChunk(offset=offset, data=data[offset : offset + 50])

    async def CompareRuns(self, request: Any, context: Any) -> comparison.ComparisonReport:
        self._enter(request, context)
        found = comparison.ComparisonReport(version="sr-bench-1.0", baseline_run_id=request.baseline_run_id)
        if request.HasField("margin"):
            found.margin = request.margin
        for run_id in request.candidate_run_ids:
            found.candidates.add(run_id=run_id, status="completed", target_ids=["r"])
            row = found.comparisons.add(candidate_run_id=run_id, candidate_target_id="r", baseline_target_id="s")
            row.quality_delta_ci95.extend([-0.1, 0.2])
            row.quality_delta_adaptive_ci95.extend([-0.05, 0.1])
            row.band.singles.add(target_id="s", interval=[-0.07, 0.12])
            row.total_cost_comparison_reason = "=the cost is unknown"
            row.verdict = "not established"
            row.subject_cost_saving.low_percent = 10
            row.null_routers.always.add(name="s", quality=0.5)
            row.regret.total.cases = 2
        if len(request.candidate_run_ids) == 1:
            found.candidate_run_id = request.candidate_run_ids[0]
        found.candidate_targets.add(id="r")
        return found

    async def ComparePairs(self, request: Any, context: Any) -> comparison.ComparePairsResponse:
        self._enter(request, context)
        found = comparison.ComparePairsResponse(total=1, baseline_target_id="s", candidate_target_id="r")
        found.pairs.add(case_id="c1", benchmark="arc-agi-2", outcome="win").baseline.status = "completed"
        return found

    async def ListComparisonOptions(self, request: Any, context: Any) -> comparison.ListComparisonOptionsResponse:
        self._enter(request, context)
        pages.decode(request.page_token, "options")
        found = comparison.ListComparisonOptionsResponse(empty_reason="no_compatible_saved_runs")
        found.incompatible.add(id="run-1").reasons.add(reason="NOT_LIVE", message="it is a preview")
        return found

    async def RegradeRun(self, request: Any, context: Any) -> comparison.Regrading:
        self._enter(request, context)
        found = comparison.Regrading(source_run_id=request.run_id, kind="offline-regrade")
        found.results.add(case_id="c1", target_id="s", correct=True, source_correct=False, changed=True)
        return found

    async def ExportRun(self, request: Any, context: Any) -> AsyncIterator[comparison.ExportPart]:
        self._enter(request, context)
        yield comparison.ExportPart(header=comparison.ExportHeader(kind="training-matrix", source_run_id=request.run_id))
        for number in (1, 2):
            part = comparison.ExportPart()
            part.case.content.CopyFrom(to_value({"id": f"c{number}", "benchmark": "arc-agi-2", "answer": [[1]]}))
            part.case.targets.add(id="s", model="m", kind="single", correct=True, cost_picodollars=7_000_000, final="x")
            part.case.targets.add(id="r", model="auto", kind="mom")
            yield part

    async def ReconcileUsage(self, request: Any, context: Any) -> comparison.AccountingCorrection:
        self._enter(request, context)
        found = comparison.AccountingCorrection(id="accounting-1", run_id=request.run_id)
        found.calls.add(call_id=f"call-{1:032x}", reason="no_evidence")
        return found

    async def ListCorrections(self, request: Any, context: Any) -> comparison.ListCorrectionsResponse:
        self._enter(request, context)
        return comparison.ListCorrectionsResponse(corrections=[comparison.AccountingCorrection(id="accounting-1")])

    async def RecordFacts(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        raise AssertionError("facts must never come through the gateway")
        yield

    async def FenceCells(self, request: Any, context: Any) -> Any:
        raise AssertionError("fences must never come through the gateway")

    async def HaltRun(self, request: Any, context: Any) -> Any:
        raise AssertionError("halts must never come through the gateway")


class FakeLedger(ledger_rpc.LedgerServiceServicer):
    """Settles the first call of every run."""

    def __init__(self, accounting: FakeAccounting) -> None:
        self._accounting = accounting

    async def SettleCall(self, request: Any, context: Any) -> accounting.Call:
        self._accounting._enter(request, context)
        if request.call_id != f"call-{1:032x}":
            raise NotFound("NO_SUCH_CALL", f"there is no call named {request.call_id!r}", call=request.call_id)
        call = self._accounting._call(request.run_id, 1)
        call.settlement.verdict = request.verdict
        call.settlement.raw_usage.CopyFrom(request.usage)
        return call

    async def StreamLedger(self, request: Any, context: Any) -> AsyncIterator[ledger.StreamLedgerResponse]:
        self._accounting._enter(request, context)
        yield ledger.StreamLedgerResponse(calls=[ledger.LedgerCall(id=f"call-{1:032x}", sequence=1)])

    async def StreamCellLedgers(self, request: Any, context: Any) -> AsyncIterator[Any]:
        raise AssertionError("facts of cells must never come through the gateway")
        yield
