"""Stamps that fit together although the wall clock is set in between."""

from __future__ import annotations

import time


class SteadyClock:
    """Looks at the wall clock once and counts on from there: of two stamps the later one is never the smaller, and their
    difference is what really passed."""

    def __init__(self) -> None:
        self._base_ns = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._base_ns + time.monotonic_ns()
