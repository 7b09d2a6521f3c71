"""What graders that run programs share: hidden tests, sandboxes, and a bound on how many work at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.packed_tests import hidden_part
from srbench_kit.values import Json

from srbench_grader import solutions
from srbench_grader.apart import Apart
from srbench_grader.grading import Case
from srbench_grader.pool import WarmPool
from srbench_grader.sandbox import selection
from srbench_grader.sandbox.limits import MIB
from srbench_grader.sandbox.session import Session
from srbench_grader.sandbox.values import Sandbox

T = TypeVar("T")
FetchHidden: TypeAlias = Callable[[str], Awaitable[bytes]]
# As much as the released sandbox gives.
MEMORY_BYTES = 4096 * MIB


def worker_count() -> int:
    """How many programs run at a time: `SR_BENCH_SANDBOX_WORKERS`, else one a processor.

    Raises: `InvalidInput` (`BAD_WORKERS`).
    """
    text = os.environ.get("SR_BENCH_SANDBOX_WORKERS", "")
    if not text:
        return os.cpu_count() or 1
    if not text.isdigit() or not 1 <= int(text) <= 1024:
        raise InvalidInput("BAD_WORKERS", f"SR_BENCH_SANDBOX_WORKERS is {text!r}; expected 1 to 1024")
    return int(text)


class Workshop:
    """Fetches hidden parts by `fetch_hidden` and keeps warm sandboxes, one pool for each sandbox in use."""

    def __init__(self, fetch_hidden: FetchHidden, workers: int | None = None) -> None:
        self._fetch_hidden = fetch_hidden
        self._workers = worker_count() if workers is None else workers
        self._turns = asyncio.Semaphore(self._workers)
        # Threads that live as long as this process: a sandbox ends together with the thread that started it.
        self._threads = ThreadPoolExecutor(self._workers + 1, thread_name_prefix="grading")
        self.apart = Apart()
        self._sandboxes: dict[str, Sandbox] = {}
        self._pools: dict[str, WarmPool] = {}

    async def hidden(self, case: Case, part: Callable[[Mapping[str, Json]], bytes] = hidden_part) -> bytes:
        """The hidden part of a case. `part` makes it of a whole row.

        Raises: `NotFound` (`NO_HIDDEN_TESTS`), and what fetching raises.
        """
        sha256 = case.metadata.get("hidden_sha256")
        if isinstance(sha256, str):
            return await self._fetch_hidden(sha256)
        # Cases that the released implementation prepared carry the whole row.
        record = case.metadata.get("source_record")
        if isinstance(record, dict):
            return await asyncio.to_thread(part, record)
        raise NotFound("NO_HIDDEN_TESTS", f"{case.case_id or 'the case'} names no hidden tests")

    async def work(self, task: Callable[[], T]) -> T:
        """Runs a blocking task when its turn comes."""
        async with self._turns:
            return await asyncio.get_running_loop().run_in_executor(self._threads, task)

    def sandbox(self, options: Mapping[str, Json]) -> Sandbox:
        """The sandbox that the options call for; blocking. Raises: as `selection.choose`."""
        key = str(options.get("sandbox_image") or "")
        if key not in self._sandboxes:
            self._sandboxes[key] = selection.choose(options)
        return self._sandboxes[key]

    def ready_session(self, options: Mapping[str, Json]) -> Session:
        """A sandbox with a runner that waits for a solution; blocking. The caller closes it.

        Raises: `Unreachable` (`NO_SANDBOX`, `SANDBOX_FAILED`).
        """
        sandbox = self.sandbox(options)
        pool = self._pools.get(sandbox.identity)
        if pool is None:
            pool = WarmPool(lambda: solutions.ready_runner(sandbox, MEMORY_BYTES), self._workers)
            kept = self._pools.setdefault(sandbox.identity, pool)
            if kept is not pool:
                pool.close()
                pool = kept
        return pool.take()

    def close(self) -> None:
        """Ends all sandboxes that wait, and takes no more work."""
        self.apart.close()
        for pool in self._pools.values():
            pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
