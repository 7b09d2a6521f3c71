"""Keeps the runs going: leases that ran out, deadlines, early stops, cancels, ends, and cells whose fate must be asked.

A cell whose executor is gone is never guessed about: accounting fences it and says what happened. All state changes are
made in memory on the event loop and saved by `save`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from grpc import aio
from srbench_kit.errors import SrBenchError
from srbench_kit.values import Json

from srbench_planner import stop_rules
from srbench_planner.accounting_client import Facts, Fence
from srbench_planner.active import MAX_FAILURE_EVENTS, ActiveRun
from srbench_planner.cells import CellState
from srbench_planner.journal import Journal, now_us
from srbench_planner.ports import HARNESS_PREFIX
from srbench_planner.presence import Presence
from srbench_planner.queue import WorkQueue
from srbench_planner.run_cells import RunCells

TICK_S = 0.1
# A tick that comes so late was held up: this process, or the whole machine, stood still, and renewals wait to be read.
STANDSTILL_S = 1.0
PARKED_S = 1.0
FENCE_BATCH = 1000
RETRY_S = 0.5
MAX_RETRY_S = 5.0
_log = logging.getLogger(__name__)


class Scheduler:
    """The runs in hand and all that happens to them by time or by consequence."""

    def __init__(self, journal: Journal, facts: Facts, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.queue = WorkQueue()
        self.active: dict[str, ActiveRun] = {}
        self.clock = clock
        self.next_due = float("inf")
        self._journal = journal
        self._facts = facts
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self.presence = Presence()
        self._parked_since: dict[str, float] = {}

    def admit(self, run: ActiveRun) -> None:
        """Takes a run in."""
        self.active[run.cells.run_id] = run
        self.queue.add(run.cells)
        self.wake()

    def wake(self) -> None:
        """Lets those who wait for cells look again."""
        self._woken.set()
        self._woken = asyncio.Event()

    async def wait_for_work(self, timeout_s: float) -> None:
        """Returns when there may be cells to lease, or after `timeout_s`."""
        event = self._woken
        try:
            await asyncio.wait_for(event.wait(), max(0.0, min(timeout_s, self.next_due - self.clock())))
        except TimeoutError:
            return

    def begin(self, cells: RunCells) -> None:
        """Notes that cells of the run were leased."""
        if cells.status == "queued":
            cells.status = "running"
            self._journal.update(cells, status="running")
            self._journal.event(cells, "running", {})
        self._changed(cells)

    def consider(self, cells: RunCells) -> None:
        """Draws the consequences of changed cells: events, an early stop, the end of the run."""
        run = self.active.get(cells.run_id)
        if run is None:
            return
        self._changed(cells)
        if cells.newly_failed:
            self._failure_events(run)
            reason = "" if cells.stop_status else stop_rules.early_stop(cells)
            cells.newly_failed.clear()
            if reason:
                self.stop(cells, "failed", reason, at_once=False)
        self._drained(cells)
        if not cells.open_count:
            self._finish(run)

    def stop(self, cells: RunCells, status: str, reason: str, *, at_once: bool) -> None:
        """Stops a run: queued cells are cancelled; cells in hand end by themselves unless `at_once`."""
        cells.stop(status, reason, at_once=at_once)
        self._journal.update(cells, stop_status=cells.stop_status, stop_reason=cells.stop_reason)
        self._changed(cells)
        if at_once:
            self._spawn(self._halt(cells.run_id, reason))
        if not cells.open_count and cells.run_id in self.active:
            self._finish(self.active[cells.run_id])

    def pause(self, cells: RunCells, actor: str) -> None:
        """Leases no more of a run; what is in hand ends by itself."""
        cells.paused, cells.drained = True, False
        self._journal.update(cells, paused=1)
        self._journal.event(cells, "paused", {"actor": actor, "in_hand": cells.counts[CellState.LEASED]})
        self._drained(cells)
        self._changed(cells)

    def resume(self, cells: RunCells, actor: str) -> None:
        """Leases cells of a paused run again."""
        cells.paused = False
        self._journal.update(cells, paused=0)
        self._journal.event(cells, "resumed", {"actor": actor})
        self._changed(cells)
        self.wake()

    def set_concurrency(self, cells: RunCells, concurrency: int, actor: str) -> None:
        """Changes how many cells may be in hand at once; those above a lower number end by themselves."""
        data: dict[str, Json] = {"actor": actor, "from": cells.concurrency, "to": concurrency}
        cells.concurrency = concurrency
        self._journal.update(cells, concurrency=concurrency)
        self._journal.event(cells, "concurrency_changed", data)
        self._changed(cells)
        self.wake()

    def _drained(self, cells: RunCells) -> None:
        if cells.paused and not cells.drained and not cells.counts[CellState.LEASED]:
            cells.drained = True
            self._journal.event(cells, "drained", {})

    def judge(self, doubtful: dict[str, list[int]]) -> None:
        """Asks accounting what became of cells that nobody holds any more."""
        for run_id, cells in doubtful.items():
            for start in range(0, len(cells), FENCE_BATCH):
                self._spawn(self._judge(run_id, cells[start : start + FENCE_BATCH]))

    async def save(self) -> None:
        """Makes all changes durable, and lets go of runs that ended.

        A caller who goes away does not take the transaction along.
        Raises: `Exhausted` (`STORAGE_FULL`), `Unreachable` (`STORAGE_UNAVAILABLE`).
        """
        saving = asyncio.ensure_future(self._save())
        saving.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(saving)

    async def _save(self) -> None:
        for cells in await self._journal.flush():
            if self.active.pop(cells.run_id, None) is not None:
                self.queue.remove(cells)
                self._parked_since.pop(cells.run_id, None)

    async def run(self) -> None:
        """Ticks until it is cancelled. No lease runs out while this process stands still, for nobody could renew it."""
        try:
            while True:
                began = time.monotonic()
                await asyncio.sleep(TICK_S)
                late_s = time.monotonic() - began - TICK_S
                if late_s > STANDSTILL_S:
                    self.queue.prolong(late_s)
                await self.tick()
        finally:
            for task in self._tasks:
                task.cancel()

    async def tick(self) -> None:
        """Looks at the clock once."""
        now = self.clock()
        self.judge(self.queue.expire(now))
        for run in list(self.active.values()):
            cells = run.cells
            if now >= cells.deadline and not cells.stop_at_once and cells.open_count:
                self.stop(cells, "failed", "deadline", at_once=True)
            self._release_parked(cells, now)
        if self._journal.idle:
            return
        try:
            await self.save()
        except SrBenchError as error:
            # Everything stays pending and goes with the next save.
            _log.error("changes of runs cannot be saved: %s", error)

    def _release_parked(self, cells: RunCells, now: float) -> None:
        """When no cell is in hand whose end could free the budget, parked cells are offered again after a moment."""
        if not cells.parked or cells.counts[CellState.LEASED]:
            self._parked_since.pop(cells.run_id, None)
            return
        since = self._parked_since.setdefault(cells.run_id, now)
        if now - since >= PARKED_S and cells.unpark():
            del self._parked_since[cells.run_id]
            self.wake()

    def _changed(self, cells: RunCells) -> None:
        run = self.active.get(cells.run_id)
        if run is not None:
            run.update_us = now_us()
        self._journal.touch(cells)

    def _failure_events(self, run: ActiveRun) -> None:
        cells = run.cells
        for cell in cells.newly_failed:
            data = self._cell_data(run, cell)
            if run.failure_event_count == 0:
                self._journal.event(cells, "failure_observed", data)
            if run.failure_event_count < MAX_FAILURE_EVENTS:
                interrupted = cells.states[cell] == CellState.INTERRUPTED
                self._journal.event(cells, "case_sent_unknown" if interrupted else "case_failed", data)
            run.failure_event_count += 1

    def _cell_data(self, run: ActiveRun, cell: int) -> dict[str, Json]:
        case, target = run.cells.matrix.pair(cell)
        data: dict[str, Json] = {"cell": cell, "target_id": run.plan.targets[target].id}
        if run.cases is not None:
            data["case_id"] = run.cases.case_id(case)
        return data | {"reason": run.cells.reasons.get(cell, "")}

    def _finish(self, run: ActiveRun) -> None:
        cells = run.cells
        if cells.status not in ("queued", "running"):
            return
        end = stop_rules.run_end(cells, [target.id for target in run.plan.targets])
        cells.status = end.status
        counts = {state.name.lower(): cells.counts[state] for state in CellState if cells.counts[state]}
        self._journal.event(cells, end.status, {"reason": end.reason, "error": end.error, "cells": dict(counts)})
        self._journal.update(cells, status=end.status, reason=end.reason, error=end.error)
        self._journal.ending(cells)
        self._changed(cells)

    async def _halt(self, run_id: str, reason: str) -> None:
        await self._persist(lambda: self._facts.halt(run_id, reason), f"halt {run_id}")

    async def _judge(self, run_id: str, doubtful: Iterable[int]) -> None:
        run = self.active.get(run_id)
        if run is None:
            return
        cells = run.cells
        fences = [_fence(cells, cell) for cell in doubtful if cell in cells.judged]
        if not fences:
            return
        known = await self._persist(lambda: self._facts.fence(run_id, fences), f"fence cells of {run_id}")
        for fact in known:
            self.queue.settle(cells, fact.cell, fact.state, fact.reason)
        self.consider(cells)
        self.wake()
        await self.tick()

    async def _persist(self, call: Callable[[], Coroutine[Any, Any, Any]], what: str) -> Any:
        """Calls until it succeeds: facts must be known before a cell moves, however long accounting is away."""
        wait_s = RETRY_S
        while True:
            try:
                return await call()
            except aio.AioRpcError as error:
                _log.warning("accounting did not %s: %s", what, error.details())
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, MAX_RETRY_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the scheduler failed", exc_info=task.exception())


def _fence(cells: RunCells, cell: int) -> Fence:
    case, target = cells.matrix.pair(cell)
    return Fence(
        cell=cell,
        token=cells.tokens[cell] + 1,
        case_index=case,
        target_index=target,
        unresumable=cells.driver(cell).startswith(HARNESS_PREFIX),
    )
