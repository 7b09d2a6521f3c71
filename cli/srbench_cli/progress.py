"""How fast a run goes and when it will be done. Pure: the clock is an argument."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from srbench_kit.figures import UNKNOWN, clock, usd

WINDOW_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands.

    Attributes:
        status: the run's status.
        total, completed, failed, running: cells.
        known_pico: known cost, in picodollars; `None` when not known (yet).
        budget_pico: the budget, in picodollars; `None` when none is enforced.
        unknown_costs: calls that ended with an unknown cost.
    """

    status: str
    total: int
    completed: int
    failed: int
    running: int
    known_pico: int | None = None
    budget_pico: int | None = None
    unknown_costs: int = 0

    @property
    def done(self) -> int:
        """Cells that have ended."""
        return self.completed + self.failed


@dataclass(slots=True)
class Pace:
    """The rate over the last half minute, from what was seen of it."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def see(self, now_s: float, done: int) -> None:
        """Notes that `done` cells had ended at `now_s`."""
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Cells a second; `None` before anything was seen to move."""
        if len(self._seen) < 2:
            return None
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last > first and last_s > first_s else None

    def remaining_s(self, left: int) -> float | None:
        """Seconds until `left` more cells have ended at this rate; `None` when the rate is not known."""
        rate = self.per_second
        return None if rate is None else left / rate


def spend_text(standing: Standing) -> str:
    """Spend against budget, in words. What is not known is never counted as nothing."""
    if standing.known_pico is None:
        return f"spend {UNKNOWN}"
    text = f"spent {usd(standing.known_pico)}"
    if standing.unknown_costs:
        text += f" + {standing.unknown_costs} {UNKNOWN}"
    if standing.budget_pico is not None:
        text += f" of {usd(standing.budget_pico)}"
    return text


def progress_text(standing: Standing, pace: Pace) -> str:
    """One line: done of planned, failures, rate, time left, spend against budget."""
    rate, left = pace.per_second, pace.remaining_s(standing.total - standing.done)
    parts = [f"{standing.done}/{standing.total} cells"]
    if standing.failed:
        parts.append(f"{standing.failed} failed")
    if standing.running:
        parts.append(f"{standing.running} running")
    if rate is not None:
        parts.append(f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min")
    if left is not None and standing.done < standing.total:
        parts.append(f"{clock(left)} left")
    parts.append(spend_text(standing))
    return ", ".join(parts)
