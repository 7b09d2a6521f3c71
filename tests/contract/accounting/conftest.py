"""A real accounting service in this process, a fake planner behind real gRPC, and builders of facts."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench.v1 import plan_pb2, planner_service_pb2_grpc, report_pb2, target_pb2, work_queue_service_pb2_grpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.columns import CallColumns, OutcomeColumns
from srbench_accounting.derived import Derived
from srbench_accounting.ledger_servicer import LedgerServicer
from srbench_accounting.routing import RoutingColumns
from srbench_accounting.servicer import Accounting
from srbench_accounting.store import Store, open_store
from srbench_kit import auth, wire
from srbench_kit.errors import NotFound
from srbench_kit.serving import Server

RUN = "run-0123456789abcdef0123"
DIGEST = hashlib.sha256(b"request").hexdigest()


class FakePlanner(planner_service_pb2_grpc.PlannerServiceServicer, work_queue_service_pb2_grpc.WorkQueueServiceServicer):
    """Knows the runs that it is given; counts what it is asked."""

    def __init__(self) -> None:
        self.contexts: dict[str, queue_pb.RunContext] = {}
        self.cases: list[plan_pb2.PlanCase] = []
        self.asked: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def add_run(
        self, run_id: str = RUN, *, max_cost: int = 1000, max_calls: int = 4, policy: str = "require_priced"
    ) -> None:
        """Adds a run of two targets, `fast` and `slow`, and a judge."""
        limits = plan_pb2.Limits(max_cost_picodollars=max_cost, max_calls_per_case=max_calls)
        self.contexts[run_id] = queue_pb.RunContext(
            run_id=run_id,
            plan_sha256="p" * 64,
            limits=limits,
            targets=[target_pb2.Target(id="fast"), target_pb2.Target(id="slow")],
            auxiliary_targets=[target_pb2.Target(id="judge")],
            cost_policy=policy,
        )

    def add_cases(self, count: int) -> None:
        """Adds cases of two benchmarks in turn."""
        names = ("mmlu-pro", "arc-agi-2")
        self.cases = [
            plan_pb2.PlanCase(index=n, case_id=f"case-{n}", benchmark=names[n % 2], target_indexes=[0, 1])
            for n in range(count)
        ]

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        auth.require_role(context, "accounting")
        self.asked.append(request.run_id)
        if request.run_id in self.gates:
            await self.gates[request.run_id].wait()
        if request.run_id not in self.contexts:
            raise NotFound("NO_SUCH_RUN", "no such run")
        return self.contexts[request.run_id]

    async def GetRun(self, request: planner_pb.GetRunRequest, context: Any) -> planner_pb.Run:
        if request.id not in self.contexts:
            raise NotFound("NO_SUCH_RUN", "no such run")
        return planner_pb.Run(id=request.id, status="running", create_time=Timestamp(seconds=1000))

    async def StreamPlanCases(
        self, request: planner_pb.StreamPlanCasesRequest, context: Any
    ) -> AsyncIterator[planner_pb.StreamPlanCasesResponse]:
        for start in range(0, len(self.cases), 1000):
            yield planner_pb.StreamPlanCasesResponse(cases=self.cases[start : start + 1000])


class FakeTarget:
    """Costs what the usage object says; reserves one picodollar an output token."""

    def price(self, receipt: pb.Receipt) -> Derived:
        usage = json.loads(receipt.usage_json or b"{}")
        flags = () if usage else ("no_usage",)
        return Derived(
            input_tokens=usage.get("in"),
            output_tokens=usage.get("out"),
            cost=usage.get("cost"),
            cost_lower=None if "cost" in usage else 0,
            usage_flags=flags,
            cache_read_reported=bool(usage) if usage else None,
            inference_call_count=1,
        )

    def reserve(self, *, body_byte_count: int, message_count: int, max_output_tokens: int) -> int | None:
        return max_output_tokens if body_byte_count else None


@dataclass
class FakeDeriving:
    """The core's place: keeps the columns it was last given."""

    outcomes: OutcomeColumns | None = None
    calls: CallColumns | None = None

    def target(self, target: target_pb2.Target) -> FakeTarget:
        return FakeTarget()

    def report(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
        *,
        recoveries: Sequence[planner_pb.Run] = (),
        correction: Any = None,
        routings: RoutingColumns | None = None,
    ) -> report_pb2.Report:
        self.outcomes, self.calls = outcomes, calls
        return report_pb2.Report(run_id=run.id, status=run.status)


def stamp(micros: int) -> Timestamp:
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def packed_evidence(body: bytes, headers: Sequence[tuple[str, str]] = (("content-type", "text/event-stream"),)) -> bytes:
    message = pb.Evidence(http_status=200, body=body, clean_end=True)
    for name, value in headers:
        message.headers.add(name=name, value=value)
    return zstandard.compress(message.SerializeToString())


