"""A scripted model endpoint on a raw socket, and calls to it through the executor's own transport."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import grpc
import pytest
import uvloop
import zstandard
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import plan_pb2, target_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.accounting_service_pb2_grpc import (
    AccountingServiceServicer,
    AccountingServiceStub,
    add_AccountingServiceServicer_to_server,
)
from srbench.v1.grader_service_pb2_grpc import (
    GraderServiceServicer,
    GraderServiceStub,
    add_GraderServiceServicer_to_server,
)
from srbench.v1.work_queue_service_pb2_grpc import (
    WorkQueueServiceServicer,
    WorkQueueServiceStub,
    add_WorkQueueServiceServicer_to_server,
)
from srbench_executor import receipts, request
from srbench_executor.call import Call, CallBounds
from srbench_executor.caller import Transports
from srbench_executor.connection import enable_stamps, kernel_arrival_ns
from srbench_executor.exchange import NotAccepted
from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.receipts import Settlement
from srbench_executor.spool import Spool
from srbench_executor.worker import Worker
from srbench_kit import serving, wire
from srbench_kit.completion import Headers
from srbench_kit.redact import Redactor
from srbench_kit.values import to_value

SSE = {"content-type": "text/event-stream; charset=utf-8"}


@dataclass(slots=True, kw_only=True)
class Answer:
    """What to send back: status line, headers, pieces with a delay in ms before each, and how it ends."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(SSE))
    chunks: Sequence[tuple[float, bytes]] = ()
    end: str = "eof"
    chunked: bool = True
    trailers: dict[str, str] = field(default_factory=dict)
    raw_head: bytes = b""
    gate: asyncio.Event | None = None


class Upstream:
    """The endpoint. `requests` holds head and body of all that came; answers are taken in order, the last for ever."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: list[Answer] = [Answer()]
        self.requests: list[tuple[bytes, bytes]] = []
        self.connections = 0
        self.open_connections = 0
        self.late_ms = 0.0
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def hang_up(self) -> None:
        """Closes all connections."""
        writers = list(self._writers)
        for writer in writers:
            writer.close()
        for writer in writers:
            await writer.wait_closed()

    @property
    def base_url(self) -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        self.open_connections += 1
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        self.requests.append((head, await reader.readexactly(length)))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if answer.gate is not None:
            await answer.gate.wait()
        return await self._play(answer, reader, writer)

    async def _play(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.end == "reset" and not answer.status:
            return _reset(writer)
        chunked = answer.chunked or answer.end == "abort_chunked"
        writer.write(answer.raw_head or _head(answer, chunked))
        began, planned_ms = time.monotonic(), 0.0
        for delay_ms, data in answer.chunks:
            planned_ms += delay_ms
            if delay_ms:
                await writer.drain()
                await asyncio.sleep(delay_ms / 1000)
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked and data else data)
            await writer.drain()
        # A busy machine wakes this endpoint late; tests of times allow for it.
        self.late_ms = (time.monotonic() - began) * 1000 - planned_ms
        if answer.end == "hang":
            await reader.read(1)
            return False
        if answer.end == "reset":
            # What was written must be on its way before the connection is torn down.
            await asyncio.sleep(0.05)
            return _reset(writer)
        if answer.end == "abort_chunked" or not chunked:
            return False
        trailers = "".join(f"{name}: {value}\r\n" for name, value in answer.trailers.items())
        writer.write(b"0\r\n" + trailers.encode() + b"\r\n")
        await writer.drain()
        return True


def _head(answer: Answer, chunked: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in answer.headers.items())]
    lines += ["transfer-encoding: chunked"] if chunked else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> bool:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


@dataclass(slots=True)
class MemoryLog:
    """Keeps what a call's body log got."""

    body: bytes = b""
    heads: list[int] = field(default_factory=list)

    def head(self, number: int, status: int, headers: Headers) -> None:
        self.heads.append(status)

    def append(self, number: int, data: bytes) -> None:
        self.body += data


@dataclass(slots=True)
class Result:
    """A call and how it was settled."""

    call: Call
    settled: Settlement


