"""One call under way: hears the transport, reads the answer, keeps the bytes, guards time and size, and has one end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import AnswerReader, Completion, Headers, header
from srbench_kit.crashpoints import crashpoint
from srbench_kit.steady import SteadyClock

from srbench_executor.coding import BadCoding, Decoder, decoder_for, unannounced
from srbench_executor.exchange import Abortable
from srbench_executor.guards import RepetitionGuard
from srbench_executor.timing import FirstToken

# A connection is given this long to end properly after the end marker, for trailers and for its next use.
END_GRACE_S = 1.0
# Cap of the body: a chunk of one character may take this many bytes on the wire.
BYTES_PER_CHAR = 256
MIN_BODY_CAP = 1024 * 1024
_PACK_BYTES = 256 * 1024
_NOTHING: tuple[list[str], list[str]] = ([], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBounds:
    """What a call may use. Times in seconds."""

    total_s: float
    idle_s: float
    max_output_chars: int
    repetition_window: int
    repetition_limit: int

    @property
    def body_bytes(self) -> int:
        """Most body bytes to take."""
        return max(MIN_BODY_CAP, BYTES_PER_CHAR * self.max_output_chars)


@dataclass(frozen=True, slots=True)
class Cut:
    """Why a call was ended before its answer was over."""

    status: pb.CallStatus.ValueType
    reason: str
    message: str


class BodyLog(Protocol):
    """Where a call's body goes as it comes, beside memory."""

    def head(self, number: int, status: int, headers: Headers) -> None:
        """Takes status and headers of the answer to call `number`."""

    def append(self, number: int, data: bytes) -> None:
        """Takes more of the body of call `number`."""


class Body:
    """The bytes of an answer; what is older than a quarter of a megabyte is held compressed."""

    __slots__ = ("_packed", "_parts", "_size", "size")

    def __init__(self) -> None:
        self.size = 0
        self._size = 0
        self._parts: list[bytes] = []
        self._packed: list[bytes] = []

    def append(self, data: bytes) -> None:
        """Adds `data`."""
        self._parts.append(data)
        self.size += len(data)
        self._size += len(data)
        if self._size > _PACK_BYTES:
            self._packed.append(zstandard.compress(b"".join(self._parts), 1))
            self._parts, self._size = [], 0

    def value(self) -> bytes:
        """All of it."""
        return b"".join([*(zstandard.decompress(part) for part in self._packed), *self._parts])


