"""The cells of one run in memory: states, tokens, who holds what, and which may be leased next.

Pure: no clock, no table, no wire. Every change of a cell goes through `_move`, which keeps the counts and remembers the
cell as changed until the change is durable. The cost of a change does not depend on the size of the plan.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from srbench_planner.cells import TERMINAL, CellMatrix, CellState
from srbench_planner.rates import TargetLimits, TargetUse

# Above every cell.
NONE = 2**62


@dataclass(slots=True)
class Hold:
    """Who holds a leased cell: the number of an executor's process, and until when without renewal."""

    holder: int
    expires: float


@dataclass(slots=True)
class TargetTally:
    """How the cells of one target ended."""

    total: int = 0
    ended: int = 0
    failed: int = 0
    reasons: set[str] = field(default_factory=set)


class Lane:
    """The queued cells of one (target, driver, need), lowest first."""

    __slots__ = ("_cells", "_next", "_returned", "driver", "need", "target")

    def __init__(self, target: int, driver: str, need: str) -> None:
        self.target = target
        self.driver = driver
        self.need = need
        self._cells: array[int] = array("q")
        self._next = 0
        self._returned: list[int] = []

    def add(self, cell: int) -> None:
        """Appends a cell; cells come in rising order."""
        self._cells.append(cell)

    def put_back(self, cell: int) -> None:
        """Takes a cell again that was handed out before."""
        heapq.heappush(self._returned, cell)

    def head(self) -> int:
        """The lowest queued cell; `NONE` when there is none."""
        fresh = self._cells[self._next] if self._next < len(self._cells) else NONE
        return min(fresh, self._returned[0]) if self._returned else fresh

    def pop(self) -> int:
        """Takes the lowest queued cell out."""
        cell = self.head()
        if self._returned and self._returned[0] == cell:
            heapq.heappop(self._returned)
        else:
            self._next += 1
        return cell

    def clear(self) -> None:
        """Forgets all queued cells."""
        self._next = len(self._cells)
        self._returned.clear()


