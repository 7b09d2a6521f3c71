"""One HTTP/1.1 connection on a raw socket: bytes go from the read callback to the listener, with their time of arrival.

A short read ends inside the first segment that is waiting, so the kernel's receive stamp belongs to it; one long read
would get the last segment's. That is why reads are short until the first token has been seen, and long afterwards, when
the only time that is left to take is the end's, and the last segment's stamp is right.
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
from srbench_executor.reads import Reads
from srbench_executor.tls import TlsError, TlsLayer

# Longer ones would be mapped and unmapped by the allocator each time.
SHORT_READ, LONG_READ = 256, 64 * 1024
MAX_HEAD_BYTES = 128 * 1024
# Only an answer that takes so long is read late: its end is then noticed a small part of its time after it came.
LATE_AFTER_NS = 200_000_000
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


def kernel_arrival_ns(ancillary: list[tuple[int, int, bytes]], now_ns: int, since_ns: int) -> int | None:
    """The kernel's receive stamp on the monotonic clock, `now_ns` being the time there; `None` when it gave none, or one
    that is not after `since_ns`: the wall clock, by which the kernel stamps, was set in between."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING and len(data) >= _STAMP.size:
            stamp: tuple[int, int] = _STAMP.unpack_from(data)
            ago_ns = time.time_ns() - (stamp[0] * 1_000_000_000 + stamp[1])
            if stamp[0] and ago_ns < now_ns - since_ns:
                return now_ns - max(0, ago_ns)
    return None


