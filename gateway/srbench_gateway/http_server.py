"""The HTTP server: uvicorn on the running loop, with bounds on connections and on slow request heads."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from srbench_gateway.answers import API_HEADERS

MAX_HEAD_BYTES = 64 * 1024
_REFUSED_HEADERS = "".join(f"{name}: {value}\r\n" for name, value in API_HEADERS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBounds:
    """What one client may hold.

    Attributes:
        connections: most open connections.
        head_s: longest time from a connection, or from the end of an answer, to the end of the next request's head.
        keep_alive_s: longest pause between requests on one connection.
        grace_s: how long answers in hand may take once the process is to end.
    """

    connections: int = 1000
    head_s: float = 10.0
    keep_alive_s: float = 30.0
    grace_s: float = 5.0


def bind(host: str, port: int) -> socket.socket:
    """A listening socket on `host`; port 0 takes any free one. Raises: `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host.strip("[]"), port))
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: the process has its own."""

    def __init__(self, app: ASGIApp, bounds: HttpBounds) -> None:
        self.bounds = bounds
        super().__init__(
            uvicorn.Config(
                app,
                http=_protocol(bounds),
                loop="none",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(bounds.keep_alive_s),
                timeout_graceful_shutdown=max(1, int(bounds.grace_s)),
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Refuses new requests, ends those in hand after the grace, and waits for `task`, which runs `serve`."""
        self.should_exit = True
        await task


class Guarded(HttpToolsProtocol):
    """Closes connections beyond the bound, and those whose request head is late or long.

    uvicorn bounds neither: it starts its only timer after the first answer.
    """

    bounds = HttpBounds()
    _head_bytes = 0
    _in_head = True
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            self._refuse(503, "too many connections; try again later")
            return
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if self._late is None:
                self._wait_for_head()
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self._complete_within(data):
                self._refuse(431, f"the request's head is larger than {MAX_HEAD_BYTES} bytes")
                return
        super().data_received(data)

    def _complete_within(self, data: bytes) -> bool:
        """Whether the head ends in this read: what follows it is body."""
        before = self._head_bytes - len(data)
        return b"\r\n\r\n" in data[: max(0, MAX_HEAD_BYTES - before)]

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._cancel_late()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()
        if self.cycle.response_complete:
            # That was the rest of a body that nobody wanted. It stopped uvicorn's keep-alive timer.
            self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete:
            # Answered before the body was read: its rest is thrown away, but not for ever.
            self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_late()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._cancel_late()
        self._late = self.loop.call_later(self.bounds.head_s, self._give_up)

    def _cancel_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """A last word in the shape of all errors, where no request exists to answer."""
        reason = {400: "BAD_REQUEST", 431: "HEAD_TOO_LARGE", 503: "TOO_MANY_CONNECTIONS"}[status]
        body = f'{{"error":"{sentence}","code":"{reason.lower()}","reason":"{reason}"}}'.encode()
        head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n{_REFUSED_HEADERS}"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head.encode() + body)
            self.transport.close()


def _protocol(bounds: HttpBounds) -> type[asyncio.Protocol]:
    """uvicorn makes the protocols itself and takes a class, so the bounds are the class's."""
    return type("Bounded", (Guarded,), {"bounds": bounds})