class Ask(Protocol):
    """Makes one call."""

    def __call__(
        self, url: str, *, total_s: float = ..., idle_s: float = ..., max_chars: int = ..., key: str = ..., **target: Any
    ) -> Awaitable[Result]: ...


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that the product runs on."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def dated_packets() -> Iterator[None]:
    """The kernel begins to date packets a moment after the first socket asks for it; tests begin after that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        assert enable_stamps(receiver)
        receiver.bind(("127.0.0.1", 0))
        for _ in range(1000):
            sender.sendto(b"x", receiver.getsockname())
            _, ancillary, _, _ = receiver.recvmsg(1, 256)
            if kernel_arrival_ns(ancillary, time.monotonic_ns()) is not None:
                break
            time.sleep(0.001)
        yield


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    server = Upstream()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def make_upstream() -> AsyncIterator[Callable[..., Awaitable[Upstream]]]:
    servers: list[Upstream] = []

    async def make(context: ssl.SSLContext | None = None) -> Upstream:
        server = Upstream(context)
        await server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        await server.stop()


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    made = Transports()
    yield made
    await made.close()


@pytest.fixture
def ask(transports: Transports) -> Ask:
    async def one(
        url: str,
        *,
        total_s: float = 10,
        idle_s: float = 10,
        max_chars: int = 1_000_000,
        key: str = "",
        before: Callable[[Call], None] | None = None,
        **fields: Any,
    ) -> Result:
        target = target_pb2.Target(id="t", model="m", base_url=url, **fields)
        bounds = CallBounds(
            total_s=total_s, idle_s=idle_s, max_output_chars=max_chars, repetition_window=128, repetition_limit=5
        )
        where = request.endpoint(url)
        body = request.request_fields(target, {"temperature": 0}, [{"role": "user", "content": "hi"}], {})
        outgoing = request.outgoing(where, body, request.headers(target, where.host_header, key, ""))
        call = Call(1, bounds, MemoryLog())
        if before is not None:
            before(call)
        redactor = Redactor([key] if key else [])
        transport = transports.for_request(outgoing)
        try:
            exchange = transport.start_now(outgoing, call) or await transport.start(outgoing, call, 2.0)
        except NotAccepted as error:
            call.abandon()
            return Result(call, receipts.not_accepted(error.reason, error.message, redactor))
        call.attach(exchange)
        await call.ended
        settled = receipts.settlement(call, target, request_sha256="x", session_id="", redactor=redactor)
        return Result(call, settled)

    return one


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        with contextlib.suppress(KeyError):
            monkeypatch.delenv(name)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def answer_type() -> type[Answer]:
    return Answer


class FakeQueue(WorkQueueServiceServicer):
    """A planner that hands out the leases it was given and remembers what came back."""

    def __init__(self) -> None:
        self.waiting: list[queue_pb.Lease] = []
        self.context = queue_pb.RunContext(run_id="run-1", plan_sha256="p", case_sha256="c")
        self.completions: list[queue_pb.Completion] = []
        self.incarnations: set[str] = set()
        self.stopped: list[queue_pb.StoppedRun] = []
        self.lost: list[queue_pb.LeaseRef] = []
        self.changed = asyncio.Event()
        self.lease_calls = 0

    async def LeaseCells(self, request: queue_pb.LeaseCellsRequest, context: Any) -> queue_pb.LeaseCellsResponse:
        self.incarnations.add(request.incarnation)
        self.lease_calls += 1
        while not self.waiting:
            self.changed.clear()
            await self.changed.wait()
        leases, self.waiting = self.waiting[: request.max_cells], self.waiting[request.max_cells :]
        return queue_pb.LeaseCellsResponse(leases=leases)

    async def RenewLeases(self, request: queue_pb.RenewLeasesRequest, context: Any) -> queue_pb.RenewLeasesResponse:
        return queue_pb.RenewLeasesResponse(lost=self.lost, stopped_runs=self.stopped)

    async def CompleteCells(self, request: queue_pb.CompleteCellsRequest, context: Any) -> queue_pb.CompleteCellsResponse:
        self.completions += request.completions
        self.changed.set()
        return queue_pb.CompleteCellsResponse()

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        return self.context

    def add(self, *leases: queue_pb.Lease) -> None:
        self.waiting += leases
        self.changed.set()


class FakeLedger(AccountingServiceServicer):
    """An accounting that remembers facts. `refusals` gives answers to dispatches by (cell, offer)."""

    def __init__(self) -> None:
        self.dispatches: list[accounting_pb.Dispatch] = []
        self.settles: list[accounting_pb.Settle] = []
        self.evidence: dict[bytes, bytes] = {}
        self.outcomes: list[accounting_pb.CellOutcome] = []
        self.activity: list[accounting_pb.ActivityReport] = []
        self.refusals: dict[tuple[int, int], accounting_pb.FactAck] = {}
        self.settle_reason = ""
        self.break_after = 0
        self.streams = 0
        self.batches: list[int] = []

    async def RecordFacts(self, requests: Any, context: Any) -> AsyncIterator[accounting_pb.RecordFactsResponse]:
        self.streams += 1
        async for batch in requests:
            self.batches.append(len(batch.facts))
            acks = [ack for fact in batch.facts if (ack := self._take(fact)) is not None]
            if self.break_after and len(self.batches) >= self.break_after:
                # What was taken is recorded, but nobody is told: the executor has to say it again.
                self.break_after = 0
                await context.abort(grpc.StatusCode.UNAVAILABLE, "gone for a moment")
            yield accounting_pb.RecordFactsResponse(acks=acks)

    def _take(self, fact: accounting_pb.Fact) -> accounting_pb.FactAck | None:
        ack = accounting_pb.FactAck(sequence=fact.sequence)
        match fact.WhichOneof("fact"):
            case "dispatch":
                found = self.refusals.get((fact.dispatch.key.cell, fact.dispatch.key.offer))
                if found is not None:
                    ack.MergeFrom(found)
                self.dispatches.append(fact.dispatch)
            case "evidence":
                key = fact.evidence.key.SerializeToString()
                held = self.evidence.get(key, b"")
                self.evidence[key] = held[: fact.evidence.offset] + fact.evidence.data
                return None
            case "settle":
                self.settles.append(fact.settle)
                ack.reason = self.settle_reason
            case "outcome":
                self.outcomes.append(fact.outcome)
            case "activity":
                self.activity.append(fact.activity)
                return None
        return ack

    def saved(self, settle: accounting_pb.Settle) -> accounting_pb.Evidence:
        packed = self.evidence[settle.key.SerializeToString()]
        assert hashlib.sha256(packed).hexdigest() == settle.evidence_sha256
        assert len(packed) == settle.evidence_byte_count
        return accounting_pb.Evidence.FromString(zstandard.decompress(packed, max_output_size=1 << 26))


class FakeGrader(GraderServiceServicer):
    """Finds `B` right and all else wrong."""

    def __init__(self) -> None:
        self.answers: list[grader_pb.Answer] = []
        self.failure = ""

    async def Grade(self, requests: Any, context: Any) -> AsyncIterator[grader_pb.GradeResponse]:
        async for batch in requests:
            grades = []
            for answer in batch.answers:
                self.answers.append(answer)
                right = answer.text == "B"
                grade = grader_pb.Grade(
                    sequence=answer.sequence,
                    correct=right,
                    score=float(right),
                    extracted=to_value(answer.text),
                    answer_status="parsed",
                    strict_format=True,
                    grader_version="fake-1",
                )
                if self.failure:
                    grade = grader_pb.Grade(sequence=answer.sequence, failure_reason=self.failure, failure_message="no")
                grades.append(grade)
            yield grader_pb.GradeResponse(grades=grades)


class Rig:
    """One executor in this process, between fake services and a scripted endpoint, over real sockets."""

    def __init__(self, upstream: Upstream, folder: Path) -> None:
        self.upstream = upstream
        self.folder = folder
        self.queue, self.ledger, self.grader = FakeQueue(), FakeLedger(), FakeGrader()
        limits = self.queue.context.limits
        limits.total_timeout_s, limits.idle_timeout_s, limits.case_timeout_s = 20, 10, 60
        limits.max_output_tokens, limits.max_output_chars = 512, 100_000
        limits.repetition_window, limits.repetition_limit = 128, 5
        self.queue.context.targets.add(id="t", model="m", base_url=upstream.base_url, kind=target_pb2.TARGET_KIND_SINGLE)
        self.worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._server: serving.Server | None = None
        self._channel: grpc.aio.Channel | None = None

    async def start_services(self) -> None:
        self._server = serving.Server("127.0.0.1:0")
        self._server.add(self.queue, add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
        self._server.add(self.ledger, add_AccountingServiceServicer_to_server, "srbench.v1.AccountingService")
        self._server.add(self.grader, add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
        await self._server.start()
        self.address = f"127.0.0.1:{self._server.port}"

    async def start_executor(self, drain_s: float = 5.0) -> None:
        self._channel = wire.channel(self.address, {})
        self.worker = Worker(
            Spool(self.folder),
            FactStream(AccountingServiceStub(self._channel)),
            GradeStream(GraderServiceStub(self._channel)),
            WorkQueueServiceStub(self._channel),
            64,
        )
        self._task = asyncio.create_task(self.worker.run(drain_s))

    async def stop_executor(self) -> None:
        if self._task is not None and self._channel is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._channel.close()
            self._task = None

    async def stop(self) -> None:
        await self.stop_executor()
        if self._server is not None:
            await self._server.drain(0)

    def lease(self, cell: int = 0, token: int = 1, **changes: Any) -> queue_pb.Lease:
        case = plan_pb2.PublicCase(case_id=f"case-{cell}", benchmark="b")
        case.messages.add(role="user", content=to_value(f"question {cell}"))
        fields: dict[str, Any] = {"driver": "single_turn", "grader": "choice", "case_index": cell} | changes
        return queue_pb.Lease(run_id="run-1", cell=cell, token=token, public_case=case, **fields)

    async def finished(self, count: int, within_s: float = 20.0) -> list[queue_pb.Completion]:
        """Waits until `count` cells were given back."""
        async with asyncio.timeout(within_s):
            while len(self.queue.completions) < count:
                self.queue.changed.clear()
                await self.queue.changed.wait()
        return self.queue.completions


@pytest.fixture
async def rig(upstream: Upstream, tmp_path: Path, no_proxies: None) -> AsyncIterator[Rig]:
    made = Rig(upstream, tmp_path / "spool")
    await made.start_services()
    yield made
    await made.stop()
