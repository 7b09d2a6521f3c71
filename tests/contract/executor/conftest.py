"""Calls through the executor's own transport, and whole executors between fake services and a scripted endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
import uvloop
from srbench.v1 import target_pb2
from srbench_executor import pool, receipts, request
from srbench_executor.call import Call, CallBounds
from srbench_executor.caller import Transports
from srbench_executor.connection import enable_stamps, kernel_arrival_ns
from srbench_executor.exchange import NotAccepted
from srbench_executor.receipts import Settlement
from srbench_kit.completion import Headers
from srbench_kit.redact import Redactor
from srbench_kit.steady import SteadyClock

from tests.contract.executor.harness_scripts import Harnesses
from tests.contract.executor.rig import Rig
from tests.contract.executor.upstream import Answer, Upstream


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
            if kernel_arrival_ns(ancillary, time.monotonic_ns(), 0) is not None:
                break
            time.sleep(0.001)
        yield


@pytest.fixture(autouse=True)
def patient_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle connection stays usable however long the machine stands still; tests count connections."""
    monkeypatch.setattr(pool, "IDLE_S", 3600.0)


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
        total_s: float = 60,
        idle_s: float = 60,
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
        call = Call(1, bounds, MemoryLog(), SteadyClock())
        if before is not None:
            before(call)
        redactor = Redactor([key] if key else [])
        transport = transports.for_request(outgoing)
        try:
            exchange = transport.start_now(outgoing, call) or await transport.start(outgoing, call, 60.0)
        except NotAccepted as error:
            call.abandon()
            return Result(call, receipts.not_accepted(error.reason, error.message, redactor, time.time_ns()))
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


@pytest.fixture
async def rig(upstream: Upstream, tmp_path: Path, no_proxies: None) -> AsyncIterator[Rig]:
    made = Rig(upstream, tmp_path / "spool")
    await made.start_services()
    yield made
    await made.stop()


@pytest.fixture
def harnesses(rig: Any, tmp_path: Path) -> Harnesses:
    limits = rig.queue.context.limits
    limits.max_log_bytes, limits.max_calls_per_case = 200_000, 32
    return Harnesses(rig, tmp_path)
