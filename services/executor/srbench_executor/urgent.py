"""Connections that wait for their first token are looked at between the reads of all others.

The kernel dates what arrives, but joins segments that wait unread in one socket and keeps the last date. A loop with a
thousand readable sockets, or a process that gets little CPU, comes to each of them late; a first token must not wait
for its turn behind text that nobody times.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

# A look costs about two microseconds.
LOOK_S = 0.0005


class UrgentReads:
    """An epoll of its own for connections whose first token is still to come."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._waiting: dict[int, Callable[[], None]] = {}
        self._looked_at = 0.0
        self._looking = False

    def watch(self, descriptor: int, read: Callable[[], None]) -> None:
        """From now on `read` is called as soon as the socket has something."""
        self._waiting[descriptor] = read
        self._poll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """The first token has come, or none will. To be called before the socket is closed; twice is fine."""
        if self._waiting.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def look(self) -> None:
        """Reads what is urgent, unless it was looked for a moment ago."""
        now = time.monotonic()
        if self._looking or not self._waiting or now - self._looked_at < LOOK_S:
            return
        self._looking, self._looked_at = True, now
        try:
            for descriptor, _ in self._poll.poll(0):
                read = self._waiting.get(descriptor)
                if read is not None:
                    read()
        finally:
            self._looking = False

    def close(self) -> None:
        """Lets the epoll go."""
        self._poll.close()
