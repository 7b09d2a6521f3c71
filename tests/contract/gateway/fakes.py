"""A planner and an accounting service that hold a handful of things in memory, behind real gRPC servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench.v1 import plan_pb2, power_pb2
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import recovery_service_pb2 as recovery
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import target_pb2 as target
from srbench_kit import auth, ids, jsonview, pages
from srbench_kit.canonical import digest
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.serving import Server
from srbench_kit.values import from_value, to_value

from tests.contract.gateway.accounting_fakes import FakeAccounting, FakeLedger
from tests.contract.gateway.loop_fakes import FakeLoop

DATASET_ID = "d" * 64
PREPARATION_ID = "prep-" + "a" * 32
ENDED = ("completed", "failed", "cancelled", "interrupted")


def a_dataset() -> planner.Dataset:
    found = planner.Dataset(
        id=DATASET_ID,
        name="arc",
        version="sr-bench-1.0",
        sha256="e" * 64,
        case_count=3,
        profile="quick",
        split="dev",
        benchmarks=["arc-agi-2"],
        seed=20260918,
        selection="stratified-hash-v1",
        counts={"arc-agi-2": 3},
        path="/store/datasets/d/cases.jsonl",
        manifest_path="/store/datasets/d/manifest.json",
    )
    found.sources.add(benchmark="arc-agi-2", url="https://example.org/arc", revision="f" * 40)
    found.create_time.FromSeconds(1_700_000_000)
    return found


# What freezing always writes. The limits are those of a message without values, so that none is missing.
FROZEN_DEFAULTS: dict[str, Any] = {
    "name": "sr-bench",
    "mode": "live",
    "targets": [],
    "limits": jsonview.to_json(plan_pb2.Limits()),
}


class FakePlanner(FakeLoop):
    """Set `failure` to make every call raise it, `pause_s` to make every call slow."""

    def __init__(self) -> None:
        self._init_loop()
        self.runs: dict[str, planner.Run] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.preparations: list[planner.DatasetPreparation] = []
        self.registered: list[Any] = []
        self.actors: list[auth.Actor] = []
        self.requests: list[Any] = []
        self.deadlines: list[float | None] = []
        self.failure: Exception | None = None
        self.pause_s = 0.0
        self.finish_after = 3
        self.watched_until_cancelled = asyncio.Event()
        self.hold_watch = False

    async def _enter(self, request: Any, context: Any) -> auth.Actor:
        auth.require_role(context, "gateway")
        actor = auth.actor(context)
        self.actors.append(actor)
        self.requests.append(request)
        self.deadlines.append(context.time_remaining())
        if self.failure is not None:
            raise self.failure
        if self.pause_s:
            await asyncio.sleep(self.pause_s)
        return actor

    def _run(self, run_id: str, actor: auth.Actor) -> planner.Run:
        run = self.runs.get(run_id)
        if run is None or not (actor.sees_all or run.owner == actor.id):
            raise NotFound("NO_SUCH_RUN", f"there is no run named {run_id!r}", run=run_id)
        return run

    @staticmethod
    def _shown(run: planner.Run, summary: bool) -> planner.Run:
        shown = planner.Run()
        shown.CopyFrom(run)
        if summary:
            shown.plan.ClearField("manifest")
        return shown

    async def GetCatalog(self, request: Any, context: Any) -> planner.Catalog:
        await self._enter(request, context)
        catalog = planner.Catalog(version="sr-bench-1.0", modes=["live", "preview"])
        catalog.benchmarks.add(
            id="arc-agi-2",
            title="ARC-AGI-2",
            kind="grid",
            source_url="https://example.org/arc",
            adapter_version="sr-bench-1.0",
            weight=0.1,
            smoke_count=2,
            quick_count=12,
            standard_count=80,
            available=True,
        )
        catalog.profiles.add(id="quick", description="Fixed development cases", split="dev", total=740)
        return catalog

    async def ListTargets(self, request: Any, context: Any) -> planner.ListTargetsResponse:
        await self._enter(request, context)
        found = planner.ListTargetsResponse(revision="1f")
        single = found.targets.add(
            id="s", kind=target.TARGET_KIND_SINGLE, model="m", base_url="http://127.0.0.1:1/v1", api_key_env="KEY"
        )
        single.prices["m"].input_picodollars = 1_250_000
        single.prices["m"].output_picodollars = 10_000_000
        single.request_params.CopyFrom(to_value({"temperature": 0.5}))
        found.targets.add(
            id="r", kind=target.TARGET_KIND_MOM, model="auto", max_inference_calls=3, cache_reporting=1, capture_recipe=True
        )
        return found

    async def RegisterTargets(self, request: Any, context: Any) -> planner.ListTargetsResponse:
        await self._enter(request, context)
        self.registered.append(from_value(request.document))
        return planner.ListTargetsResponse()

    async def CreateDatasetPreparation(self, request: Any, context: Any) -> planner.DatasetPreparation:
        await self._enter(request, context)
        if "nonesuch" in request.benchmarks:
            raise InvalidInput("NO_SUCH_BENCHMARK", "there is no benchmark named 'nonesuch'", field="benchmarks")
        job = planner.DatasetPreparation(id=PREPARATION_ID, request=request, status="queued", phase="queued", total_count=1)
        job.create_time.FromSeconds(1_700_000_000)
        job.update_time.FromSeconds(1_700_000_001)
        self.preparations = [job]
        return job

    async def GetDatasetPreparation(self, request: Any, context: Any) -> planner.DatasetPreparation:
        await self._enter(request, context)
        for job in self.preparations:
            if job.id == request.id:
                job.status, job.phase = "completed", "done"
                job.dataset.CopyFrom(a_dataset())
                return job
        raise NotFound("NO_SUCH_PREPARATION", f"there is no preparation named {request.id!r}")

    async def ListDatasetPreparations(self, request: Any, context: Any) -> planner.ListDatasetPreparationsResponse:
        await self._enter(request, context)
        return planner.ListDatasetPreparationsResponse(preparations=self.preparations)

    async def ListDatasets(self, request: Any, context: Any) -> planner.ListDatasetsResponse:
        await self._enter(request, context)
        return planner.ListDatasetsResponse(datasets=[a_dataset()])

    async def GetDataset(self, request: Any, context: Any) -> planner.Dataset:
        await self._enter(request, context)
        if request.id != DATASET_ID:
            raise NotFound("NO_SUCH_DATASET", f"there is no dataset named {request.id!r}")
        return a_dataset()

    async def ListDatasetCases(self, request: Any, context: Any) -> planner.ListDatasetCasesResponse:
        await self._enter(request, context)
        found = planner.ListDatasetCasesResponse(total=3, dataset_total=3, limit=request.page_size)
        for index in range(request.cursor, min(3, request.cursor + request.page_size)):
            case = found.cases.add(id=f"c{index}", benchmark="arc-agi-2", category="all", question="?", choices=["A", "B"])
            case.messages.add(role="user", content=to_value("?"))
            case.input.CopyFrom(to_value({"train": [], "test": [[1, 2]]}))
        if request.cursor + request.page_size < 3:
            found.next_cursor = request.cursor + request.page_size
        return found

    async def ComposeDatasets(self, request: Any, context: Any) -> planner.Dataset:
        await self._enter(request, context)
        return a_dataset()

    async def GetDatasetSelection(self, request: Any, context: Any) -> planner.DatasetSelection:
        await self._enter(request, context)
        found = planner.DatasetSelection(profile=request.profile, split="dev", seed=1)
        found.benchmarks.add(benchmark="arc-agi-2", eligible=True, case_count=12, source_ids=[DATASET_ID])
        found.benchmarks.add(benchmark="hle", reason="not_prepared")
        return found

    def _plan(self, manifest: Any) -> plan_pb2.Plan:
        if not isinstance(manifest, dict) or manifest.get("version") != "sr-bench-1.0":
            raise InvalidInput("BAD_VERSION", "version is missing; expected 'sr-bench-1.0'", field="version")
        manifest = FROZEN_DEFAULTS | manifest
        content = {key: value for key, value in manifest.items() if key not in ("plan_sha256", "name")}
        sha = digest(content)
        given = manifest.get("plan_sha256")
        frozen = {**manifest, "plan_sha256": sha}
        plan = plan_pb2.Plan(
            plan_sha256=sha,
            case_sha256="c" * 64,
            version="sr-bench-1.0",
            name=str(manifest.get("name", "sr-bench")),
            mode="live",
            profile="quick",
            seed=1,
            cost_policy="require_priced",
            output_policy="bounded",
            total=2,
            case_count=1,
            case_counts={"arc-agi-2": 2},
            benchmark_weights={"arc-agi-2": 0.1},
            worst_case_cost_picodollars=2_500_000_000_000,
            most_calls=3,
        )
        plan.limits.max_cost_picodollars = 5 * 10**12
        plan.targets.add(id="s", kind=target.TARGET_KIND_SINGLE, model="m").prices["m"].input_picodollars = 2_000_000
        plan.manifest.CopyFrom(to_value(frozen))
        if given is not None and given != sha:
            raise Conflict("REVIEWED_PLAN_CHANGED", "the manifest is not the plan that was reviewed", plan_sha256=sha)
        return plan

    async def FreezePlan(self, request: Any, context: Any) -> plan_pb2.Plan:
        await self._enter(request, context)
        return self._plan(from_value(request.manifest))

    async def EstimatePower(self, request: Any, context: Any) -> power_pb2.PowerEstimate:
        await self._enter(request, context)
        return power_pb2.PowerEstimate(profiles=[power_pb2.ProfilePower(profile="this plan", case_count=3)])

    async def GetPlan(self, request: Any, context: Any) -> plan_pb2.Plan:
        await self._enter(request, context)
        raise NotFound("NO_SUCH_PLAN", f"there is no plan {request.plan_sha256!r}", plan=request.plan_sha256)

    async def StreamPlanCases(self, request: Any, context: Any) -> AsyncIterator[planner.StreamPlanCasesResponse]:
        await self._enter(request, context)
        for index in range(3):
            yield planner.StreamPlanCasesResponse(cases=[plan_pb2.PlanCase(index=index, case_id=f"c{index}")])

    async def StreamReferences(self, request: Any, context: Any) -> AsyncIterator[Any]:
        raise AssertionError("references must never be asked for through the gateway")
        yield

    async def CreateRun(self, request: Any, context: Any) -> planner.Run:
        actor = await self._enter(request, context)
        plan = self._plan(from_value(request.manifest))
        key = (actor.id, request.idempotency_key)
        if key in self.keys:
            run = self.runs[self.keys[key]]
            if run.plan.plan_sha256 != plan.plan_sha256:
                raise Conflict("IDEMPOTENCY_CONFLICT", "the key belongs to another plan", key=request.idempotency_key)
            return self._shown(run, True)
        run = planner.Run(id=ids.run_id(), owner=actor.id, status="queued", plan=plan, idempotency_key=key[1])
        run.progress.total = 2
        run.create_time.FromNanoseconds(time.time_ns())
        run.update_time.CopyFrom(run.create_time)
        self.runs[run.id] = run
        self.keys[key] = run.id
        return self._shown(run, True)

    async def GetRun(self, request: Any, context: Any) -> planner.Run:
        run = self._run(request.id, await self._enter(request, context))
        if run.status in ("queued", "running"):
            self.finish_after -= 1
            run.status = "running" if self.finish_after > 0 else "completed"
            run.progress.completed = 2 if run.status == "completed" else 1
        return self._shown(run, request.summary)

    async def ListRuns(self, request: Any, context: Any) -> planner.ListRunsResponse:
        actor = await self._enter(request, context)
        filters = (request.status, request.query, request.mode)
        before = pages.decode(request.page_token, *filters)
        size = pages.page_size(request.page_size, 50, 500)
        seen = [run for run in self.runs.values() if actor.sees_all or run.owner == actor.id]
        seen = [run for run in seen if request.status in ("", run.status)]
        newest = sorted(seen, key=lambda run: run.id, reverse=True)
        rest = [run for run in newest if before is None or run.id < str(before)]
        page = [self._shown(run, True) for run in rest[:size]]
        token = pages.encode(page[-1].id, *filters) if len(rest) > size else ""
        return planner.ListRunsResponse(runs=page, next_page_token=token, total=len(seen))

    async def WatchRun(self, request: Any, context: Any) -> AsyncIterator[planner.Run]:
        run = self._run(request.id, await self._enter(request, context))
        for status, completed in (("running", 0), ("running", 1), ("completed", 2)):
            shown = self._shown(run, True)
            shown.status = status
            shown.progress.completed = completed
            yield shown
            if self.hold_watch:
                try:
                    await asyncio.Event().wait()
                finally:
                    self.watched_until_cancelled.set()

    async def CancelRun(self, request: Any, context: Any) -> planner.Run:
        run = self._run(request.id, await self._enter(request, context))
        if run.status not in ENDED:
            run.status, run.reason, run.error = "cancelled", "cancelled", "somebody stopped the run"
        return self._shown(run, True)

    async def PauseRun(self, request: Any, context: Any) -> planner.Run:
        run = self._run(request.id, await self._enter(request, context))
        run.paused = True
        return self._shown(run, True)

    async def ResumeRun(self, request: Any, context: Any) -> planner.Run:
        run = self._run(request.id, await self._enter(request, context))
        run.paused = False
        return self._shown(run, True)

    async def SetRunConcurrency(self, request: Any, context: Any) -> planner.Run:
        run = self._run(request.id, await self._enter(request, context))
        run.concurrency = request.concurrency
        return self._shown(run, True)

    async def ListRunEvents(self, request: Any, context: Any) -> planner.ListRunEventsResponse:
        run = self._run(request.run_id, await self._enter(request, context))
        found = planner.ListRunEventsResponse()
        for seq, kind in ((7, "created"), (9, "running"), (12, "completed")):
            if seq > request.after and request.type in ("", kind):
                event = found.events.add(seq=seq, run_id=run.id, type=kind, data=to_value({"n": seq}))
                event.create_time.FromSeconds(1_700_000_000 + seq)
        found.has_more = len(found.events) > request.page_size
        del found.events[request.page_size :]
        return found

    async def GetRunCase(self, request: planner.GetRunCaseRequest, context: Any) -> planner.DatasetCase:
        await self._enter(request, context)
        return planner.DatasetCase(id=request.case_id, benchmark="arc-agi-2", question="2+2?", choices=["3", "4"])

    async def ListCells(self, request: Any, context: Any) -> planner.ListCellsResponse:
        self._run(request.run_id, await self._enter(request, context))
        found = planner.ListCellsResponse()
        for cell in range(2):
            if request.state in (0, 3 + cell):
                found.cells.add(cell=cell, case_id=f"c{cell}", target_id="s", state=3 + cell, reason="x" if cell else "")
        return found


class FakeRecoveries(recovery_rpc.RecoveryServiceServicer):
    """Plans one cell of every run, and starts children of runs that `planner` knows."""

    def __init__(self, planner: FakePlanner) -> None:
        self._planner = planner

    async def PlanRecovery(self, request: Any, context: Any) -> recovery.RecoveryPlan:
        run = self._planner._run(request.run_id, await self._planner._enter(request, context))
        found = recovery.RecoveryPlan(parent_run_id=run.id, mode=request.mode or "undispatched", plan_sha256="a" * 64)
        found.eligible_cells.add(case_id="c1", target_id="s", state="failed", spend_upper_picodollars=7_000_000)
        found.excluded.add(case_id="c2", target_id="s", reason="completed_evidence_is_preserved")
        found.counts.excluded_by_reason["completed_evidence_is_preserved"] = 1
        found.parent.progress.total = 2
        return found

    async def RecoverRun(self, request: Any, context: Any) -> planner.Run:
        run = self._planner._run(request.run_id, await self._planner._enter(request, context))
        if request.plan_sha256 != "a" * 64:
            raise Conflict("RECOVERY_PLAN_REQUIRED", "make a new recovery plan")
        child = self._planner._shown(run, True)
        child.parent_run_id = run.id
        return child

    async def GetLineage(self, request: Any, context: Any) -> recovery.Lineage:
        run = self._planner._run(request.run_id, await self._planner._enter(request, context))
        return recovery.Lineage(runs=[self._planner._shown(run, True)])


async def start_planner(fake: FakePlanner, address: str = "127.0.0.1:0") -> Server:
    server = Server(address)
    server.add(fake, planner_rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    recoveries = FakeRecoveries(fake)
    server.add(recoveries, recovery_rpc.add_RecoveryServiceServicer_to_server, "srbench.v1.RecoveryService")
    await server.start()
    return server


async def start_accounting(fake: FakeAccounting, address: str = "127.0.0.1:0") -> Server:
    server = Server(address)
    server.add(fake, accounting_rpc.add_AccountingServiceServicer_to_server, "srbench.v1.AccountingService")
    server.add(FakeLedger(fake), ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
    await server.start()
    return server


async def main() -> None:
    """Runs both until the process is ended, as the other side of a gateway under test; prints their addresses."""
    planner_server = await start_planner(FakePlanner())
    accounting_server = await start_accounting(FakeAccounting())
    print(f"127.0.0.1:{planner_server.port} 127.0.0.1:{accounting_server.port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
