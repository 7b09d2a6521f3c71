"""A service as the command line meets it: canned answers, and what was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import zstandard
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import comparison_pb2, plan_pb2, power_pb2, report_pb2, target_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_kit import pages, wire
from srbench_kit.errors import InvalidInput, NotFound, SrBenchError
from srbench_kit.values import to_value

RUN_ID = "run-0199b2c3d4e5f6a7b8c9"
HOSTILE = "\x1b]0;owned\x07[red]evil[/red] <img src=x>\u202e"
EVIDENCE = accounting_pb.Evidence(http_status=200, body=b'data: {"x":"\x1b[31m"}\n\n', clean_end=True)
PACKED = zstandard.compress(EVIDENCE.SerializeToString())


def plan() -> plan_pb2.Plan:
    """A small frozen plan."""
    return plan_pb2.Plan(
        plan_sha256="ab" * 32,
        case_sha256="cd" * 32,
        version="sr-bench-1.0",
        name=HOSTILE,
        mode="live",
        profile="quick",
        cost_policy="require_priced",
        total=4,
        case_count=2,
        case_counts={"mmlu-pro": 4},
        targets=[target("alpha"), target("mom", target_pb2.TARGET_KIND_MOM)],
        manifest=to_value({"version": "sr-bench-1.0", "name": "n"}),
    )


def target(name: str, kind: target_pb2.TargetKind.ValueType = target_pb2.TARGET_KIND_SINGLE) -> target_pb2.Target:
    """A priced target."""
    prices = {
        "m": usage_pb2.Price(
            input_picodollars=250_000,
            cached_input_picodollars=25_000,
            cache_write_picodollars=0,
            output_picodollars=2_000_000,
        )
    }
    return target_pb2.Target(id=name, kind=kind, model="m", base_url="http://127.0.0.1:1/v1", prices=prices)


def metrics(name: str, correct: int, cost: int | None, **more: Any) -> report_pb2.Metrics:
    """Figures of one target over four cells."""
    return report_pb2.Metrics(
        id=name,
        total=4,
        completed=4,
        scored=4,
        correct=correct,
        accuracy=correct / 4,
        accuracy_ci95=[0.1, 0.9],
        macro_accuracy=correct / 4,
        cost_picodollars=cost,
        cost_complete=cost is not None,
        request_count=4,
        **more,
    )


def report() -> report_pb2.Report:
    """A report in which one cost is not known."""
    tokens = usage_pb2.TokenUsage(
        input_tokens=9007199254740993, cached_input_tokens=0, cache_write_tokens=0, output_tokens=15
    )
    return report_pb2.Report(
        version="sr-bench-1.0",
        run_id=RUN_ID,
        status="completed",
        mode="live",
        cost_policy="require_priced",
        summary=report_pb2.ReportSummary(
            targets=[metrics("alpha", 3, 2_000_000_000, tokens=tokens), metrics("mom", 4, None, known_cost_picodollars=7)]
        ),
        provenance=report_pb2.ReportProvenance(
            target_profiles=[
                report_pb2.TargetProfile(id="alpha", kind="single"),
                report_pb2.TargetProfile(id="mom", kind="mom"),
            ]
        ),
    )


@dataclass
class FakeService:
    """What the fake remembers and how it behaves.

    Attributes:
        requests: every request, by method.
        polls_to_end: how often a run is asked for before it has ended.
        end: the status in which runs end.
        verdicts, margin_verdict, claim_verdict: words of comparisons; without a claim when that is empty.
        refuse: an error that every creation answers with.
    """

    store: Path
    url: str = ""
    requests: dict[str, list[Any]] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    polls_to_end: int = 2
    end: str = "completed"
    refuse: SrBenchError | None = None
    reports: report_pb2.Report = field(default_factory=report)
    verdicts: list[str] = field(default_factory=lambda: ["not established"])
    margin_verdict: str = "supported"
    claim_verdict: str = ""

    def note(self, method: str, request: Any, context: grpc.ServicerContext) -> None:
        self.requests.setdefault(method, []).append(request)
        found = dict(context.invocation_metadata())
        self.tokens.append(str(found.get("authorization", "")))

    def run(self, status: str) -> planner_pb.Run:
        done = status in ("completed", "failed", "cancelled")
        progress = planner_pb.Progress(total=4, completed=4 if done else 1, running=0 if done else 2)
        found = planner_pb.Run(id=RUN_ID, owner="local", status=status, progress=progress, plan=plan(), idempotency_key="k")
        found.create_time.FromSeconds(1_800_000_000)
        if status == "failed":
            found.reason, found.error = "connect_failed", f"nothing listens at 127.0.0.1:9 {HOSTILE}"
        return found


def _refused(context: grpc.ServicerContext, error: SrBenchError) -> Any:
    context.set_trailing_metadata(wire.status_details(error))
    context.abort(wire.STATUS[error.kind], error.message)


class FakePlanner(planner_rpc.PlannerServiceServicer):
    def __init__(self, fake: FakeService) -> None:
        self._fake = fake

    def GetCatalog(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Catalog:
        self._fake.note("GetCatalog", request, context)
        item = planner_pb.Benchmark(
            id="mmlu-pro", title="MMLU-Pro", kind="multiple-choice", weight=0.1, quick_count=500, available=True
        )
        return planner_pb.Catalog(
            version="sr-bench-1.0", benchmarks=[item], profiles=[planner_pb.Profile(id="quick", total=740)]
        )

    def ListTargets(self, request: Any, context: grpc.ServicerContext) -> planner_pb.ListTargetsResponse:
        return planner_pb.ListTargetsResponse(targets=[target("alpha")], revision="r1")

    def RegisterTargets(self, request: Any, context: grpc.ServicerContext) -> planner_pb.ListTargetsResponse:
        self._fake.note("RegisterTargets", request, context)
        return planner_pb.ListTargetsResponse(targets=[target("alpha")], revision="r2")

    def GetBenchmarkOptions(self, request: Any, context: grpc.ServicerContext) -> planner_pb.BenchmarkOptions:
        return planner_pb.BenchmarkOptions(options=to_value({"hle": {"judge": "alpha"}}), revision="o1")

    def RegisterBenchmarkOptions(self, request: Any, context: grpc.ServicerContext) -> planner_pb.BenchmarkOptions:
        self._fake.note("RegisterBenchmarkOptions", request, context)
        return planner_pb.BenchmarkOptions(options=request.document, revision="o2")

    def FreezePlan(self, request: Any, context: grpc.ServicerContext) -> plan_pb2.Plan:
        self._fake.note("FreezePlan", request, context)
        return plan()

    def EstimatePower(self, request: Any, context: grpc.ServicerContext) -> power_pb2.PowerEstimate:
        self._fake.note("EstimatePower", request, context)
        row = power_pb2.ProfilePower(profile="this plan", case_count=2, expected_half_width=0.1, hoeffding_half_width=0.3)
        return power_pb2.PowerEstimate(discordance=0.15, profiles=[row], assumptions=["cases are independent"])

    def CreateRun(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        self._fake.note("CreateRun", request, context)
        if self._fake.refuse:
            _refused(context, self._fake.refuse)
        return self._fake.run("queued")

    def GetRun(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        self._fake.note("GetRun", request, context)
        if request.id != RUN_ID:
            _refused(context, NotFound("NO_SUCH_RUN", f"there is no run {request.id}"))
        ended = len(self._fake.requests["GetRun"]) >= self._fake.polls_to_end
        return self._fake.run(self._fake.end if ended else "running")

    def ListRuns(self, request: Any, context: grpc.ServicerContext) -> planner_pb.ListRunsResponse:
        self._fake.note("ListRuns", request, context)
        first = not request.page_token
        return planner_pb.ListRunsResponse(
            runs=[self._fake.run("completed")], next_page_token="2" if first else "", total=2
        )

    def CancelRun(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        return self._fake.run("cancelled")

    def PauseRun(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        self._fake.note("PauseRun", request, context)
        run = self._fake.run("running")
        run.paused, run.progress.running = True, 1
        return run

    def ResumeRun(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        return self._fake.run("running")

    def SetRunConcurrency(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Run:
        self._fake.note("SetRunConcurrency", request, context)
        run = self._fake.run("running")
        run.concurrency = request.concurrency
        return run

    def ListRunEvents(self, request: Any, context: grpc.ServicerContext) -> planner_pb.ListRunEventsResponse:
        self._fake.note("ListRunEvents", request, context)
        event = planner_pb.RunEvent(seq=7, run_id=RUN_ID, type="created", data=to_value({"x": 1}))
        return planner_pb.ListRunEventsResponse(events=[event], has_more=True)

    def CreateDatasetPreparation(self, request: Any, context: grpc.ServicerContext) -> planner_pb.DatasetPreparation:
        self._fake.note("CreateDatasetPreparation", request, context)
        return planner_pb.DatasetPreparation(
            id="prep-" + "0" * 32, request=request, status="running", phase="reading", total_count=1
        )

    def GetDatasetPreparation(self, request: Any, context: grpc.ServicerContext) -> planner_pb.DatasetPreparation:
        self._fake.note("GetDatasetPreparation", request, context)
        if self._fake.end == "failed":
            return planner_pb.DatasetPreparation(
                id=request.id, status="failed", reason="BAD_SOURCE", error="no such folder"
            )
        frozen = planner_pb.Dataset(
            id="ef" * 32, sha256="12" * 32, case_count=2, path="/d/cases.jsonl", benchmarks=["arc-agi-2"]
        )
        return planner_pb.DatasetPreparation(id=request.id, status="completed", phase="done", dataset=frozen)

    def ComposeDatasets(self, request: Any, context: grpc.ServicerContext) -> planner_pb.Dataset:
        self._fake.note("ComposeDatasets", request, context)
        return planner_pb.Dataset(id="ef" * 32, case_count=4)


class FakeAccounting(accounting_rpc.AccountingServiceServicer):
    def __init__(self, fake: FakeService) -> None:
        self._fake = fake

    def GetSpend(self, request: Any, context: grpc.ServicerContext) -> accounting_pb.Spend:
        return accounting_pb.Spend(run_id=request.run_id, known_cost_picodollars=10**9, max_cost_picodollars=5 * 10**12)

    def GetReport(self, request: Any, context: grpc.ServicerContext) -> report_pb2.Report:
        self._fake.note("GetReport", request, context)
        return self._fake.reports

    def ListOutcomes(self, request: Any, context: grpc.ServicerContext) -> accounting_pb.ListOutcomesResponse:
        self._fake.note("ListOutcomes", request, context)
        outcome = accounting_pb.Outcome(
            sequence=1, case_id=HOSTILE, target_id="alpha", status="failed", reason="http_error", error=HOSTILE
        )
        return accounting_pb.ListOutcomesResponse(results=[outcome], total=3, next_page_token=pages.encode(1))

    def ListCalls(self, request: Any, context: grpc.ServicerContext) -> accounting_pb.ListCallsResponse:
        self._fake.note("ListCalls", request, context)
        call = accounting_pb.Call(id="call-1", case_id="c", target_id="alpha", status=accounting_pb.CALL_STATUS_SENT)
        call.activity.phase = "streaming"
        return accounting_pb.ListCallsResponse(calls=[call], total=1)

    def GetCall(self, request: Any, context: grpc.ServicerContext) -> accounting_pb.Call:
        return accounting_pb.Call(
            id=request.call_id,
            final=HOSTILE + "\n第 second line",
            evidence_sha256=hashlib.sha256(PACKED if request.call_id != "call-damaged" else b"").hexdigest(),
        )

    def CompareRuns(self, request: Any, context: grpc.ServicerContext) -> comparison_pb2.ComparisonReport:
        self._fake.note("CompareRuns", request, context)
        found = comparison_pb2.ComparisonReport(baseline_run_id=RUN_ID, baseline_selected_target_id="alpha")
        for run_id, verdict in zip(request.candidate_run_ids, self._fake.verdicts, strict=False):
            made = found.comparisons.add(candidate_run_id=run_id, candidate_target_id=HOSTILE, verdict=verdict)
            made.quality_delta, made.wins, made.losses, made.ties = 0.125, 3, 1, 12
            made.quality_delta_ci95.extend([-0.1, 0.35])
            made.mcnemar_p_holm = 0.625
            made.verdict_sentence = f"{run_id} is {verdict}."
            made.subject_cost_saving.low_percent = made.subject_cost_saving.high_percent = 40
            made.subject_cost_saving.ci95_percent.extend([30, 50])
            made.total_cost_comparison_reason = "the candidate's cost is unknown"
            if self._fake.claim_verdict:
                made.claims.add(verdict=self._fake.claim_verdict, sentence=f"The claim is {self._fake.claim_verdict}.")
            if request.HasField("margin"):
                made.non_inferiority.verdict = self._fake.margin_verdict
                made.non_inferiority.sentence = f"Margin {request.margin:g}: {self._fake.margin_verdict}."
        return found

    def ComparePairs(self, request: Any, context: grpc.ServicerContext) -> comparison_pb2.ComparePairsResponse:
        self._fake.note("ComparePairs", request, context)
        found = comparison_pb2.ComparePairsResponse(total=2, baseline_target_id="alpha", candidate_target_id="mom")
        found.pairs.add(case_id=HOSTILE, outcome="win").candidate.model = "m"
        found.counts["win"] = 1
        found.next_page_token = "next"
        return found

    def ListComparisonOptions(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._fake.note("ListComparisonOptions", request, context)
        found = comparison_pb2.ListComparisonOptionsResponse()
        found.options.add(id="run-fits", status="completed")
        found.incompatible.add(id="run-other").reasons.add(
            reason="SAMPLING_DIFFERS", message="sampling.temperature is 0 and 1"
        )
        return found

    def RegradeRun(self, request: Any, context: grpc.ServicerContext) -> comparison_pb2.Regrading:
        found = comparison_pb2.Regrading(source_run_id=request.run_id, changed_count=1, gained_count=1)
        found.results.add(case_id=HOSTILE, target_id="alpha", correct=True, source_correct=False, changed=True)
        return found

    def ExportRun(self, request: Any, context: grpc.ServicerContext) -> Iterator[comparison_pb2.ExportPart]:
        if request.run_id != RUN_ID:
            _refused(context, InvalidInput("HOLDOUT", "only dev cases are ever exported"))
        yield comparison_pb2.ExportPart(header=comparison_pb2.ExportHeader(kind="training-matrix", case_count=1))
        part = comparison_pb2.ExportPart()
        part.case.content.CopyFrom(to_value({"id": "c1", "benchmark": "mmlu-pro"}))
        part.case.targets.add(id="alpha", cost_picodollars=5)
        yield part

    def ReconcileUsage(self, request: Any, context: grpc.ServicerContext) -> comparison_pb2.AccountingCorrection:
        found = comparison_pb2.AccountingCorrection(id="accounting-1", verified_call_count=3, corrected_call_count=1)
        found.calls.add(reason="no_evidence")
        return found

    def ReadEvidence(self, request: Any, context: grpc.ServicerContext) -> Iterator[accounting_pb.EvidenceChunk]:
        for begin in range(0, len(PACKED), 10):
            yield accounting_pb.EvidenceChunk(offset=begin, data=PACKED[begin : begin + 10])
