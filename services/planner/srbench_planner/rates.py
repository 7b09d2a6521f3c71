"""How much a target may be asked: requests in flight, and requests and tokens within any minute. Pure; time comes in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """A target's own limits over the whole fleet; `None` means no limit.

    Attributes:
        key: what makes it the same target in several runs.
        output_tokens: what a request reserves of `tokens_per_minute` for its answer.
    """

    key: tuple[str, ...]
    max_concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    output_tokens: int = 0
    # Whether there is no limit at all; the usual case, which is asked for every lease.
    free: bool = field(init=False)

    def __post_init__(self) -> None:
        free = self.max_concurrency is None and self.requests_per_minute is None and self.tokens_per_minute is None
        object.__setattr__(self, "free", free)


class Window:
    """Amounts taken within the last minute. Exact for every minute, wherever it begins."""

    __slots__ = ("_entries", "_total")

    def __init__(self) -> None:
        self._entries: deque[tuple[float, int]] = deque()
        self._total = 0

    def due(self, now: float, amount: int, limit: int) -> float:
        """The earliest time at which `amount` fits under `limit`; `now` or earlier means at once.

        An amount above the whole limit fits when nothing else was taken, else it would wait for ever.
        """
        entries = self._entries
        while entries and entries[0][0] <= now - WINDOW_S:
            self._total -= entries.popleft()[1]
        excess = self._total + amount - limit
        if excess <= 0 or not entries:
            return now
        for taken_at, taken in entries:
            excess -= taken
            if excess <= 0:
                return taken_at + WINDOW_S
        return entries[-1][0] + WINDOW_S

    def take(self, now: float, amount: int) -> None:
        """Records that `amount` was taken."""
        self._entries.append((now, amount))
        self._total += amount


@dataclass(slots=True)
class TargetUse:
    """What is being asked of one target now, by all runs together."""

    in_flight: int = 0
    requests: Window = field(default_factory=Window)
    tokens: Window = field(default_factory=Window)

    def due(self, now: float, limits: TargetLimits, token_count: int) -> float:
        """When one more request may leave; infinity while only the end of another can make room."""
        if limits.max_concurrency is not None and self.in_flight >= limits.max_concurrency:
            return float("inf")
        due = now
        if limits.requests_per_minute is not None:
            due = max(due, self.requests.due(now, 1, limits.requests_per_minute))
        if limits.tokens_per_minute is not None:
            due = max(due, self.tokens.due(now, token_count, limits.tokens_per_minute))
        return due

    def take(self, now: float, limits: TargetLimits, token_count: int) -> None:
        """Records one more request in flight."""
        self.in_flight += 1
        if limits.requests_per_minute is not None:
            self.requests.take(now, 1)
        if limits.tokens_per_minute is not None:
            self.tokens.take(now, token_count)
