"""When which open connection is read: at once as long as a time is to be taken from it, a moment later afterwards.

The kernel dates what arrives, but joins segments that wait unread in one socket and keeps the last date. So connections
that wait for their first token are read as soon as anything comes, also between the reads of all others: a first token must
not wait for its turn behind text that nobody times.

A stream whose times are taken has nothing urgent left but its end, and the kernel dates that. Where there are many, such
streams are read together every `LATE_S`: a wake-up of the process for every token costs more than reading it, and calls
that end together travel together from there on. A peer that hangs up is heard at once.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Callable, Iterable

# A look costs about two microseconds.
LOOK_S = 0.0005
LATE_S = 0.1
# With fewer streams than these open there is time enough to read each as its text comes.
CROWD = 32
# Late ones are read so many at a time, with a pause in which the loop goes on with the calls that ended: their work
# must not keep a first token waiting until the next one comes.
SLICE, PAUSE_S = 128, 0.004
# Most connections that one look reads; the loop comes back for more.
_AT_ONCE = 256
Read = Callable[[], None]


class Reads:
    """The open connections, each in one of three groups: new ones are urgent, `relax` and `await_first` move them."""

    def __init__(self, after_late: Callable[[], None] = lambda: None) -> None:
        """`after_late` is called when all late ones have been read."""
        self._after_late = after_late
        self._urgent, self._soon, self._late = select.epoll(), select.epoll(), select.epoll()
        self._reads: dict[int, Read] = {}
        # Those past their first token, and the epoll that tells of their text.
        self._relaxed: dict[int, select.epoll] = {}
        self._late_count = self._round_left = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._looking = False

    def add(self, descriptor: int, read: Read) -> None:
        """From now on `read` is called as soon as the socket has something."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._urgent.fileno(), self._look)
            self._loop.add_reader(self._soon.fileno(), self._read_soon)
        self._reads[descriptor] = read
        self._urgent.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        """To be called before the socket is closed."""
        self._forget_text(descriptor)
        self._urgent.unregister(descriptor)
        del self._reads[descriptor]

    @property
    def crowded(self) -> bool:
        """Whether so much text is being read that a wake-up for each piece is too dear."""
        return len(self._relaxed) >= CROWD

    def relax(self, descriptor: int, *, late: bool) -> None:
        """Its first token has come. `late`: nothing else of it is to be dated by this process either."""
        into = self._late if late else self._soon
        if self._relaxed.get(descriptor) is into:
            return
        if not self._forget_text(descriptor):
            self._urgent.modify(descriptor, select.EPOLLRDHUP)
        into.register(descriptor, select.EPOLLIN)
        self._relaxed[descriptor] = into
        if late:
            self._late_count += 1
            self._arm()

    def await_first(self, descriptor: int) -> None:
        """It is idle, or waits for the first token of its next answer."""
        if self._forget_text(descriptor):
            self._urgent.modify(descriptor, select.EPOLLIN)

    def look(self) -> None:
        """Reads what is urgent, unless it was looked for a moment ago."""
        if not self._looking and time.monotonic() - self._looked_at >= LOOK_S:
            self._look()

    def close(self) -> None:
        """Lets the epolls go."""
        self._late_count = 0
        if self._timer is not None:
            self._timer.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._urgent.fileno())
            self._loop.remove_reader(self._soon.fileno())
        for poll in (self._urgent, self._soon, self._late):
            poll.close()

    def _forget_text(self, descriptor: int) -> bool:
        poll = self._relaxed.pop(descriptor, None)
        if poll is None:
            return False
        poll.unregister(descriptor)
        self._late_count -= poll is self._late
        return True

    def _look(self) -> None:
        if self._looking:
            return
        self._looking = True
        try:
            for descriptor, _ in self._urgent.poll(0, _AT_ONCE):
                self._read(descriptor)
        finally:
            self._looking, self._looked_at = False, time.monotonic()

    def _read_soon(self) -> None:
        self._read_text(self._soon.poll(0, _AT_ONCE))

    def _read_late(self) -> None:
        self._timer = None
        self._round_left = self._round_left or self._late_count
        ready = self._late.poll(0, SLICE)
        self._read_text(ready)
        self._round_left -= len(ready)
        # A round reads each once, however quickly more text comes.
        if len(ready) == SLICE and self._round_left > 0:
            self._arm(PAUSE_S)
            return
        self._round_left = 0
        self._arm()
        self._after_late()

    def _arm(self, after_s: float | None = None) -> None:
        if self._late_count and self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(LATE_S if after_s is None else after_s, self._read_late)

    def _read_text(self, ready: Iterable[tuple[int, int]]) -> None:
        for descriptor, _ in ready:
            self.look()
            self._read(descriptor)

    def _read(self, descriptor: int) -> None:
        # One that was read before it in the same look may have closed it.
        read = self._reads.get(descriptor)
        if read is None:
            return
        try:
            read()
        except Exception as error:
            # As the loop does with a callback that fails: a bug in one connection is told, and is no other's.
            assert self._loop is not None
            self._loop.call_exception_handler({"message": "bug while reading a connection", "exception": error})
