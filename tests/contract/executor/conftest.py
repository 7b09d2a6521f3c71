"""A scripted model endpoint on a raw socket, and calls to it through the executor's own transport."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
import uvloop
from srbench.v1 import target_pb2
from srbench_executor import receipts, request
from srbench_executor.call import Call, CallBounds
from srbench_executor.caller import Transports
from srbench_executor.exchange import NotAccepted
from srbench_executor.receipts import Settlement
from srbench_kit.completion import Headers
from srbench_kit.redact import Redactor

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
        for delay_ms, data in answer.chunks:
            if delay_ms:
                await writer.drain()
                await asyncio.sleep(delay_ms / 1000)
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked and data else data)
            await writer.drain()
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