class Connection:
    """A connection that carries one exchange at a time; `release` gets it back when it may carry another."""

    def __init__(
        self,
        sock: socket.socket,
        tls: TlsLayer | None,
        origin: Origin,
        release: Callable[[Connection], None],
        reads: Reads,
    ) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.keep_alive_s = float("inf")
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._tls = tls
        self._release = release
        self._reads = reads
        # Whether reads are short, and whether they wait for those of other connections; `_relax` decides.
        self._short = True
        self._late = False
        self._began_ns = 0
        self._listener: Listener | None = None
        self._unsent: memoryview | None = None
        self._burst = 0
        self._complete = False
        self._keep_alive = False
        self._parser: Any = httptools.HttpResponseParser(self)
        # What other clients put up with: no paid answer is lost for a folded header, a bare LF or a length beside chunks.
        # A server that wanted to forge an answer could do so without them.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._reset()
        reads.add(sock.fileno(), self._readable)

    def start(self, request: bytes, listener: Listener) -> None:
        """Writes `request`; the answer goes to `listener`."""
        self._listener = listener
        self._reset()
        self._began_ns = time.monotonic_ns()
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

    def catch_up(self) -> None:
        """Reads what has come and was left for later, or has come since the loop last looked."""
        self._readable()

    def abort(self) -> None:
        """Ends the exchange; its listener hears no more."""
        self._listener = None
        self.close()

    def close(self) -> None:
        """Closes the socket; twice is fine."""
        if self.closed:
            return
        self.closed = True
        self._late = False
        self._reads.remove(self._sock.fileno())
        if self._unsent is not None:
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        # The parser holds bound methods of this object: without this, only the collector of cycles would free both.
        self._parser = None

    # What the parser calls. What it finds after a whole answer was not asked for, and is nobody's.

    def on_message_begin(self) -> None:
        if self._complete:
            self._keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._complete:
            return
        target = self._trailers if self._in_body else self._headers
        target.append((name.decode("latin-1").lower(), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        if self._complete:
            return
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._informational = True
            return
        self._in_body = True
        self._keep_alive = self._parser.should_keep_alive()
        names = {name: value for name, value in self._headers}
        chunked = "chunked" in names.get("transfer-encoding", "").lower()
        if chunked and "content-length" in names:
            # The chunks count, and where the next answer would begin is not certain.
            self._keep_alive = False
        self._until_close = "content-length" not in names and not chunked
        self._note_keep_alive(names.get("keep-alive", ""))
        if self._listener is not None:
            self._listener.on_head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        if not self._complete:
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
            number = number.strip()
            if name.strip().lower() == "timeout" and number.isascii() and number.isdigit():
                self.keep_alive_s = max(0.0, float(number) - 1)

    def _readable(self) -> None:
        if self.closed:
            return
        listener = self._listener
        if listener is None:
            # Idle: the peer closed, or speaks unasked; then it can carry no request. Or it was read out of turn just now.
            self.usable()
            return
        self._burst += 1
        try:
            self._read(listener)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost("" if isinstance(error, ConnectionError) else str(error.strerror or ""), time.monotonic_ns())

    def _read(self, listener: Listener) -> None:
        """Reads what is waiting, in short pieces up to the first token."""
        while True:
            size = SHORT_READ if self._short else LONG_READ
            data, ancillary, _, _ = self._sock.recvmsg(size, _ANCILLARY)
            now_ns = time.monotonic_ns()
            arrival_ns = kernel_arrival_ns(ancillary, now_ns, self._began_ns)
            self._received(data, now_ns if arrival_ns is None else arrival_ns, arrival_ns is not None)
            if self._listener is not listener:
                return
            more = len(data) == size
            self._relax(listener, now_ns, more)
            if not more or size == LONG_READ:
                return

    def _relax(self, listener: Listener, now_ns: int, more: bool) -> None:
        """Reads longer, and later, once nothing of the answer has to be dated by short or quick reads. What there is too
        much of for one read (`more`) is not left to grow."""
        if listener.wants_stamps or (self._late and not more):
            return
        old = listener.is_dated and now_ns - self._began_ns >= LATE_AFTER_NS
        late = not more and old and self._reads.crowded
        if self._short or late != self._late:
            self._short, self._late = False, late
            self._reads.relax(self._sock.fileno(), late=late)

    def _urge(self) -> None:
        """Reads short and at once again."""
        if not self._short:
            self._short, self._late = True, False
            self._reads.await_first(self._sock.fileno())

    def _received(self, data: bytes, arrival_ns: int, kernel: bool) -> None:
        if not data:
            self._ended(arrival_ns)
            return
        if self._tls:
            try:
                data = self._tls.decrypt(data)
                reply = self._tls.outgoing()
            except TlsError as error:
                self._lost(str(error), arrival_ns)
                return
            if reply:
                self._write(memoryview(reply))
        if data and not self._parse(data, arrival_ns):
            return
        listener = self._listener
        if self._parts and listener is not None:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts = []
            listener.on_body(body, arrival_ns, kernel, self._burst)
        if self.closed:
            return
        if self._complete:
            self._finish(arrival_ns)
        elif self._tls and self._tls.ended:
            self._ended(arrival_ns)

    def _parse(self, data: bytes, arrival_ns: int) -> bool:
        if not self._in_body or self._head_bytes:
            # Trailers are counted as headers are, from the first bytes that brought no body.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._lost(f"the endpoint's headers are longer than {MAX_HEAD_BYTES} bytes", arrival_ns)
                return False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._lost("the endpoint wants to switch to another protocol", arrival_ns)
            return False
        except httptools.HttpParserError as error:
            # What follows a whole answer is nobody's; the connection is just not used again.
            if not self._complete:
                self._deliver_rest()
                self._lost(f"the endpoint does not speak HTTP/1.1: {error}", arrival_ns)
                return False
            self._keep_alive = False
        if self._in_body:
            self._head_bytes = 0 if self._parts else self._head_bytes or len(data)
        return True

    def _deliver_rest(self) -> None:
        listener = self._listener
        if self._parts and listener is not None:
            body, self._parts = b"".join(self._parts), []
            listener.on_body(body, time.monotonic_ns(), False, self._burst)

    def _finish(self, at_ns: int) -> None:
        listener, self._listener = self._listener, None
        self._urge()
        trailers: Headers = self._trailers
        if self._keep_alive and self._unsent is None and not (self._tls and self._tls.ended):
            self._release(self)
        else:
            self.close()
        if listener is not None:
            listener.on_end(True, trailers, "", at_ns)

    def _ended(self, at_ns: int) -> None:
        """The peer closed: an end for a body that lasts until then, a cut for all others."""
        self._lost("", at_ns, clean=self._in_body and self._until_close)

    def _lost(self, error: str, at_ns: int, clean: bool = False) -> None:
        listener, self._listener = self._listener, None
        self.close()
        if listener is not None:
            listener.on_end(clean, [], error, at_ns)

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
