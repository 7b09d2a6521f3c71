"""The scheduling core: which cells an executor gets, and what its reports change.

Laws, kept by tests: a cell has at most one live lease; a run never has more cells in hand than its concurrency, a target
never more than its own limit over all runs; runs take turns, one cell each; within a run the lowest cell that may leave
goes first, so that the order is case-major. Pure: the clock comes in, tables and waiting are others' business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from srbench_planner.cells import TERMINAL, CellState
from srbench_planner.rates import TargetUse
from srbench_planner.run_cells import Hold, Lane, RunCells

BUDGET_WAIT = "budget_wait"


class Grant(NamedTuple):
    """A cell that an executor may work on."""

    run: RunCells
    cell: int
    token: int


class Ref(NamedTuple):
    """Names one lease."""

    run_id: str
    cell: int
    token: int


@dataclass(slots=True)
class Renewal:
    """What a renewal brings: leases that are lost, and runs whose cells are to be stopped."""

    lost: list[Ref]
    stopped: list[RunCells]


class WorkQueue:
    """The runs in hand and the targets they share."""

    def __init__(self) -> None:
        self.runs: dict[str, RunCells] = {}
        self._turns: deque[RunCells] = deque()
        self._uses: dict[tuple[str, ...], TargetUse] = {}

    def add(self, run: RunCells) -> None:
        """Takes a run in; its held cells count at their targets."""
        self.runs[run.run_id] = run
        self._turns.append(run)
        run.uses = [self._uses.setdefault(limits.key, TargetUse()) for limits in run.targets]
        for cell in run.held:
            self._use(run, cell).in_flight += 1

    def remove(self, run: RunCells) -> None:
        """Lets a run go that has ended."""
        del self.runs[run.run_id]
        self._turns.remove(run)

    def lease(
        self, holder: int, offers: frozenset[str], most: int, now: float, duration_s: float
    ) -> tuple[list[Grant], float]:
        """Up to `most` cells for the process `holder`, which has the drivers and capabilities `offers`; and the next time
        at which the clock alone makes another one due."""
        grants: list[Grant] = []
        due = float("inf")
        idle = 0
        while len(grants) < most and idle < len(self._turns):
            run = self._turns[0]
            self._turns.rotate(-1)
            lane, run_due = self._pick(run, offers, now)
            if lane is None:
                idle += 1
                due = min(due, run_due)
                continue
            idle = 0
            cell = lane.pop()
            run.uses[lane.target].take(now, run.targets[lane.target], run.token_count(cell))
            grants.append(Grant(run, cell, run.lease(cell, holder, now + duration_s)))
        return grants, due

    def renew(self, holder: int, refs: Iterable[Ref], now: float, duration_s: float) -> Renewal:
        """Extends the leases of `holder`; those that are not its own any more are lost."""
        lost: list[Ref] = []
        for ref in refs:
            hold = self._held(ref)
            if hold is None or hold.holder != holder:
                lost.append(ref)
            else:
                hold.expires = now + duration_s
        stopped = [run for run in self.runs.values() if run.stop_at_once]
        return Renewal(lost, stopped)

    def prolong(self, by_s: float) -> None:
        """Extends all leases."""
        for run in self.runs.values():
            for hold in run.held.values():
                hold.expires += by_s

    def complete(self, ref: Ref, state: CellState, reason: str) -> bool:
        """Ends or hands back a leased cell. False when its token was outrun; the same report twice is right twice."""
        run = self.runs.get(ref.run_id)
        if run is None or not 0 <= ref.cell < run.total or run.tokens[ref.cell] != ref.token:
            return False
        current = run.states[ref.cell]
        if current in TERMINAL or current == CellState.QUEUED:
            # Saved again, so that this acknowledgement, too, follows a durable write.
            run.changed.add(ref.cell)
            return current == state and (state == CellState.QUEUED or run.reasons.get(ref.cell, "") == reason)
        if ref.cell in run.held:
            self._use(run, ref.cell).in_flight -= 1
        if state == CellState.QUEUED:
            run.give_back(ref.cell, park=reason == BUDGET_WAIT)
        else:
            run.end(ref.cell, state, reason)
            run.unpark()
        return True

    def doubt(self, run: RunCells, cells: Iterable[int]) -> list[int]:
        """Takes leased cells of `run` from their holders, to be judged by the facts."""
        taken = run.doubt(list(cells))
        for cell in taken:
            self._use(run, cell).in_flight -= 1
        return taken

    def expire(self, now: float) -> dict[str, list[int]]:
        """Takes away the leases that ran out, by run."""
        found: dict[str, list[int]] = {}
        for run in self.runs.values():
            late = [cell for cell, hold in run.held.items() if hold.expires <= now]
            if late:
                found[run.run_id] = self.doubt(run, late)
        return found

    def retire(self, holders: frozenset[int]) -> dict[str, list[int]]:
        """Takes away all leases of processes that are gone, by run."""
        found: dict[str, list[int]] = {}
        for run in self.runs.values():
            orphans = [cell for cell, hold in run.held.items() if hold.holder in holders]
            if orphans:
                found[run.run_id] = self.doubt(run, orphans)
        return found

    def settle(self, run: RunCells, cell: int, state: CellState | None, reason: str) -> None:
        """Gives a judged cell the end that the facts say, or puts it back when they know of none (`None`)."""
        if cell not in run.judged:
            return
        if state is None:
            run.give_back(cell, park=False)
        else:
            run.end(cell, state, reason)
            run.unpark()

    def _held(self, ref: Ref) -> Hold | None:
        run = self.runs.get(ref.run_id)
        if run is None or not 0 <= ref.cell < run.total or run.tokens[ref.cell] != ref.token:
            return None
        return run.held.get(ref.cell)

    def _pick(self, run: RunCells, offers: frozenset[str], now: float) -> tuple[Lane | None, float]:
        """The lane whose head is the lowest cell that may leave now; else the time at which the clock lets one leave."""
        if run.stop_status or run.paused or run.counts[CellState.LEASED] >= run.concurrency:
            return None, float("inf")
        best: Lane | None = None
        lowest = run.total
        due = float("inf")
        for lane in run.lanes:
            head = lane.head()
            if head >= lowest or lane.driver not in offers or (lane.need and lane.need not in offers):
                continue
            limits = run.targets[lane.target]
            ready = now if limits.free else run.uses[lane.target].due(now, limits, run.token_count(head))
            if ready <= now:
                best, lowest = lane, head
            else:
                due = min(due, ready)
        return best, due

    def _use(self, run: RunCells, cell: int) -> TargetUse:
        return run.uses[run.matrix.target(cell)]
