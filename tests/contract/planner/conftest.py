"""The planner over real gRPC, with a small ledger on the other side; no product code is replaced but the datasets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2, planner_service_pb2, planner_service_pb2_grpc
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import ledger_service_pb2 as ledger_pb2
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import work_queue_service_pb2 as queue_pb2
from srbench.v1 import work_queue_service_pb2_grpc as queue_rpc
from srbench_kit import auth, wire
from srbench_kit.errors import Unreachable
from srbench_kit.serving import Server
from srbench_kit.values import to_value
from srbench_planner import assembly, store
from srbench_planner.accounting_client import AccountingClient
from srbench_planner.assembly import PlanService
from srbench_planner.forwarding import Forwarding
from srbench_planner.grader_client import GraderClient
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.servicer import PlanServicer

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "planner"))
from planner_doubles import Files, benchmarks

from tests.conftest import on_both_databases

# Longer than any pause of the machine: leases run out where a test says so, by `Planner.later` and `Planner.freeze`.
LEASE_S, OWNER_LEASE_S = 60.0, 60.0


class Ledger(accounting_rpc.AccountingServiceServicer, ledger_rpc.LedgerServiceServicer):
    """What accounting would say: ends by (run, cell), facts of cells, and every fence and halt it was asked for."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[str, int], tuple[int, str]] = {}
        self.fenced: dict[tuple[str, int], int] = {}
        self.halted: dict[str, str] = {}
        self.cells: dict[str, list[ledger_pb2.CellLedger]] = {}
        self.spend = accounting_service_pb2.Spend()
        self.away = False
        self.refused = 0
        self.saved: dict[str, list[accounting_service_pb2.Outcome]] = {}
        self.calls: dict[str, list[accounting_service_pb2.Call]] = {}
        self.replays: list[accounting_service_pb2.RecordReplayRequest] = []
        self.replay_failure: Exception | None = None

    async def ListOutcomes(self, request: Any, context: Any) -> accounting_service_pb2.ListOutcomesResponse:
        return accounting_service_pb2.ListOutcomesResponse(results=self.saved.get(request.run_id, ()))

    async def ListCalls(self, request: Any, context: Any) -> accounting_service_pb2.ListCallsResponse:
        return accounting_service_pb2.ListCallsResponse(calls=self.calls.get(request.run_id, ()))

    async def RecordReplay(self, request: Any, context: Any) -> accounting_service_pb2.RecordReplayResponse:
        if self.replay_failure is not None:
            raise self.replay_failure
        self.replays.append(request)
        return accounting_service_pb2.RecordReplayResponse(cell_count=len(request.cells))

    async def FenceCells(self, request: Any, context: Any) -> accounting_service_pb2.FenceCellsResponse:
        if self.away:
            self.refused += 1
            raise Unreachable("STORAGE_UNAVAILABLE", "the store does not answer")
        response = accounting_service_pb2.FenceCellsResponse()
        for fence in request.fences:
            self.fenced[request.run_id, fence.cell] = fence.token
            state, reason = self.outcomes.get((request.run_id, fence.cell), (0, ""))
            response.cells.add(cell=fence.cell, outcome=state, reason=reason)
        return response

    async def HaltRun(self, request: Any, context: Any) -> accounting_service_pb2.HaltRunResponse:
        self.halted[request.run_id] = request.reason
        return accounting_service_pb2.HaltRunResponse()

    async def GetSpend(self, request: Any, context: Any) -> accounting_service_pb2.Spend:
        return self.spend

    async def StreamCellLedgers(self, request: Any, context: Any) -> AsyncIterator[ledger_pb2.StreamCellLedgersResponse]:
        auth.require_role(context, "planner")
        if self.away:
            raise Unreachable("STORAGE_UNAVAILABLE", "the store does not answer")
        yield ledger_pb2.StreamCellLedgersResponse(cells=self.cells.get(request.run_id, []))


