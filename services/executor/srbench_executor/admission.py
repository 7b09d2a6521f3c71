"""When a call that was provably not accepted may be offered again. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
SHORTEST_WAIT_S = 0.05


def retry_after_s(value: str, now: datetime) -> float | None:
    """The seconds a `Retry-After` header asks for, 0 for a time that has passed; `None` when it says nothing usable."""
    text = value.strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            due = parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            return None
        due = due if due.tzinfo else due.replace(tzinfo=UTC)
        seconds = (due - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def wait_s(offer: int, asked_s: float | None) -> float:
    """How long to wait after offer number `offer` (from 0): what the endpoint asked for, else twice as long each time."""
    if asked_s is not None:
        return max(SHORTEST_WAIT_S, asked_s)
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(offer, 16))
