"""One HTTP/1.1 connection: requests in, planned answers out, one after the other."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

import httptools
import orjson
from srbench_kit.errors import HTTP_STATUS, SrBenchError

from srbench_testbed.exchange import CLOSE, HANG, RESET, Exchange, document
from srbench_testbed.ledger import Ledger, Row

MAX_BODY_BYTES = 64 * 1024 * 1024
# A peer that does not read holds back an endless stream here.
_FULL_BUFFER = 1_000_000
_STATUS_BY_REASON = {"ETAG_MISMATCH": 412, "PRECONDITION_REQUIRED": 428}


class Service(Protocol):
    """What a connection needs of the testbed."""

    ledger: Ledger

    def respond(self, method: str, target: str, body: bytes, row: Row) -> bytes | Exchange:
        """What to write. Raises: `SrBenchError`."""
        ...


class Connection(asyncio.Protocol):
    """Reads requests with httptools and plays exchanges with timers; a request that comes early waits its turn."""

    def __init__(self, service: Service, live: set[Connection]) -> None:
        self._service, self._live = service, live
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[str, str, list[tuple[bytes, bytes]], bytes, bool]] = deque()
        self._row: Row | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's has the same methods
        self._live.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._live.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._finish("client_closed")
        self._closing = True

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(501, "upgrades are not supported")
        except httptools.HttpParserError:
            self._refuse(400, "this is not HTTP/1.1")

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._target, self._body = b"", b""
        self._headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if (b"expect", b"100-continue") in self._headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body = self._body + body if self._body else body
        if len(self._body) > MAX_BODY_BYTES:
            self._refuse(413, f"the body has more than {MAX_BODY_BYTES} bytes")

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode("ascii")
        self._waiting.append(
            (method, self._target.decode("latin-1"), self._headers, self._body, self._parser.should_keep_alive())
        )
        if self._row is None:
            self._next()

    # Answers.

    def _next(self) -> None:
        """Answers the request that waited longest."""
        while self._waiting and self._row is None and not self._closing:
            method, target, headers, body, keep_alive = self._waiting.popleft()
            row = self._service.ledger.received(method, target, headers, body)
            self._row, self._keep_alive = row, keep_alive
            try:
                answer = self._service.respond(method, target, body, row)
            except SrBenchError as error:
                answer = _refusal(error)
            if isinstance(answer, bytes):
                row.first_byte_ns = time.monotonic_ns()
                self._transport.write(answer)
                self._done("complete")
            else:
                self._begin(answer)

    def _refuse(self, status: int, message: str) -> None:
        """Answers what cannot be read, and closes."""
        if not self._closing:
            self._transport.write(
                _error(status, "BAD_REQUEST", message).head() + _error(status, "BAD_REQUEST", message).body
            )
            self._closing = True
            self._transport.close()

    def _begin(self, exchange: Exchange) -> None:
        assert self._row is not None
        self._row.status = 0 if exchange.no_head else exchange.status
        pending = exchange.interim if exchange.no_head else exchange.interim + exchange.head()
        delay = exchange.head_delay_s
        if exchange.parts and not exchange.no_head:
            # As servers do, the head waits for the first part.
            delay += exchange.parts[0][0]
        self._after(delay, partial(self._play, exchange, 0, pending))

    def _after(self, delay: float, action: Callable[[], None]) -> None:
        if delay > 0:
            self._timer = self._loop.call_later(delay, action)
        else:
            action()

    def _play(self, exchange: Exchange, index: int, pending: bytes) -> None:
        """Writes the part at `index` and all that follow it without delay, then waits for the next."""
        pieces = [pending]
        parts = exchange.parts
        while index < len(parts):
            pieces.append(exchange.coded(parts[index][1]))
            index += 1
            assert self._row is not None
            self._row.sent_parts = index
            if index < len(parts) and parts[index][0] > 0:
                self._send(b"".join(pieces))
                self._after(parts[index][0], partial(self._play, exchange, index, b""))
                return
        if exchange.repeat is None:
            pieces.append(exchange.tail())
        self._send(b"".join(pieces))
        if exchange.repeat is not None:
            self._repeat(exchange, exchange.coded(exchange.repeat[1]))
        else:
            self._end(exchange)

    def _repeat(self, exchange: Exchange, data: bytes) -> None:
        assert exchange.repeat is not None
        if self._transport.get_write_buffer_size() < _FULL_BUFFER:
            self._send(data)
        self._timer = self._loop.call_later(max(exchange.repeat[0], 0.0001), self._repeat, exchange, data)

    def _send(self, data: bytes) -> None:
        """Writes now rather than at the end of the loop's turn, so that the recorded time is the true one."""
        if not data or self._closing:
            return
        if self._transport.get_write_buffer_size() == 0:
            data = data[self._write_some(data) :]
        if data:
            self._transport.write(data)
        if self._row is not None and not self._row.first_byte_ns:
            self._row.first_byte_ns = time.monotonic_ns()

    def _write_some(self, data: bytes) -> int:
        sock = self._transport.get_extra_info("socket")
        try:
            return os.write(sock.fileno(), data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # The peer is gone; the transport finds out by itself and tells connection_lost.
            return len(data)

    def _end(self, exchange: Exchange) -> None:
        how = f"fault:{exchange.fault}" if exchange.fault else "complete"
        if exchange.end == HANG:
            return  # the row stays open until the peer or the testbed goes
        if exchange.end == RESET:
            self._finish(how)
            self._closing = True
            self._reset()
            return
        self._keep_alive = self._keep_alive and exchange.end != CLOSE
        self._done(how)

    def _reset(self) -> None:
        """Closes so that the peer gets RST: lingering is off, unsent bytes are dropped."""
        with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _finish(self, how: str) -> None:
        if self._row is not None:
            self._service.ledger.ended(self._row, how)
            self._row = None

    def _done(self, how: str) -> None:
        """The answer is out; the connection goes on or closes."""
        self._finish(how)
        self._timer = None
        if self._closing:
            return
        if self._keep_alive:
            if self._waiting:
                self._loop.call_soon(self._next)
        else:
            self._closing = True
            self._transport.close()

    def shut(self) -> None:
        """Ends the connection at once; what is in hand counts as cut by the shutdown."""
        self._finish("shutdown")
        self._transport.abort()


def _refusal(error: SrBenchError) -> Exchange:
    status = _STATUS_BY_REASON.get(error.reason) or HTTP_STATUS.get(error.kind, 500)
    return _error(status, error.reason, error.message)


def _error(status: int, reason: str, message: str) -> Exchange:
    """An error as OpenAI writes it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return document(status, orjson.dumps({"error": {"message": message, "type": kind, "code": reason}}))
