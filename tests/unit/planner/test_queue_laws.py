"""The queue's laws, under random histories: one live lease a cell, no limit exceeded, turns for all, rising tokens."""

from __future__ import annotations

import asyncio
import random
from array import array
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srbench_planner import scheduler as scheduling
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.presence import FRESH_S, Presence
from srbench_planner.queue import BUDGET_WAIT, Grant, Ref, WorkQueue
from srbench_planner.rates import TargetLimits, TargetUse, Window
from srbench_planner.run_cells import RunCells
from srbench_planner.scheduler import Scheduler


class Over(Exception):
    """A test's time is over."""


class Moments:
    """A clock that moves in sleeps alone, and in each by the next of `steps`."""

    Event = asyncio.Event

    def __init__(self, steps: list[float]) -> None:
        self.steps = steps
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, _seconds: float) -> None:
        if not self.steps:
            raise Over
        self.now_s += self.steps.pop(0)


IDLE = SimpleNamespace(idle=True)
DRIVERS = frozenset({"single_turn"})


def bare(matrix: CellMatrix, *targets: TargetLimits, number: int = 1, concurrency: int = 100) -> RunCells:
    """A run whose cases are not loaded yet."""
    return RunCells(
        number=number,
        run_id=f"run-{number}",
        matrix=matrix,
        targets=targets,
        concurrency=concurrency,
        max_failed_cells=25,
        deadline=1e9,
    )


def run(number: int = 1, cases: int = 4, targets: int = 2, concurrency: int = 100, **limits: int) -> RunCells:
    own = [TargetLimits(key=(f"t{index}",), **limits) for index in range(targets)]
    cells = bare(CellMatrix(cases, targets), *own, number=number, concurrency=concurrency)
    cells.build_lanes(["single_turn"] * cases)
    return cells


def lease(queue: WorkQueue, most: int, now: float = 0.0, holder: int = 1) -> list[Grant]:
    return queue.lease(holder, DRIVERS, most, now, 15.0)[0]


def ref(grant: Grant) -> Ref:
    return Ref(grant.run.run_id, grant.cell, grant.token)


def test_cells_leave_in_case_major_order() -> None:
    queue = WorkQueue()
    queue.add(run())
    assert [grant.cell for grant in lease(queue, 100)] == list(range(8))


