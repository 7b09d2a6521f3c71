"""A fleet of two planners, two accountings, two graders and four executors on PostgreSQL survives the loss of any of them:
nothing is sent twice, nothing acknowledged is lost, the budget is exact, each cell has one end, it goes on by itself."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.evaluations import calls, manifest, question, start, target
from tests.e2e.upstream import Upstream, upstream
from tests.fleet.fleet import CAPACITY, OWNER_S, Fleet, running
from tests.fleet.laws import Witness, check
from tests.postgres import Database
from tests.waiting import until

pytestmark = pytest.mark.e2e

NAMES = ("one", "two")
MODELS = [{"id": name, "skill": {"default": 0.5}, "ttft_ms": 150, "itl_ms": 5, "chunks": 20} for name in NAMES]
CASES = 60
CELLS = CASES * len(NAMES)
CONCURRENCY = CAPACITY * 4
BUDGET_USD = 1


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    with upstream(tmp_path_factory.mktemp("testbed"), {"models": MODELS}) as found:
        yield found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, postgres_server: Database) -> Iterator[Fleet]:
    with running(tmp_path_factory.mktemp("fleet"), postgres_server.new()) as found:
        yield found


def document(number: int, endpoint: Upstream) -> dict[str, Any]:
    """A manifest whose questions no other run asks, so that the testbed's ledger tells them apart."""
    limits: dict[str, Any] = {"concurrency": CONCURRENCY, "max_cost_usd": BUDGET_USD, "idle_timeout_s": 170}
    made = manifest(0, [target(name, endpoint.base_url) for name in NAMES], **limits)
    return made | {"cases": [question(number * 10_000 + case) for case in range(CASES)]}


def until_called(fleet: Fleet, run_id: str, count: int) -> None:
    """Waits until so many calls were made."""
    until(lambda: len(calls(fleet, run_id)) >= count)


# Happens while all executors have their hands full and nobody is answered; what it returns happens once the run goes on.
Later = Callable[[], None]
Fault = Callable[[Fleet, str], Later | None]


def kill(kind: str) -> Fault:
    def fault(fleet: Fleet, _run_id: str) -> None:
        fleet.signal(f"{kind}-0", signal.SIGKILL)

    return fault


def kill_owner(fleet: Fleet, _run_id: str) -> None:
    fleet.signal(fleet.owner(), signal.SIGKILL)


def kill_standby(fleet: Fleet, _run_id: str) -> None:
    owner = fleet.owner()
    fleet.signal("planner-1" if owner == "planner-0" else "planner-0", signal.SIGKILL)


def cut_connections(fleet: Fleet, _run_id: str) -> None:
    assert sum(fleet.cut_database() for _ in range(5) if not time.sleep(0.2)) >= 4


def zombie_executor(fleet: Fleet, run_id: str) -> Later:
    name = "executor-0"
    fleet.signal(name, signal.SIGSTOP)

    def wake() -> None:
        fleet.until_nothing_in_hand(run_id, name)
        fleet.signal(name, signal.SIGCONT)

    return wake


def zombie_owner(fleet: Fleet, _run_id: str) -> Later:
    before = fleet.owner()
    fleet.signal(before, signal.SIGSTOP)

    def wake() -> None:
        until(lambda: fleet.owner() != before)
        time.sleep(OWNER_S / 2)
        fleet.signal(before, signal.SIGCONT)

    return wake


def stopped(kind: str) -> Fault:
    """Stops a process for as long as it takes the others to do without it."""

    def fault(fleet: Fleet, run_id: str) -> Later:
        wanted = min(fleet.call_count(run_id) + CELLS // 3, CELLS)
        fleet.signal(f"{kind}-0", signal.SIGSTOP)

        def wake() -> None:
            try:
                until(lambda: fleet.call_count(run_id) >= wanted, 90)
            finally:
                fleet.signal(f"{kind}-0", signal.SIGCONT)

        return wake

    return fault


# The fault, and how many cells it leaves interrupted at least and at most: those that a lost executor had sent.
# More faults can be added here; for one that needs other storage see `test_objects_away`.
FAULTS: dict[str, tuple[Fault, int, int]] = {
    "kill an executor": (kill("executor"), 1, CAPACITY),
    "kill a grader": (kill("grader"), 0, 0),
    "kill accounting": (kill("accounting"), 0, 0),
    "kill the planner that has the queue": (kill_owner, 0, 0),
    "kill the planner that has not": (kill_standby, 0, 0),
    "cut all connections to the database": (cut_connections, 0, 0),
    "stop an executor beyond its leases": (zombie_executor, 1, CAPACITY),
    "stop the planner that has the queue": (zombie_owner, 0, 0),
    "stop accounting": (stopped("accounting"), 0, 0),
    "stop a grader": (stopped("grader"), 0, 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fleet_survives(name: str, fleet: Fleet, endpoint: Upstream) -> None:
    fault, fewest, most = FAULTS[name]
    number = list(FAULTS).index(name)
    run_id = start(fleet, document(number, endpoint), key=f"run-{number}")
    witness = Witness(fleet, run_id)
    try:
        until_called(fleet, run_id, CELLS // 6)
        with endpoint.held():
            fleet.until_all_are_busy(run_id)
            later = fault(fleet, run_id)
        if later is not None:
            later()
        interrupted = check(fleet, endpoint, run_id, witness, CELLS, BUDGET_USD * 10**12)
    finally:
        witness.end()
    assert fewest <= interrupted <= most
    assert witness.ends, "the witness saw nothing"
    assert len(fleet.parts(run_id)) == 4, "not all executors had a part"
