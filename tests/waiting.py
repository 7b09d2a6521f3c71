"""Waiting for what another task, thread or process brings about.

The bound is there to end a wait that would never end, not to measure: a machine may stand still for seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE_S = 60.0
# Loops count their timers in milliseconds, from a time that they read some moments before: one may be up so much early.
EARLY_S = 0.002


def until(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Returns once `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


async def until_async(condition: Callable[[], bool | Awaitable[bool]], timeout_s: float = PATIENCE_S) -> None:
    """Returns once `condition` holds; it may be one that is asked over the wire."""
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)
