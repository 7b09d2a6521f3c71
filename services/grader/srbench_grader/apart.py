"""Judges large texts in a process of its own, so that no text, however hostile, keeps the service from all the others.

An ordinary answer is judged at once, in well under a millisecond; one of this size is none, and may take a second.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from srbench_kit.errors import SrBenchError

from srbench_grader.grading import Case, Grading, Judge, JudgeReply

T = TypeVar("T")
LARGE_CHARS = 16_384
MOST_S = 60.0


def is_large(text: str) -> bool:
    """Whether `text` is to be judged apart."""
    return len(text) > LARGE_CHARS


class Apart:
    """One process, started when it is first needed, and again after it had to be ended."""

    def __init__(self, most_s: float = MOST_S) -> None:
        self._most_s = most_s
        self._pool: ProcessPoolExecutor | None = None

    async def judge(self, judge: Judge, text: str, case: Case, replies: tuple[JudgeReply, ...]) -> Grading:
        """What `judge` makes of `text`, here or apart. Raises: what `judge` raises, and as `call`."""
        if not is_large(text):
            return judge(text, case, replies)
        try:
            pickle.dumps(judge)
        except (pickle.PicklingError, AttributeError):
            # A grader of another package that cannot be named from elsewhere.
            return judge(text, case, replies)
        return await self.call(judge, text, case, replies)

    async def read(self, function: Callable[..., T], text: str, *more: str) -> T:
        """What a function of ours reads from `text`, here or apart. Raises: as `call`."""
        return await self.call(function, text, *more) if is_large(text) else function(text, *more)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls `function` in the process.

        Raises: what it raises; `SrBenchError` (`JUDGING_TIMEOUT`, `JUDGING_FAILED`) when it comes to no end.
        """
        pool = self._pool = self._pool or ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        try:
            async with asyncio.timeout(self._most_s):
                return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
        except TimeoutError:
            self._end(pool)
            message = f"judging a text took more than {self._most_s:g} s"
            raise SrBenchError("JUDGING_TIMEOUT", message) from None
        except BrokenProcessPool:
            self._end(pool)
            raise SrBenchError("JUDGING_FAILED", "the process that judges large texts ended") from None

    def close(self) -> None:
        """Ends the process."""
        if self._pool is not None:
            self._end(self._pool)

    def _end(self, pool: ProcessPoolExecutor) -> None:
        if self._pool is pool:
            self._pool = None
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        # A text under judgement does not listen.
        for process in processes:
            process.kill()