async def test_no_lease_runs_out_while_the_planner_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps by 100 s within one sleep, then goes on by a second each; leases last 15 s."""
    moments = Moments([100.1, *[1.0] * 14])
    monkeypatch.setattr(scheduling, "time", moments)
    monkeypatch.setattr(scheduling, "asyncio", moments)
    scheduler = Scheduler(IDLE, None, clock=moments.monotonic)  # type: ignore[arg-type]
    cells = run()
    scheduler.queue.add(cells)
    assert len(lease(scheduler.queue, 8)) == 8
    with pytest.raises(Over):
        await scheduler.run()
    assert len(cells.held) == 8
    monkeypatch.setattr(scheduler, "judge", lambda doubtful: None)
    moments.steps = [1.0]
    with pytest.raises(Over):
        await scheduler.run()
    assert not cells.held, "time that passed as it should does count"


def test_a_part_of_the_matrix_keeps_the_order() -> None:
    limits = TargetLimits(key=("a",))
    cells = bare(CellMatrix(3, 2, array("q", [1, 2, 5])), limits, limits)
    cells.build_lanes(["single_turn"] * 3)
    queue = WorkQueue()
    queue.add(cells)
    assert [cells.matrix.pair(grant.cell) for grant in lease(queue, 9)] == [(0, 1), (1, 0), (2, 1)]


def test_runs_take_turns_cell_by_cell() -> None:
    queue = WorkQueue()
    for number in (1, 2, 3):
        queue.add(run(number, cases=50))
    grants = lease(queue, 30)
    assert [sum(grant.run.number == number for grant in grants) for number in (1, 2, 3)] == [10, 10, 10]


def test_a_run_that_waits_does_not_hold_up_others() -> None:
    queue = WorkQueue()
    queue.add(run(1, concurrency=1))
    queue.add(run(2, cases=50))
    assert len(lease(queue, 40)) == 40
    assert queue.runs["run-1"].counts[CellState.LEASED] == 1


def test_a_busy_target_does_not_hold_up_the_other() -> None:
    queue = WorkQueue()
    cells = run(cases=10)
    cells.targets = [TargetLimits(key=("slow",), max_concurrency=1), TargetLimits(key=("fast",))]
    queue.add(cells)
    assert [cells.matrix.pair(grant.cell)[1] for grant in lease(queue, 20)] == [0, *[1] * 10]


def test_a_targets_limit_holds_over_all_runs_until_a_cell_ends() -> None:
    queue = WorkQueue()
    for number in (1, 2):
        queue.add(run(number, targets=1, max_concurrency=3))
    grants = lease(queue, 20)
    assert len(grants) == 3
    assert lease(queue, 20) == []
    assert queue.complete(ref(grants[0]), CellState.DONE, "")
    assert len(lease(queue, 20)) == 1


def test_requests_a_minute_hold_and_say_when_the_next_is_due() -> None:
    queue = WorkQueue()
    queue.add(run(cases=10, targets=1, requests_per_minute=2))
    assert len(lease(queue, 20, now=0.0)) == 2
    grants, due = queue.lease(1, DRIVERS, 20, 10.0, 15.0)
    assert (grants, due) == ([], 60.0)
    assert len(lease(queue, 20, now=60.0)) == 2


def test_tokens_a_minute_hold_and_a_giant_still_leaves_alone() -> None:
    queue = WorkQueue()
    cells = bare(CellMatrix(3, 1), TargetLimits(key=("t",), tokens_per_minute=100, output_tokens=50))
    cells.build_lanes(["single_turn"] * 3, [10, 30, 500])
    queue.add(cells)
    assert [grant.cell for grant in lease(queue, 9, now=0.0)] == [0]
    assert [grant.cell for grant in lease(queue, 9, now=60.0)] == [1]
    assert [grant.cell for grant in lease(queue, 9, now=120.0)] == [2]


def test_only_drivers_that_the_executor_has_are_leased() -> None:
    queue = WorkQueue()
    cells = bare(CellMatrix(2, 1), TargetLimits(key=("t",)))
    cells.build_lanes(["harness", "single_turn"])
    queue.add(cells)
    assert [grant.cell for grant in lease(queue, 9)] == [1]


def test_cells_whose_programs_must_run_go_only_where_a_grader_runs_them() -> None:
    queue = WorkQueue()
    cells = bare(CellMatrix(3, 1), TargetLimits(key=("t",)))
    cells.build_lanes(["single_turn"] * 3, needs=["sandbox", "", "sandbox_image"])
    queue.add(cells)

    def leased(*offers: str) -> list[int]:
        return [grant.cell for grant in queue.lease(1, frozenset(offers), 9, 0.0, 15.0)[0]]

    assert leased("single_turn") == [1]
    assert leased("sandbox") == []
    assert leased("single_turn", "sandbox") == [0]
    assert leased("single_turn", "sandbox", "sandbox_image") == [2]


def test_a_run_says_what_no_living_executor_has() -> None:
    now = 0.0
    presence = Presence(lambda: now)
    cells = bare(CellMatrix(3, 1), TargetLimits(key=("t",)))
    cells.build_lanes(["single_turn", "single_turn", "harness:tau3"], needs=["", "sandbox", ""])
    assert presence.waiting_for(cells) == ["an executor"]
    with presence.asking("e1", ["single_turn"]):
        now = 1000.0
        assert presence.waiting_for(cells) == ["a grader with a sandbox", "an executor with the harness tau3"]
        with presence.asking("e2", ["harness:tau3"], ["sandbox"]), presence.asking("e2", ["single_turn"], ["sandbox"]):
            assert presence.count() == 2
            assert presence.waiting_for(cells) == []
        # It has its hands full, and renews its leases.
        now += FRESH_S
        presence.heard("e2")
        now += FRESH_S
        assert presence.waiting_for(cells) == []
        now += 1
        assert len(presence.waiting_for(cells)) == 2
        cells.paused = True
        assert presence.waiting_for(cells) == []


def test_a_cell_handed_back_for_budget_waits_for_another_to_end() -> None:
    queue = WorkQueue()
    queue.add(run(cases=2, targets=1))
    first, second = lease(queue, 2)
    assert queue.complete(ref(second), CellState.QUEUED, BUDGET_WAIT)
    assert lease(queue, 9) == []
    assert queue.complete(ref(first), CellState.DONE, "")
    again = lease(queue, 9)
    assert [(grant.cell, grant.token) for grant in again] == [(1, 2)]


def test_a_cell_handed_back_for_another_reason_is_offered_at_once() -> None:
    queue = WorkQueue()
    queue.add(run(cases=1, targets=1))
    (grant,) = lease(queue, 1)
    assert queue.complete(ref(grant), CellState.QUEUED, "draining")
    assert queue.complete(ref(grant), CellState.QUEUED, "draining"), "the same report again is right again"
    assert [found.token for found in lease(queue, 9)] == [2]


def test_a_late_report_with_an_outrun_token_changes_nothing() -> None:
    queue = WorkQueue()
    cells = run(cases=1, targets=1)
    queue.add(cells)
    (grant,) = lease(queue, 1)
    assert queue.expire(15.0) == {"run-1": [0]}
    queue.settle(cells, 0, None, "")
    (again,) = lease(queue, 1, now=16.0, holder=2)
    assert not queue.complete(ref(grant), CellState.DONE, "")
    assert cells.states[0] == CellState.LEASED
    assert queue.complete(ref(again), CellState.DONE, "")
    assert queue.complete(ref(again), CellState.DONE, "")
    assert not queue.complete(ref(again), CellState.FAILED, "http_error")


def test_a_judged_cell_whose_executor_reports_after_all_takes_the_report() -> None:
    queue = WorkQueue()
    cells = run(cases=1, targets=1, max_concurrency=1)
    queue.add(cells)
    (grant,) = lease(queue, 1)
    queue.expire(15.0)
    assert queue.complete(ref(grant), CellState.DONE, "")
    queue.settle(cells, 0, CellState.INTERRUPTED, "executor_lost")
    assert (cells.states[0], cells.open_count, cells.judged) == (CellState.DONE, 0, set())


def test_renewal_keeps_a_lease_and_tells_what_is_lost() -> None:
    queue = WorkQueue()
    queue.add(run(cases=2, targets=1))
    kept, other = lease(queue, 1), lease(queue, 1, holder=2)
    renewal = queue.renew(1, [ref(kept[0]), ref(other[0]), Ref("run-9", 0, 1), Ref("run-1", 99, 1)], 10.0, 15.0)
    assert renewal.lost == [ref(other[0]), Ref("run-9", 0, 1), Ref("run-1", 99, 1)]
    assert queue.expire(20.0) == {"run-1": [1]}
    assert queue.expire(25.0) == {"run-1": [0]}


def test_a_stopped_run_cancels_what_waits_and_what_comes_back() -> None:
    queue = WorkQueue()
    cells = run(cases=10, targets=2)
    queue.add(cells)
    first, second = lease(queue, 2)
    cells.stop("cancelled", "cancelled", at_once=True)
    assert cells.counts[CellState.CANCELLED] == 18
    assert lease(queue, 9) == []
    assert queue.renew(1, [ref(first)], 0.0, 15.0).stopped == [cells]
    assert queue.complete(ref(first), CellState.QUEUED, "draining")
    assert queue.complete(ref(second), CellState.CANCELLED, "cancelled")
    assert (cells.open_count, cells.counts[CellState.CANCELLED]) == (0, 20)


def test_nothing_is_leased_before_the_cases_are_there_and_all_of_it_after() -> None:
    cells = bare(CellMatrix(3, 1), TargetLimits(key=("t",)))
    done, leased, queued = CellState.DONE, CellState.LEASED, CellState.QUEUED
    cells.restore([(0, done, 1, 4, None), (1, leased, 3, 4, None), (2, queued, 2, 4, None)], 15.0)
    queue = WorkQueue()
    queue.add(cells)
    assert lease(queue, 9) == []
    assert queue.complete(Ref("run-1", 1, 3), CellState.QUEUED, "draining")
    cells.build_lanes(["single_turn"] * 3)
    assert [(grant.cell, grant.token) for grant in lease(queue, 9)] == [(1, 4), (2, 3)]


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_random_histories_keep_the_laws(seed: int) -> None:
    chance = random.Random(seed)
    queue = WorkQueue()
    runs = [run(n, chance.randint(1, 6), 2, chance.randint(1, 4), max_concurrency=3) for n in (1, 2, 3)]
    for cells in runs:
        queue.add(cells)
    live: dict[tuple[str, int], Grant] = {}
    seen: dict[tuple[str, int], int] = {}
    now = 0.0
    for _ in range(200):
        now += chance.random() * 4
        action = chance.random()
        if action < 0.5:
            for grant in lease(queue, chance.randint(1, 5), now, chance.randint(1, 2)):
                key = (grant.run.run_id, grant.cell)
                assert key not in live, "two live leases of one cell"
                assert grant.token > seen.get(key, 0), "a token came back"
                live[key], seen[key] = grant, grant.token
        elif action < 0.9 and live:
            key = chance.choice(sorted(live))
            states = [CellState.DONE, CellState.FAILED, CellState.QUEUED]
            assert queue.complete(ref(live.pop(key)), chance.choice(states), chance.choice(["x", BUDGET_WAIT]))
        else:
            for run_id, doubtful in queue.expire(now).items():
                for cell in doubtful:
                    del live[run_id, cell]
                    queue.settle(queue.runs[run_id], cell, chance.choice([None, CellState.INTERRUPTED]), "executor_lost")
        for cells in runs:
            held = sum(key[0] == cells.run_id for key in live)
            assert held == len(cells.held) == cells.counts[CellState.LEASED] <= cells.concurrency
            assert sum(cells.counts) == cells.total
        for target in (0, 1):
            assert sum(grant.run.matrix.pair(grant.cell)[1] == target for grant in live.values()) <= 3


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 40)), max_size=60), st.integers(1, 100))
def test_no_minute_ever_holds_more_than_the_limit(steps: list[tuple[float, int]], limit: int) -> None:
    window, now = Window(), 0.0
    taken: list[tuple[float, int]] = []
    for pause, amount in steps:
        now += pause
        if window.due(now, amount, limit) <= now:
            window.take(now, amount)
            taken.append((now, amount))
    for begin, first in taken:
        total = sum(amount for at, amount in taken if begin <= at < begin + 60)
        assert total <= max(limit, first)


def test_a_full_target_is_due_only_when_a_request_ends() -> None:
    use = TargetUse(in_flight=2)
    assert use.due(0.0, TargetLimits(key=("t",), max_concurrency=2), 0) == float("inf")
    assert use.due(0.0, TargetLimits(key=("t",), max_concurrency=3), 0) == pytest.approx(0.0)
