"""Many small items over one bidirectional stream, in few messages, each answered by its own number.

Items that were not answered are sent again, in their order, when the stream had to be opened anew; so they must be
idempotent at the other end. Nobody who submits ever waits for the network, only for the answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from grpc import aio
from srbench_kit import wire

Item = TypeVar("Item")
Reply = TypeVar("Reply")
ItemIn = TypeVar("ItemIn", contravariant=True)
ReplyOut = TypeVar("ReplyOut", covariant=True)

MAX_ITEMS = 256
MAX_MESSAGE_BYTES = 3 * 1024 * 1024
LONGEST_WINDOW_S = 0.004
# A window is worth its delay when it gathers this many items; twice as many are enough for any.
_WORTH, _ENOUGH = 1.5, 32
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.05, 2.0
_log = logging.getLogger(__name__)


class Carries(Protocol[ItemIn, ReplyOut]):
    """What a batched stream carries."""

    name: str

    def open(self) -> Any:
        """A new stream."""

    def number(self, item: ItemIn, sequence: int) -> None:
        """Writes its sequence into an item."""

    def byte_size(self, item: ItemIn) -> int:
        """About how large an item is on the wire."""

    def message(self, items: Sequence[ItemIn]) -> Any:
        """The message that carries `items`."""

    def replies(self, message: Any) -> Iterable[tuple[int, ReplyOut]]:
        """The answers in a message, with their sequences."""


class _Pending(Generic[Item, Reply]):
    __slots__ = ("future", "items", "size")

    def __init__(self, items: list[Item], size: int, future: asyncio.Future[Reply]) -> None:
        self.items = items
        self.size = size
        self.future = future


class BatchStream(Generic[Item, Reply]):
    """One stream to one service for the life of the process; `run` keeps it open."""

    def __init__(self, protocol: Carries[Item, Reply]) -> None:
        self._protocol = protocol
        self._sequence = 0
        self._waiting: dict[int, _Pending[Item, Reply]] = {}
        self._queue: list[_Pending[Item, Reply]] = []
        self._passing: list[Item] = []
        self._wake = asyncio.Event()
        self._rate = 0.0
        self._rated_at = time.monotonic()
        self.connected = False

    def submit(self, items: list[Item]) -> asyncio.Future[Reply]:
        """Sends `items` in order; the future holds the answer to the last of them."""
        size = 0
        for item in items:
            self._sequence += 1
            self._protocol.number(item, self._sequence)
            size += self._protocol.byte_size(item)
        pending: _Pending[Item, Reply] = _Pending(items, size, asyncio.get_running_loop().create_future())
        self._waiting[self._sequence] = pending
        self._queue.append(pending)
        self._wake.set()
        return pending.future

    def post(self, item: Item) -> None:
        """Sends `item` if the stream is open; it is not answered and never sent again."""
        if self.connected:
            self._sequence += 1
            self._protocol.number(item, self._sequence)
            self._passing.append(item)
            self._wake.set()

    async def run(self) -> None:
        """Keeps the stream open until cancelled."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                await self._serve(self._protocol.open())
                backoff_s = _FIRST_BACKOFF_S
            except aio.AioRpcError as error:
                if self.connected:
                    backoff_s = _FIRST_BACKOFF_S
                _log.warning("the stream to %s broke: %s", self._protocol.name, wire.to_error(error).message)
            self.connected = False
            await asyncio.sleep(backoff_s)
            backoff_s = min(_LONGEST_BACKOFF_S, backoff_s * 2)

    async def _serve(self, call: Any) -> None:
        # All that was not answered goes again, oldest first; what is queued is among it.
        self._queue = list(self._waiting.values())
        self._passing.clear()
        if self._queue:
            self._wake.set()
        reader = asyncio.ensure_future(self._read(call))
        writer = asyncio.ensure_future(self._write(call))
        try:
            await asyncio.wait([reader, writer], return_when=asyncio.FIRST_COMPLETED)
            # The reader knows why a stream ended; a writer only that it did.
            if not reader.done():
                await asyncio.wait([reader], timeout=1.0)
            for task in (reader, writer):
                if task.done() and (error := task.exception()) is not None and not _stream_over(error):
                    raise error
        finally:
            for task in (reader, writer):
                task.cancel()
            call.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)

    async def _read(self, call: AsyncIterable[Any]) -> None:
        waiting = self._waiting
        async for message in call:
            self.connected = True
            for sequence, reply in self._protocol.replies(message):
                pending = waiting.pop(sequence, None)
                if pending is not None and not pending.future.done():
                    pending.future.set_result(reply)

    async def _write(self, call: Any) -> None:
        await call.wait_for_connection()
        self.connected = True
        while True:
            await self._wake.wait()
            window_s = self._window_s()
            if window_s:
                await asyncio.sleep(window_s)
            self._wake.clear()
            while self._queue or self._passing:
                await call.write(self._protocol.message(self._take()))

    def _window_s(self) -> float:
        """How long to gather: as long as it takes for a good batch at the rate of late, or not at all."""
        expected = self._rate * LONGEST_WINDOW_S
        return 0.0 if expected < _WORTH else min(LONGEST_WINDOW_S, LONGEST_WINDOW_S * _ENOUGH / expected)

    def _take(self) -> list[Item]:
        items: list[Item] = []
        size = count = 0
        for pending in self._queue:
            if items and (len(items) + len(pending.items) > MAX_ITEMS or size + pending.size > MAX_MESSAGE_BYTES):
                break
            if len(pending.items) > 1 and pending.size > MAX_MESSAGE_BYTES:
                if items:
                    break
                return self._take_part(pending)
            items += pending.items
            size += pending.size
            count += 1
        del self._queue[:count]
        if not self._queue:
            items += self._passing
            self._passing = []
        self._note_rate(len(items))
        return items

    def _take_part(self, pending: _Pending[Item, Reply]) -> list[Item]:
        """The first items of a submission that is too large for one message; the rest stays in front of the queue."""
        count = size = 0
        for item in pending.items:
            size += self._protocol.byte_size(item)
            if count and size > MAX_MESSAGE_BYTES:
                break
            count += 1
        rest = pending.items[count:]
        self._queue[:1] = [_Pending(rest, sum(map(self._protocol.byte_size, rest)), pending.future)] if rest else []
        return pending.items[:count]

    def _note_rate(self, count: int) -> None:
        now = time.monotonic()
        passed = now - self._rated_at
        if passed > 0:
            # Forgets over about a fifth of a second.
            keep = 0.5 ** (passed / 0.05)
            self._rate = self._rate * keep + (1 - keep) * count / passed
            self._rated_at = now


def _stream_over(error: BaseException) -> bool:
    return isinstance(error, asyncio.InvalidStateError | asyncio.CancelledError)