@dataclass(slots=True)
class Planner:
    """A served planner and clients in every role."""

    service: PlanService
    server: Server
    ledger: Ledger
    ticking: asyncio.Task[None]
    facts: AccountingClient
    forwarding: Forwarding
    channels: dict[Any, aio.Channel] = field(default_factory=dict)
    closed: bool = False

    def channel(self, role: str, actor: auth.Actor | None = None) -> aio.Channel:
        key = (role, actor)
        if key not in self.channels:
            metadata = auth.service_metadata(role) | (auth.actor_metadata(actor) if actor else {})
            self.channels[key] = wire.channel(f"127.0.0.1:{self.server.port}", metadata)
        return self.channels[key]

    def plans(self, actor: auth.Actor | None = None, role: str = "gateway") -> Any:
        return planner_service_pb2_grpc.PlannerServiceStub(self.channel(role, actor))

    def recoveries(self, actor: auth.Actor | None = None) -> Any:
        return recovery_rpc.RecoveryServiceStub(self.channel("gateway", actor))

    def queue(self, role: str = "executor") -> Any:
        return queue_rpc.WorkQueueServiceStub(self.channel(role))

    async def run(self, manifest: dict[str, Any], key: str = "k", actor: auth.Actor | None = None) -> Any:
        request = planner_service_pb2.CreateRunRequest(manifest=to_value(manifest), idempotency_key=key)
        return await self.plans(actor).CreateRun(request)

    async def get(self, run_id: str) -> Any:
        return await self.plans().GetRun(planner_service_pb2.GetRunRequest(id=run_id, summary=True))

    async def lease(self, most: int = 100, executor: str = "e1", incarnation: str = "i1", wait_s: float = 0) -> list[Any]:
        request = queue_pb2.LeaseCellsRequest(executor_id=executor, incarnation=incarnation, max_cells=most)
        request.drivers.append("single_turn")
        request.wait.FromMilliseconds(int(wait_s * 1000))
        return list((await self.queue().LeaseCells(request)).leases)

    async def complete(self, leases: list[Any], state: int = queue_pb2.CELL_STATE_DONE, reason: str = "") -> Any:
        request = queue_pb2.CompleteCellsRequest(executor_id="e1")
        for lease in leases:
            named = queue_pb2.LeaseRef(run_id=lease.run_id, cell=lease.cell, token=lease.token)
            request.completions.add(lease=named, state=state, reason=reason)
        return await self.queue().CompleteCells(request)

    async def ended(self, run_id: str) -> Any:
        """The run once it has ended."""
        last = None
        async for run in self.plans().WatchRun(planner_service_pb2.WatchRunRequest(id=run_id), timeout=120):
            last = run
        return last

    def later(self, seconds: float = LEASE_S + 1) -> None:
        """Lets time pass for the queue; unless told, so much that every lease runs out."""
        before = self.service.scheduler.clock
        self.service.scheduler.clock = lambda: before() + seconds

    def freeze(self) -> None:
        """Stops renewing the right to the queue until it has run out, as a process that was stopped in its tracks."""
        ownership = self.service.ownership
        ownership._closing.set()
        if ownership._renewing is not None:
            ownership._renewing.join()
        with self.service.engine.begin() as connection:
            connection.execute(store.queue_owner.update().values(expires_us=0))

    async def close(self) -> None:
        """Ends this process object; nothing is flushed that was not durable."""
        self.closed = True
        self.ticking.cancel()
        await asyncio.gather(self.ticking, return_exceptions=True)
        for channel in self.channels.values():
            await channel.close()
        await self.server.drain(0)
        await self.forwarding.close()
        self.service.close()
        await self.facts.close()


Start = Callable[..., Awaitable[Planner]]


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
async def ledger() -> AsyncIterator[tuple[Ledger, int]]:
    server, ledger = Server("127.0.0.1:0"), Ledger()
    server.add(ledger, accounting_rpc.add_AccountingServiceServicer_to_server, "srbench.v1.AccountingService")
    server.add(ledger, ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
    await server.start()
    yield ledger, server.port
    await server.drain(0)


@pytest.fixture
async def start(
    tmp_path: Path, files: Files, ledger: tuple[Ledger, int], monkeypatch: pytest.MonkeyPatch, database_of: str
) -> AsyncIterator[Start]:
    """Starts planners over one store, or in a folder of their own; each call is a new process as far as memory goes."""
    monkeypatch.setenv("SR_BENCH_DATABASE_URL", database_of.format("planner"))
    monkeypatch.setenv("SR_BENCH_LEASE_S", str(LEASE_S))
    monkeypatch.setenv("SR_BENCH_OWNER_LEASE_S", str(OWNER_LEASE_S))
    monkeypatch.delenv("SR_BENCH_INTERNAL_TOKEN", raising=False)
    started: list[Planner] = []

    async def begin(folder: Path = tmp_path) -> Planner:
        facts = AccountingClient(f"127.0.0.1:{ledger[1]}")
        service = assembly.assemble(folder, benchmarks(), files, facts)
        forwarding = Forwarding(service.ownership, service.ready)
        server = Server("127.0.0.1:0", [forwarding])
        if await service.ownership.take():
            await service.start()
        plans = PlanServicer(
            *(service.registry, service.freezer, service.plans, service.runs, service.scheduler),
            benchmarks=benchmarks(),
            hidden=HiddenParts(folder),
            grader=GraderClient(""),
            runners=service.runners,
        )
        server.add(plans, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
        recovery = recovery_rpc.add_RecoveryServiceServicer_to_server
        server.add(service.recoveries, recovery, "srbench.v1.RecoveryService")
        server.add(service.work_queue, queue_rpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
        await server.start()
        service.ownership.announce(server.listening)
        ticking = asyncio.create_task(service.background())
        planner = Planner(service, server, ledger[0], ticking, facts, forwarding)
        started.append(planner)
        return planner

    yield begin
    for planner in started:
        if not planner.closed:
            await planner.close()


@pytest.fixture
async def planner(start: Start) -> Planner:
    return await start()


pytest_generate_tests = on_both_databases
