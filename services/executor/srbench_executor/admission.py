"""When a call that was provably not accepted may be offered again. Pure."""

from __future__ import annotations

import math
import zlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from srbench_kit.completion import Headers, header

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
SHORTEST_WAIT_S = 0.05


def asked_wait_s(headers: Headers, now: datetime) -> float | None:
    """The seconds that the headers of a refusal ask to wait; `None` when they say nothing usable.

    The milliseconds of Azure and OpenAI are the more exact form. A date is meant by the clock of the answer's own `Date`,
    where there is one: the clocks of two machines differ by more than a wait.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        asked = _seconds(header(headers, name))
        if asked is not None:
            return asked / 1000
    said = header(headers, "retry-after")
    return retry_after_s(said, _date(header(headers, "date")) or now) if said else None


def retry_after_s(value: str, now: datetime) -> float | None:
    """The seconds a `Retry-After` header asks for, 0 for a time that has passed; `None` when it says nothing usable."""
    seconds = _seconds(value)
    if seconds is not None:
        return seconds
    due = _date(value)
    return None if due is None else max(0.0, (due - now).total_seconds())


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def spread_s(pause_s: float, name: str) -> float:
    """`pause_s`, and up to a quarter more for the call of that name: calls that were refused together do not all come back
    together, to be refused again."""
    return pause_s * (1 + zlib.crc32(name.encode()) / 2**34)


def wait_s(offer: int, asked_s: float | None) -> float:
    """How long to wait after offer number `offer` (from 0): what the endpoint asked for, else twice as long each time.

    One that asks for no wait is believed once: an endpoint that always does would be offered the call without a pause.
    """
    if asked_s is not None and asked_s > SHORTEST_WAIT_S:
        return asked_s
    if asked_s is not None and offer == 0:
        return SHORTEST_WAIT_S
    waits = offer if asked_s is None else offer - 1
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(waits, 16))