def answer(text: str) -> bytes:
    """A whole streamed answer."""
    first = json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]})
    last = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return f"data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n".encode()


@dataclass
class Facts:
    """Builds facts with growing sequences."""

    run_id: str = RUN
    sequence: int = 0

    def _next(self) -> int:
        self.sequence += 1
        return self.sequence

    def key(self, cell: int, ordinal: int = 0, offer: int = 0) -> pb.CallKey:
        return pb.CallKey(run_id=self.run_id, cell=cell, ordinal=ordinal, offer=offer)

    def dispatch(self, cell: int, ordinal: int = 0, offer: int = 0, **changes: Any) -> pb.Fact:
        values: dict[str, Any] = {
            "token": 1,
            "case_index": cell // 2,
            "target_index": cell % 2,
            "role": pb.CALL_ROLE_SUBJECT,
            "request_sha256": DIGEST,
            "request_byte_count": 100,
            "message_count": 1,
            "max_output_tokens": 100,
            "dispatch_time": stamp(1_700_000_000_000_000 + cell),
            "executor_id": "e1",
        }
        values |= changes
        return pb.Fact(sequence=self._next(), dispatch=pb.Dispatch(key=self.key(cell, ordinal, offer), **values))

    def receipt(self, cost: int | None = 60, **changes: Any) -> pb.Receipt:
        values: dict[str, Any] = {
            "status": pb.CALL_STATUS_COMPLETED,
            "http_status": 200,
            "finish_reason": "stop",
            "output_complete": True,
            "response_model": "m",
            "usage_final": True,
            "latency_ns": 600_000_000,
            "ttft_ns": 200_000_000,
            "first_token_clock": "kernel",
            "start_time": stamp(1_700_000_000_000_500),
            "finish_time": stamp(1_700_000_000_600_500),
        }
        if cost is not None:
            values["usage_json"] = json.dumps({"in": 3, "out": 4, "cost": cost}).encode()
        return pb.Receipt(**(values | changes))

    def settle(
        self, cell: int, ordinal: int = 0, offer: int = 0, *, evidence: bytes = b"", **changes: Any
    ) -> list[pb.Fact]:
        key = self.key(cell, ordinal, offer)
        parts = self.parts(key, evidence)
        settle = pb.Settle(key=key, receipt=self.receipt(**changes))
        if evidence:
            settle.evidence_sha256 = hashlib.sha256(evidence).hexdigest()
            settle.evidence_byte_count = len(evidence)
        return [*parts, pb.Fact(sequence=self._next(), settle=settle)]

    def parts(self, key: pb.CallKey, evidence: bytes, size: int = 1 << 20) -> list[pb.Fact]:
        return [
            pb.Fact(sequence=self._next(), evidence=pb.EvidenceChunk(key=key, offset=at, data=evidence[at : at + size]))
            for at in range(0, len(evidence), size)
        ]

    def outcome(self, cell: int, **changes: Any) -> pb.Fact:
        values: dict[str, Any] = {
            "token": 1,
            "case_index": cell // 2,
            "target_index": cell % 2,
            "state": queue_pb.CELL_STATE_DONE,
            "correct": True,
            "score": 1.0,
            "answer_status": "parsed",
            "grader_version": "choice-1",
            "start_time": stamp(1_700_000_000_000_000),
            "finish_time": stamp(1_700_000_001_500_000),
        }
        outcome = pb.CellOutcome(run_id=self.run_id, cell=cell, **(values | changes))
        return pb.Fact(sequence=self._next(), outcome=outcome)