class Call:
    """A listener (see `exchange.Listener`) with one end: `await call.ended`."""

    def __init__(self, number: int, bounds: CallBounds, log: BodyLog, clock: SteadyClock) -> None:
        self.clock = clock
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.phase = "connecting"
        self.phase_since = time.time()
        self.body = Body()
        self.headers: Headers = ()
        self.trailers: Headers = ()
        self.http_status: int | None = None
        self.clean_end = False
        self.cut: Cut | None = None
        self.completion: Completion | None = None
        self.first = FirstToken()
        self.connect_ns: int | None = None
        self.sent_ns: int | None = None
        self.start_time_ns = 0
        self.end_ns = 0
        self._number = number
        self._bounds = bounds
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._guard = RepetitionGuard(bounds.repetition_window, bounds.repetition_limit)
        self._reader: AnswerReader | None = None
        self._decoder: Decoder | None = None
        # Why the body is kept as it comes and not read.
        self._unreadable: Cut | None = None
        self._exchange: Abortable | None = None
        self._chars = 0
        self._body_cap = bounds.body_bytes
        self._deadline = self._loop.time() + bounds.total_s
        self._activity = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._arm()

    @property
    def wants_stamps(self) -> bool:
        """Whether the first token is still to come."""
        return self.first.token_ns is None

    @property
    def is_dated(self) -> bool:
        """Whether the final channel has begun: its first piece is the last that is dated."""
        return self.first.content_ns is not None

    @property
    def quiet_s(self) -> float:
        """Seconds since the last byte came."""
        return self._loop.time() - self._activity

    def attach(self, exchange: Abortable) -> None:
        """Says what carries the call, for `stop`."""
        if self.ended.done() and self.cut is not None:
            exchange.abort()
        else:
            self._exchange = exchange

    def on_connected(self, connect_ns: int | None) -> None:
        """See `exchange.Listener`."""
        self.connect_ns = connect_ns
        self.start_time_ns = self.clock.now_ns()
        self._enter("waiting")

    def on_sent(self, now_ns: int) -> None:
        """See `exchange.Listener`."""
        self.sent_ns = now_ns

    def on_head(self, status: int, headers: Headers) -> None:
        """See `exchange.Listener`."""
        self._activity = self._loop.time()
        self.http_status, self.headers = status, headers
        self._reader = AnswerReader(status, headers)
        self._log.head(self._number, status, headers)
        self._enter("streaming")
        try:
            self._decoder = decoder_for(header(headers, "content-encoding"))
        except BadCoding as error:
            self._unreadable = Cut(pb.CALL_STATUS_FAILED, "protocol_error", str(error))

    def on_body(self, data: bytes, arrival_ns: int, kernel: bool, burst: int) -> None:
        """See `exchange.Listener`."""
        reader = self._reader
        if reader is None or self.ended.done():
            return
        self._activity = self._loop.time()
        if self._decoder is None and not self.body.size and self._unreadable is None:
            self._decoder = unannounced(data)
        if self._decoder is not None:
            try:
                data = self._decoder.feed(data, self._body_cap)
            except BadCoding as error:
                self._end(Cut(pb.CALL_STATUS_FAILED, "protocol_error", str(error)))
                return
        self.body.append(data)
        crashpoint("executor.mid_stream")
        self._log.append(self._number, data)
        if self._unreadable is not None:
            content, reasoning = _NOTHING
        elif self.first.content_ns is None:
            content, reasoning = self._read_dated(reader, data, arrival_ns, kernel, burst)
        else:
            content, reasoning = reader.feed(data)
        if content or reasoning:
            self._watch(content, reasoning)
        if self.body.size > self._body_cap and not self.ended.done():
            message = f"the answer is longer than {self._body_cap} bytes"
            self._end(Cut(pb.CALL_STATUS_FAILED, "output_bytes_limit", message))
        elif reader.done:
            self._loop.call_soon(self._wait_for_end)

    def on_end(self, clean: bool, trailers: Headers, error: str, at_ns: int) -> None:
        """See `exchange.Listener`."""
        self.clean_end, self.trailers = clean, trailers
        if error:
            self.cut = Cut(pb.CALL_STATUS_FAILED, "protocol_error", error)
        elif self._reader is None:
            message = "the connection was lost before an answer came; the request may have been accepted"
            self.cut = Cut(pb.CALL_STATUS_FAILED, "stream_cut", message)
        elif self._unreadable is not None:
            self.cut = self._unreadable
        self._finish(at_ns)

    def stop(self, cut: Cut) -> None:
        """Ends the call at once, whatever it is doing; nothing when it has ended."""
        if self._exchange is not None and not self.ended.done():
            # What has arrived is part of the answer, read or not.
            self._exchange.catch_up()
        self._end(cut)

    def _end(self, cut: Cut) -> None:
        if self.ended.done():
            return
        self.cut = cut
        if self._exchange is not None:
            self._exchange.abort()
        self._finish(time.monotonic_ns())

    def abandon(self) -> None:
        """The request was never written: nobody will hear of this call again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.ended.done():
            self.ended.set_result(None)

    def _finish(self, at_ns: int) -> None:
        if self.ended.done():
            return
        self.end_ns = at_ns
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reader is not None:
            self.completion = self._reader.finish(clean_end=self.clean_end, trailers=self.trailers)
            if self._reader.terminal and self.cut is not None and self.cut.reason in _AFTER_THE_END:
                # The answer was over; only the connection was not.
                self.cut = None
        self.ended.set_result(None)

    def _enter(self, phase: str) -> None:
        self.phase, self.phase_since = phase, time.time()

    def _read_dated(
        self, reader: AnswerReader, data: bytes, arrival_ns: int, kernel: bool, burst: int
    ) -> tuple[list[str], list[str]]:
        was_inside, before = reader.inside_event, reader.event_count
        content, reasoning = reader.feed(data)
        if content or reasoning:
            now_ns = time.monotonic_ns()
            self.first.pieces(
                content,
                reasoning,
                arrival_ns=arrival_ns,
                kernel=kernel,
                burst=burst,
                was_inside=was_inside,
                now_ns=now_ns,
            )
        if reader.inside_event and not (was_inside and reader.event_count == before):
            self.first.event_began(arrival_ns, burst)
        return content, reasoning

    def _watch(self, content: list[str], reasoning: list[str]) -> None:
        bounds = self._bounds
        pieces = content + reasoning if reasoning else content
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        self._chars += len(text)
        if self._guard.push(text):
            message = f"the answer repeats itself with a period of at most {bounds.repetition_window} characters"
            self._end(Cut(pb.CALL_STATUS_COMPLETED, "repetition", message))
        elif self._chars > bounds.max_output_chars:
            message = f"the answer is longer than {bounds.max_output_chars} characters"
            self._end(Cut(pb.CALL_STATUS_COMPLETED, "output_chars", message))

    # Time. One timer a call, set again only when it goes off: nothing is re-armed for a chunk.

    def _arm(self) -> None:
        due = min(self._deadline, self._activity + self._bounds.idle_s)
        self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        if self._exchange is not None:
            self._exchange.catch_up()
            if self.ended.done():
                return
        now = self._loop.time()
        if now >= self._deadline:
            message = f"the call took longer than {self._bounds.total_s:g} s"
            self._end(Cut(pb.CALL_STATUS_FAILED, "deadline_exceeded", message))
        elif now >= self._activity + self._bounds.idle_s:
            message = f"nothing came for {self._bounds.idle_s:g} s"
            self._end(Cut(pb.CALL_STATUS_FAILED, "idle_timeout", message))
        else:
            self._arm()

    def _wait_for_end(self) -> None:
        """The end marker has come and the connection has not ended: it gets a moment, then the call ends without it."""
        if not self.ended.done() and self._loop.time() + END_GRACE_S < self._deadline:
            self._deadline = self._loop.time() + END_GRACE_S
            if self._timer is not None:
                self._timer.cancel()
            self._arm()


# Cuts that change nothing once the answer showed that it was over.
_AFTER_THE_END = frozenset({"deadline_exceeded", "idle_timeout", "stream_cut", "protocol_error"})
