"""One request whose answer is one whole document: a routing preview, or a router's configuration. No model is called."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import Headers, header

from srbench_executor.call import Cut
from srbench_executor.carrying import carry
from srbench_executor.coding import BadCoding, Decoder, decoder_for
from srbench_executor.exchange import Abortable, NotAccepted, Outgoing, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBounds:
    """What a fetch may use: seconds in all, of silence and to connect, and bytes of the body."""

    total_s: float
    idle_s: float
    connect_s: float
    body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes


class FetchFailed(Exception):
    """There is no whole answer.

    Attributes:
        reason: stable, as in receipts.
        accepted: whether the endpoint may have seen the request.
    """

    def __init__(self, reason: str, message: str, *, accepted: bool) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.accepted = accepted


class Fetch:
    """Listens to one answer (see `exchange.Listener`); `await ended`, or `stop`."""

    wants_stamps = False
    is_dated = False

    def __init__(self, bounds: FetchBounds) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cut: Cut | None = None
        self.status: int | None = None
        self.headers: Headers = ()
        self._bounds = bounds
        self._body = bytearray()
        self._decoder: Decoder | None = None
        self._exchange: Abortable | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + bounds.total_s
        self._activity = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._arm()

    async def run(self, transport: Transport, outgoing: Outgoing) -> Fetched:
        """Sends `outgoing` once. Raises: `FetchFailed`."""
        refused: NotAccepted | None = await carry(transport, outgoing, self, self._bounds.connect_s)
        if self.cut is not None:
            raise FetchFailed(self.cut.reason, self.cut.message, accepted=refused is None)
        if refused is not None:
            raise FetchFailed(refused.reason, refused.message, accepted=False)
        assert self.status is not None, "an answer without a cut has a status"
        return Fetched(status=self.status, headers=self.headers, body=bytes(self._body))

    def attach(self, exchange: Abortable) -> None:
        """Says what carries it, for `stop`."""
        if self.ended.done() and self.cut is not None:
            exchange.abort()
        else:
            self._exchange = exchange

    def abandon(self) -> None:
        """The request was never written."""
        self._finish()

    def stop(self, cut: Cut) -> None:
        """Ends it at once; nothing when it has ended."""
        if self.ended.done():
            return
        self.cut = cut
        if self._exchange is not None:
            self._exchange.abort()
        self._finish()

    def on_connected(self, connect_ns: int | None) -> None:
        """See `exchange.Listener`."""
        self._activity = self._loop.time()

    def on_sent(self, now_ns: int) -> None:
        """See `exchange.Listener`."""

    def on_head(self, status: int, headers: Headers) -> None:
        """See `exchange.Listener`."""
        self._activity = self._loop.time()
        self.status, self.headers = status, headers
        try:
            self._decoder = decoder_for(header(headers, "content-encoding"))
        except BadCoding as error:
            self.stop(_failed("protocol_error", str(error)))

    def on_body(self, data: bytes, arrival_ns: int, kernel: bool, burst: int) -> None:
        """See `exchange.Listener`."""
        if self.ended.done():
            return
        self._activity = self._loop.time()
        most = self._bounds.body_bytes
        try:
            self._body += self._decoder.feed(data, most) if self._decoder is not None else data
        except BadCoding as error:
            self.stop(_failed("protocol_error", str(error)))
            return
        if len(self._body) > most:
            self.stop(_failed("output_bytes_limit", f"the answer is longer than {most} bytes"))

    def on_end(self, clean: bool, trailers: Headers, error: str, at_ns: int) -> None:
        """See `exchange.Listener`."""
        if self.ended.done():
            return
        if error:
            self.cut = _failed("protocol_error", error)
        elif not clean or self.status is None:
            self.cut = _failed("stream_cut", "the connection was lost before the answer was whole")
        self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.ended.done():
            self.ended.set_result(None)

    def _arm(self) -> None:
        due = min(self._deadline, self._activity + self._bounds.idle_s)
        self._timer = self._loop.call_at(due, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        if now >= self._deadline:
            self.stop(_failed("deadline_exceeded", f"the answer took longer than {self._bounds.total_s:g} s"))
        elif now >= self._activity + self._bounds.idle_s:
            self.stop(_failed("idle_timeout", f"nothing came for {self._bounds.idle_s:g} s"))
        else:
            self._arm()


def _failed(reason: str, message: str) -> Cut:
    return Cut(pb.CALL_STATUS_FAILED, reason, message)