@dataclass
class FactWriter:
    """One open `RecordFacts` stream."""

    stub: rpc.AccountingServiceStub
    _waiting: dict[int, asyncio.Future[pb.FactAck]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._call = self.stub.RecordFacts()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for response in self._call:
            for ack in response.acks:
                self._waiting.pop(ack.sequence).set_result(ack)

    def send_later(self, *facts: pb.Fact | list[pb.Fact]) -> asyncio.Task[list[pb.FactAck]]:
        """Sends without waiting for the acknowledgements."""
        return asyncio.ensure_future(self.send(*facts))

    async def send(self, *facts: pb.Fact | list[pb.Fact]) -> list[pb.FactAck]:
        """Sends facts in one message and waits for the acknowledgements of those that get one."""
        flat = [fact for group in facts for fact in (group if isinstance(group, list) else [group])]
        acked = [fact for fact in flat if fact.WhichOneof("fact") not in ("evidence", "activity")]
        futures = [self._waiting.setdefault(fact.sequence, asyncio.get_running_loop().create_future()) for fact in acked]
        await self._call.write(pb.RecordFactsRequest(facts=flat))
        return [await future for future in futures]

    async def reasons(self, *facts: pb.Fact | list[pb.Fact]) -> list[str]:
        return [ack.reason for ack in await self.send(*facts)]

    async def close(self) -> None:
        await self._call.done_writing()
        await self._reading


@dataclass
class Service:
    """A running service and stubs in the roles that may call it."""

    store: Store
    planner: FakePlanner
    executor: rpc.AccountingServiceStub
    as_planner: rpc.AccountingServiceStub
    gateway: rpc.AccountingServiceStub
    deriving: FakeDeriving
    channels: dict[str, aio.Channel]

    def ledger(self, role: str = "gateway") -> Any:
        """The whole ledger, for a service in `role`."""
        return ledger_rpc.LedgerServiceStub(self.channels[role])

    async def spend(self, run_id: str = RUN) -> pb.Spend:
        return await self.gateway.GetSpend(pb.GetSpendRequest(run_id=run_id))

    async def fence(self, cell: int, token: int, *, keep_open: bool = False) -> pb.CellFacts:
        fence = pb.CellFence(cell=cell, token=token, case_index=cell // 2, target_index=cell % 2)
        request = pb.FenceCellsRequest(run_id=RUN, fences=[fence], keep_open=keep_open)
        return (await self.as_planner.FenceCells(request)).cells[0]


@asynccontextmanager
async def planner_server(planner: FakePlanner) -> AsyncIterator[str]:
    server = Server("127.0.0.1:0")
    server.add(planner, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    server.add(planner, work_queue_service_pb2_grpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
    await server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.drain(0)


@asynccontextmanager
async def running(folder: Path, planner: FakePlanner, planner_address: str) -> AsyncIterator[Service]:
    """The service on the store in `folder`."""
    deriving = FakeDeriving()
    async with PlannerClient(planner_address) as client:
        store = open_store(folder, f"sqlite:///{folder / 'accounting.sqlite3'}", client, deriving)
        server = Server("127.0.0.1:0")
        server.add(
            Accounting(store, client, GraderClient("")),
            rpc.add_AccountingServiceServicer_to_server,
            "srbench.v1.AccountingService",
        )
        server.add(LedgerServicer(store), ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
        await server.start()
        address = f"127.0.0.1:{server.port}"
        channels: dict[str, aio.Channel] = {
            role: wire.channel(address, auth.service_metadata(role)) for role in ("executor", "planner", "gateway")
        }
        stubs = [rpc.AccountingServiceStub(channel) for channel in channels.values()]
        try:
            yield Service(store, planner, stubs[0], stubs[1], stubs[2], deriving, channels)
        finally:
            for channel in channels.values():
                await channel.close()
            await server.drain(0)
            store.close()


@pytest.fixture
def planner() -> FakePlanner:
    planner = FakePlanner()
    planner.add_run()
    planner.add_cases(1000)
    return planner


@pytest.fixture
async def planner_address(planner: FakePlanner) -> AsyncIterator[str]:
    async with planner_server(planner) as address:
        yield address


@pytest.fixture
async def service(tmp_path: Path, planner: FakePlanner, planner_address: str) -> AsyncIterator[Service]:
    async with running(tmp_path, planner, planner_address) as found:
        yield found


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
async def writer(service: Service) -> AsyncIterator[FactWriter]:
    found = FactWriter(service.executor)
    yield found
    await found.close()


@pytest.fixture
def evidence_of() -> Any:
    """Makes the compressed evidence of a whole answer with a text."""
    return lambda text: packed_evidence(answer(text))


@pytest.fixture
def other_facts(planner: FakePlanner) -> Facts:
    """Builds facts of a second run; their sequences start high."""
    planner.add_run("run-other")
    return Facts("run-other", sequence=1000)


@pytest.fixture
def stuck_planner(planner: FakePlanner) -> asyncio.Event:
    """The planner answers for the second run only once this event is set."""
    planner.gates["run-other"] = asyncio.Event()
    return planner.gates["run-other"]


@pytest.fixture
def restartable(tmp_path: Path, planner: FakePlanner, planner_address: str) -> Any:
    """Starts the service on the same store, as often as it is called."""

    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Service, FactWriter]]:
        async with running(tmp_path, planner, planner_address) as service:
            writer = FactWriter(service.executor)
            yield service, writer
            await writer.close()

    return start


@pytest.fixture
def fact_writer(service: Service) -> Any:
    """Opens a further stream."""
    return lambda: FactWriter(service.executor)


@pytest.fixture
def facts_of() -> Any:
    """A builder of facts whose sequences start at a number."""
    return lambda sequence: Facts(sequence=sequence)
