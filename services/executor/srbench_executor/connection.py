"""One HTTP/1.1 connection on a raw socket: bytes go from the read callback to the listener, with their time of arrival.

A short read ends inside the first segment that is waiting, so the kernel's receive stamp belongs to it; one long read
would get the last segment's. That is why reads are short until the first token has been seen, and long afterwards.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import httptools
from srbench_kit.completion import Headers

from srbench_executor.exchange import Listener, Origin
from srbench_executor.tls import TlsError, TlsLayer
from srbench_executor.urgent import UrgentReads

# Longer ones would be mapped and unmapped by the allocator each time.
SHORT_READ, LONG_READ = 256, 64 * 1024
MAX_HEAD_BYTES = 128 * 1024
SO_TIMESTAMPING = getattr(socket, "SO_TIMESTAMPING", 37)
# SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE
RX_SOFTWARE = (1 << 3) | (1 << 4)
_STAMP = struct.Struct("qq")
_ANCILLARY = socket.CMSG_SPACE(3 * _STAMP.size)
Headline = list[tuple[str, str]]


def enable_stamps(sock: socket.socket) -> bool:
    """Asks the kernel to date what arrives; whether it will."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE)
    except OSError:
        return False
    return True


def kernel_arrival_ns(ancillary: list[tuple[int, int, bytes]], now_ns: int) -> int | None:
    """The kernel's receive stamp on the monotonic clock, `now_ns` being the time there; `None` when it gave none."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING and len(data) >= _STAMP.size:
            stamp: tuple[int, int] = _STAMP.unpack_from(data)
            if stamp[0]:
                return now_ns - max(0, time.time_ns() - (stamp[0] * 1_000_000_000 + stamp[1]))
    return None


class Connection:
    """A connection that carries one exchange at a time; `release` gets it back when it may carry another."""

    def __init__(
        self,
        sock: socket.socket,
        tls: TlsLayer | None,
        origin: Origin,
        release: Callable[[Connection], None],
        urgent: UrgentReads,
    ) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.keep_alive_s = float("inf")
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._tls = tls
        self._release = release
        self._urgent = urgent
        self._watched = False
        self._listener: Listener | None = None
        self._unsent: memoryview | None = None
        self._burst = 0
        self._parser: Any = httptools.HttpResponseParser(self)
        self._reset()
        self._loop.add_reader(sock.fileno(), self._readable)

    def start(self, request: bytes, listener: Listener) -> None:
        """Writes `request`; the answer goes to `listener`."""
        self._listener = listener
        self._reset()
        self._watched = True
        self._urgent.watch(self._sock.fileno(), self._readable)
        data = self._tls.encrypt(request) if self._tls else request
        self._write(memoryview(data))

    def usable(self) -> bool:
        """Whether the peer has neither closed it nor said anything unasked."""
        if self.closed:
            return False
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.close()
        return False

    def abort(self) -> None:
        """Ends the exchange; its listener hears no more."""
        self._listener = None
        self.close()

    def close(self) -> None:
        """Closes the socket; twice is fine."""
        if self.closed:
            return
        self.closed = True
        self._unwatch()
        self._loop.remove_reader(self._sock.fileno())
        if self._unsent is not None:
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        # The parser holds bound methods of this object: without this, only the collector of cycles would free both.
        self._parser = None

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        target = self._trailers if self._in_body else self._headers
        target.append((name.decode("latin-1").lower(), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._informational = True
            return
        self._in_body = True
        self._keep_alive = self._parser.should_keep_alive()
        names = {name: value for name, value in self._headers}
        self._until_close = "content-length" not in names and "chunked" not in names.get("transfer-encoding", "").lower()
        self._note_keep_alive(names.get("keep-alive", ""))
        if self._listener is not None:
            self._listener.on_head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        if self._informational:
            self._informational = False
            self._headers.clear()
        else:
            self._complete = True

    # Reading.

    def _reset(self) -> None:
        self._headers: Headline = []
        self._trailers: Headline = []
        self._parts: list[bytes] = []
        self._head_bytes = 0
        self._in_body = False
        self._informational = False
        self._complete = False
        self._keep_alive = False
        self._until_close = False

    def _note_keep_alive(self, value: str) -> None:
        for part in value.split(","):
            name, _, number = part.partition("=")
            if name.strip().lower() == "timeout" and number.strip().isdigit():
                self.keep_alive_s = max(0.0, float(number) - 1)

    def _readable(self) -> None:
        self._urgent.look()
        if self.closed:
            return
        listener = self._listener
        if listener is None:
            # Idle: the peer closed, or speaks unasked; then it can carry no request. Or it was read out of turn just now.
            self.usable()
            return
        self._burst += 1
        try:
            if self._watched and not self._read_stamped(listener):
                return
            data = self._sock.recv(LONG_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost("" if isinstance(error, ConnectionError) else str(error.strerror or ""))
            return
        self._received(data, time.monotonic_ns(), False)

    def _read_stamped(self, listener: Listener) -> bool:
        """Reads in short pieces up to the first token; whether more is waiting after that."""
        while True:
            data, ancillary, _, _ = self._sock.recvmsg(SHORT_READ, _ANCILLARY)
            now_ns = time.monotonic_ns()
            arrival_ns = kernel_arrival_ns(ancillary, now_ns)
            self._received(data, now_ns if arrival_ns is None else arrival_ns, arrival_ns is not None)
            if self._listener is not listener:
                return False
            if not listener.wants_stamps:
                self._unwatch()
            if len(data) < SHORT_READ or not self._watched:
                return len(data) == SHORT_READ

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._urgent.forget(self._sock.fileno())

    def _received(self, data: bytes, arrival_ns: int, kernel: bool) -> None:
        if not data:
            self._ended()
            return
        if self._tls:
            try:
                data = self._tls.decrypt(data)
                reply = self._tls.outgoing()
            except TlsError as error:
                self._lost(str(error))
                return
            if reply:
                self._write(memoryview(reply))
        if data and not self._parse(data):
            return
        listener = self._listener
        if self._parts and listener is not None:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts = []
            listener.on_body(body, arrival_ns, kernel, self._burst)
        if self.closed:
            return
        if self._complete:
            self._finish()
        elif self._tls and self._tls.ended:
            self._ended()

    def _parse(self, data: bytes) -> bool:
        if not self._in_body:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._lost(f"the endpoint's headers are longer than {MAX_HEAD_BYTES} bytes")
                return False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._lost("the endpoint wants to switch to another protocol")
            return False
        except httptools.HttpParserError as error:
            # What follows a whole answer is nobody's; the connection is just not used again.
            if not self._complete:
                self._deliver_rest()
                self._lost(f"the endpoint does not speak HTTP/1.1: {error}")
                return False
            self._keep_alive = False
        return True

    def _deliver_rest(self) -> None:
        listener = self._listener
        if self._parts and listener is not None:
            body, self._parts = b"".join(self._parts), []
            listener.on_body(body, time.monotonic_ns(), False, self._burst)

    def _finish(self) -> None:
        listener, self._listener = self._listener, None
        self._unwatch()
        trailers: Headers = self._trailers
        if self._keep_alive and self._unsent is None and not (self._tls and self._tls.ended):
            self._release(self)
        else:
            self.close()
        if listener is not None:
            listener.on_end(True, trailers, "")

    def _ended(self) -> None:
        """The peer closed: an end for a body that lasts until then, a cut for all others."""
        self._lost("", clean=self._in_body and self._until_close)

    def _lost(self, error: str, clean: bool = False) -> None:
        listener, self._listener = self._listener, None
        self.close()
        if listener is not None:
            listener.on_end(clean, [], error)

    # Writing.

    def _write(self, data: memoryview) -> None:
        if self._unsent is not None:
            self._unsent = memoryview(bytes(self._unsent) + bytes(data))
            return
        sent = self._send(data)
        if sent < len(data):
            self._unsent = data[sent:]
            self._loop.add_writer(self._sock.fileno(), self._writable)
        else:
            self._written()

    def _writable(self) -> None:
        assert self._unsent is not None
        self._unsent = self._unsent[self._send(self._unsent) :]
        if not self._unsent:
            self._loop.remove_writer(self._sock.fileno())
            self._unsent = None
            self._written()

    def _send(self, data: memoryview) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # The peer may have answered before it hung up; reading finds out, and tells the listener.
            return len(data)

    def _written(self) -> None:
        if self._listener is not None:
            self._listener.on_sent(time.monotonic_ns())