class RunCells:
    """One run's cells."""

    def __init__(
        self,
        *,
        number: int,
        run_id: str,
        matrix: CellMatrix,
        targets: Sequence[TargetLimits],
        concurrency: int,
        max_failed_cells: int,
        deadline: float,
    ) -> None:
        """`deadline` is in the queue's seconds. Nothing can be leased before `build_lanes`."""
        self.number = number
        self.run_id = run_id
        self.matrix = matrix
        self.targets = targets
        self.concurrency = concurrency
        self.max_failed_cells = max_failed_cells
        self.deadline = deadline
        self.status = "queued"
        # An operator's pause: nothing is leased. `drained` once it was told that nothing is in hand any more.
        self.paused = False
        self.drained = False
        # Why the run is being stopped: the status it ends with, the reason, and whether cells in hand are stopped, too.
        self.stop_status = ""
        self.stop_reason = ""
        self.stop_at_once = False
        self.states = bytearray([CellState.QUEUED]) * len(matrix)
        self.tokens: array[int] = array("q", bytes(8 * len(matrix)))
        self.holders: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.held: dict[int, Hold] = {}
        # Leased cells that nobody renews; their fate is asked of accounting.
        self.judged: set[int] = set()
        # Cells that found the budget reserved by others; they wait until one of those ends.
        self.parked: list[int] = []
        self.changed: set[int] = set()
        self.newly_failed: list[int] = []
        self.counts = [0] * (max(CellState) + 1)
        self.counts[CellState.QUEUED] = len(matrix)
        self.tallies = [TargetTally() for _ in targets]
        for cell in range(len(matrix)):
            self.tallies[matrix.target(cell)].total += 1
        self._lanes: dict[tuple[int, str, str], Lane] = {}
        # What is being asked of each target by all runs; the queue sets it when it takes the run in.
        self.uses: list[TargetUse] = []
        self._ready = False
        self._drivers: Sequence[str] = ()
        self._needs: Sequence[str] = ()
        self._token_counts: Sequence[int] = ()

    def restore(self, rows: Iterable[tuple[int, int, int, int | None, str | None]], expires: float) -> None:
        """Takes over saved rows (cell, state, token, holder, reason). Leases get until `expires` to be renewed."""
        for cell, state, token, holder, reason in rows:
            self.tokens[cell] = token
            if holder is not None:
                self.holders[cell] = holder
            if state == CellState.QUEUED:
                continue
            self._move(cell, CellState(state), reason or "")
            if state == CellState.LEASED and holder is not None:
                self.held[cell] = Hold(holder, expires)
        self.changed.clear()
        self.newly_failed.clear()

    def build_lanes(self, drivers: Sequence[str], token_counts: Sequence[int] = (), needs: Sequence[str] = ()) -> None:
        """Sorts the queued cells into lanes. All hold one entry a case: its driver, the prompt tokens it reserves, and what
        its grader must have, if anything."""
        self._ready, self._drivers, self._token_counts = True, drivers, token_counts
        self._needs = needs or [""] * len(drivers)
        self.parked.clear()
        for cell in range(len(self.matrix)):
            if self.states[cell] == CellState.QUEUED:
                self._lane(cell).add(cell)

    def driver(self, cell: int) -> str:
        """The driver of a cell; empty as long as its cases are not loaded."""
        return self._drivers[self.matrix.pair(cell)[0]] if self._ready else ""

    @property
    def lanes(self) -> Iterable[Lane]:
        """The lanes."""
        return self._lanes.values()

    def wanted(self) -> set[tuple[str, str]]:
        """(driver, need) of the cells that wait to be leased."""
        return {(lane.driver, lane.need) for lane in self._lanes.values() if lane.head() != NONE}

    def token_count(self, cell: int) -> int:
        """Tokens that a cell reserves of its target's minute; 0 where no target has such a limit."""
        if not self._token_counts:
            return 0
        case, target = self.matrix.pair(cell)
        return self._token_counts[case] + self.targets[target].output_tokens

    @property
    def total(self) -> int:
        """Planned cells."""
        return len(self.states)

    @property
    def open_count(self) -> int:
        """Cells that have not ended."""
        return self.counts[CellState.QUEUED] + self.counts[CellState.LEASED]

    def lease(self, cell: int, holder: int, expires: float) -> int:
        """Leases a queued cell that was popped from its lane; returns the new token."""
        self.tokens[cell] += 1
        self.held[cell] = Hold(holder, expires)
        self.holders[cell] = holder
        self._move(cell, CellState.LEASED, "")
        return self.tokens[cell]

    def end(self, cell: int, state: CellState, reason: str) -> None:
        """Ends a cell that has not ended."""
        self.held.pop(cell, None)
        self.judged.discard(cell)
        self._move(cell, state, reason)

    def give_back(self, cell: int, *, park: bool) -> None:
        """Puts a leased cell back into the queue, or aside when `park`. A run that is being stopped cancels it instead."""
        if self.stop_status:
            self.end(cell, CellState.CANCELLED, self.stop_reason)
            return
        self.held.pop(cell, None)
        self.judged.discard(cell)
        self._move(cell, CellState.QUEUED, "")
        if not self._ready:
            return
        if park:
            self.parked.append(cell)
        else:
            self._lane(cell).put_back(cell)

    def unpark(self) -> bool:
        """Lets parked cells be leased again; says whether there were any."""
        for cell in self.parked:
            self._lane(cell).put_back(cell)
        found = bool(self.parked)
        self.parked.clear()
        return found

    def doubt(self, cells: Iterable[int]) -> list[int]:
        """Takes leased cells from their holders, to be judged; returns those that were held."""
        taken = [cell for cell in cells if self.held.pop(cell, None) is not None]
        self.judged.update(taken)
        return taken

    def stop(self, status: str, reason: str, *, at_once: bool) -> list[int]:
        """Cancels all queued cells; returns them. A user's cancel goes before any other cause, else the first one stays."""
        if not self.stop_status or status == "cancelled":
            self.stop_status, self.stop_reason = status, reason
        self.stop_at_once = self.stop_at_once or at_once
        queued = [cell for cell, state in enumerate(self.states) if state == CellState.QUEUED]
        for cell in queued:
            self._move(cell, CellState.CANCELLED, self.stop_reason)
        for lane in self._lanes.values():
            lane.clear()
        self.parked.clear()
        return queued

    def _lane(self, cell: int) -> Lane:
        case, target = self.matrix.pair(cell)
        key = (target, self._drivers[case], self._needs[case])
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(*key)
        return lane

    def _move(self, cell: int, state: CellState, reason: str) -> None:
        self.counts[self.states[cell]] -= 1
        self.counts[state] += 1
        self.states[cell] = state
        self.changed.add(cell)
        if reason:
            self.reasons[cell] = reason
        if state in TERMINAL:
            tally = self.tallies[self.matrix.target(cell)]
            tally.ended += 1
            if state == CellState.FAILED:
                tally.failed += 1
                tally.reasons.add(reason)
            if state in (CellState.FAILED, CellState.INTERRUPTED):
                self.newly_failed.append(cell)
