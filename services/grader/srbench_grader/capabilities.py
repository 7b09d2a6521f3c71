"""What this grader has that not every grader has. Looking starts programs, so what was found is kept for a while."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from srbench_kit.errors import SrBenchError

from srbench_grader.sandbox import docker, selection

SANDBOX, ENGINE = "sandbox", "sandbox_image"
KEPT_S = 60.0


def look() -> list[str]:
    """What there is now. Blocking."""
    found = []
    try:
        selection.choose({})
        found.append(SANDBOX)
    except SrBenchError:
        # Which is the answer: `InspectSetup` and the doctor say what is wrong.
        pass
    if (os.environ.get("SR_BENCH_SANDBOX") or "auto") != "bwrap" and not docker.engine_problem():
        found.append(ENGINE)
    return found


class Capabilities:
    """What was found last, looked for again when that is old; by one look at a time."""

    def __init__(self, look: Callable[[], list[str]] = look, clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look, clock
        self._found: Sequence[str] = ()
        self._until = float("-inf")
        self._looking = asyncio.Lock()

    async def names(self) -> Sequence[str]:
        """The names of what there is."""
        async with self._looking:
            if self._clock() >= self._until:
                self._found = await asyncio.to_thread(self._look)
                self._until = self._clock() + KEPT_S
            return self._found
