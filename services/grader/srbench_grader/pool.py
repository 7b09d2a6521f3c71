"""Sandboxes that have started before they are needed. Each takes one solution and is thrown away."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from srbench_kit.errors import SrBenchError

from srbench_grader.sandbox.session import Session


class WarmPool:
    """Keeps `size` sessions waiting. `take` and `close` may be called from any thread.

    One thread starts all of them: the kernel ends a sandbox together with the thread that started it.
    """

    def __init__(self, start: Callable[[], Session], size: int) -> None:
        self._start, self._size = start, size
        self._wanted: queue.Queue[bool] = queue.Queue()
        self._waiting: queue.Queue[Session | SrBenchError] = queue.Queue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="sandboxes", daemon=True)
        self._thread.start()
        for _ in range(size):
            self._wanted.put(True)

    def take(self, timeout_s: float = 120.0) -> Session:
        """A session that waits for its solution; another one is started in its place.

        Raises: what starting one raises; `queue.Empty` after `timeout_s`.
        """
        while True:
            self._wanted.put(True)
            found = self._waiting.get(timeout=timeout_s)
            if isinstance(found, SrBenchError):
                raise found
            if found.alive:
                return found
            found.close()

    def close(self) -> None:
        """Ends all that wait. Sessions that were taken belong to those who took them."""
        self._closed = True
        self._wanted.put(False)
        self._thread.join(60.0)
        while not self._waiting.empty():
            found = self._waiting.get_nowait()
            if isinstance(found, Session):
                found.close()

    def _work(self) -> None:
        while self._wanted.get() and not self._closed:
            try:
                self._waiting.put(self._start())
            except SrBenchError as error:
                self._waiting.put(error)
