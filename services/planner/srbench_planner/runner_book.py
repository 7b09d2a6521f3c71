"""Which runners of harnesses and which keys executors have, as these said a moment ago. In memory, for preflights alone."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from srbench.v1 import setup_pb2 as pb

# Executors report every few seconds; one that was not heard of for longer than this is gone.
FRESH_S = 20.0
# Executors that have just started report within this time, also on a busy machine.
FIRST_WAIT_S = 20.0
NO_EXECUTOR = "no executor has reported a runner named"


@dataclass(frozen=True, slots=True)
class _Report:
    heard: float
    runners: dict[str, list[pb.SetupItem]]
    variables: frozenset[str]


class RunnerBook:
    """The last report of each executor."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[str, _Report] = {}
        self._heard = asyncio.Event()

    def report(self, executor_id: str, runners: Iterable[pb.RunnerSetup], variables: Iterable[str] = ()) -> None:
        """Takes an executor's report in place of the one before. `variables`: digests of the names that are set there."""
        found = {setup.runner: list(setup.items) for setup in runners}
        self._reports[executor_id] = _Report(self._clock(), found, frozenset(variables))
        self._heard.set()

    async def inspect(self, runner: str, benchmark: str) -> list[pb.SetupItem]:
        """What the runner needs for `benchmark`: on the executor that lacks least, for one that lacks nothing is enough."""
        await self._first()
        known = self._items(runner)
        if not known:
            detail = f"{NO_EXECUTOR} {runner!r}"
            remedy = "start an executor; a runner of another package must be installed where executors run"
            return [pb.SetupItem(benchmark=benchmark, item="executor", detail=detail, remedy=remedy)]
        best = min(known, key=lambda items: sum(not item.present for item in items))
        return [_of(item, benchmark) for item in best]

    async def unset(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that no executor has among its environment variables; none while no executor was heard of."""
        wanted = sorted(set(names))
        if not wanted:
            return []
        await self._first()
        live = [report.variables for report in self._live()]
        return [name for name in wanted if live and not any(digest_of(name) in known for known in live)]

    async def _first(self) -> None:
        """Waits for the first report of all, for a moment."""
        if not self._reports:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), FIRST_WAIT_S)

    def _items(self, runner: str) -> Sequence[list[pb.SetupItem]]:
        return [report.runners[runner] for report in self._live() if runner in report.runners]

    def _live(self) -> list[_Report]:
        now = self._clock()
        for name in [name for name, report in self._reports.items() if now - report.heard > FRESH_S]:
            del self._reports[name]
        return list(self._reports.values())


def digest_of(name: str) -> str:
    """As executors tell the name of a variable that is set."""
    return hashlib.sha256(name.encode()).hexdigest()


def _of(item: pb.SetupItem, benchmark: str) -> pb.SetupItem:
    found = pb.SetupItem()
    found.CopyFrom(item)
    found.benchmark = benchmark
    return found
