"""Any process may be killed at any durable step of a cell: nothing is sent twice, nothing acknowledged is lost, every cell
ends in exactly one state, and the budget holds throughout.

A run of 12 cases on 2 targets, 4 cells at a time; the process under test kills itself by SIGKILL at a named step and is
started again, for the next kill in another run. The testbed's own ledger counts what was sent.
"""

from __future__ import annotations

import collections
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import work_queue_service_pb2 as queue

from tests.e2e.evaluations import calls, cells, finish, manifest, outcomes, start, target
from tests.e2e.processes import Processes, running
from tests.e2e.upstream import Upstream, upstream

pytestmark = pytest.mark.e2e

NAMES = ("one", "two")
MODELS = [{"id": name, "skill": {"default": 0.5}, "ttft_ms": 20, "itl_ms": 2, "chunks": 10} for name in NAMES]
CASES, CELLS = 12, 24


class Budget:
    """Watches, from another thread, that spent and reserved money never exceed the budget."""

    def __init__(self, processes: Processes, run_id: str) -> None:
        self._processes, self._run_id = processes, run_id
        self._over = threading.Event()
        self.seen: list[int] = []
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        with self._processes.accounting() as stub:
            while not self._over.wait(0.05):
                try:
                    spend = stub.GetSpend(accounting.GetSpendRequest(run_id=self._run_id), timeout=60)
                except grpc.RpcError as error:
                    # The kill cut this very call; the next one waits for the service to come back.
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise
                    continue
                self.seen.append(spend.known_cost_picodollars + spend.reserved_picodollars)

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def readable(processes: Processes, run_id: str) -> list[Any]:
    """The calls of a run, after each one's evidence has been read."""
    found = calls(processes, run_id)
    with processes.accounting() as ledger:
        for call in found:
            if call.evidence_sha256:
                chunks = ledger.ReadEvidence(accounting.ReadEvidenceRequest(run_id=run_id, call_id=call.id), timeout=60)
                assert b"".join(chunk.data for chunk in chunks)
    return found


def check_sent(processes: Processes, endpoint: Upstream, run_ids: list[str]) -> None:
    """Asserts that nothing was sent twice, nor anything that no run knows of."""
    sent = collections.Counter(row["identity"] for row in endpoint.ledger())
    assert set(sent.values()) <= {1}, "a request was sent twice"
    made = [call for run_id in run_ids for call in calls(processes, run_id)]
    assert len(sent) <= len([call for call in made if call.status != accounting.CALL_STATUS_NOT_ACCEPTED])


def check_laws(processes: Processes, run_id: str) -> int:
    """Asserts what holds of a run after any kill; returns the number of interrupted cells."""
    run = finish(processes, run_id)
    planned, made, ended = cells(processes, run_id), readable(processes, run_id), outcomes(processes, run_id)
    states = collections.Counter(cell.state for cell in planned)
    assert len(planned) == CELLS
    assert set(states) <= {queue.CELL_STATE_DONE, queue.CELL_STATE_INTERRUPTED}, states
    assert states[queue.CELL_STATE_DONE] == len([row for row in ended if row.status == "completed"])
    assert {(row.case_id, row.target_id) for row in ended} == {(cell.case_id, cell.target_id) for cell in planned}
    assert len(ended) == CELLS
    by_cell = collections.Counter((call.case_id, call.target_id) for call in made)
    assert set(by_cell.values()) == {1}
    done = {(row.case_id, row.target_id) for row in ended if row.status == "completed"}
    assert all(call.status == accounting.CALL_STATUS_COMPLETED for call in made if (call.case_id, call.target_id) in done)
    assert run.status == ("interrupted" if states[queue.CELL_STATE_INTERRUPTED] else "completed")
    return states[queue.CELL_STATE_INTERRUPTED]


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a process dies, and how many cells may end without an answer. A dispatch whose end nobody saw is interrupted,
    and with 4 cells in flight at most 4 are; where the process that dies is not the one that streams, none is."""

    point: str
    fewest: int = 0
    most: int = 0

    @property
    def service(self) -> str:
        return self.point.partition(".")[0]


EXECUTOR = [
    Kill("executor.before_dispatch@5", 0, 3),
    Kill("executor.after_dispatch@5", 1, 4),
    Kill("executor.mid_stream@40", 1, 4),
    Kill("executor.before_receipt@5", 1, 4),
    Kill("executor.before_settle@5", 0, 3),
    Kill("executor.after_settle@5", 0, 3),
    Kill("executor.before_outcome@5", 0, 3),
    Kill("executor.before_complete@5", 0, 3),
]
ACCOUNTING = [
    Kill("accounting.before_dispatch@5"),
    Kill("accounting.after_dispatch@5"),
    Kill("accounting.before_settle@5"),
    Kill("accounting.after_settle@5"),
    Kill("accounting.before_outcome@5"),
    Kill("accounting.after_outcome@5"),
]
PLANNER = [
    Kill("planner.before_save@3"),
    Kill("planner.before_save@9"),
    Kill("planner.after_save@3"),
    Kill("planner.after_save@9"),
]


def begin(processes: Processes, endpoint: Upstream, kill: Kill, number: int) -> str:
    """The id of the run that meets the kill of that number."""
    if number:
        processes.arm(kill.service, number)
    targets = [target(name, endpoint.base_url) for name in NAMES]
    return start(processes, manifest(CASES, targets, first=number * CASES, concurrency=4), f"key-{number}")


def wait_for_crash(processes: Processes, kill: Kill, number: int) -> None:
    """Returns when the process has died and is started again."""
    deadline = time.monotonic() + 90
    while not processes.crashed(kill.service, number) or processes.children[kill.service].starts < number + 2:
        assert time.monotonic() < deadline, f"{kill.point} was never reached"
        time.sleep(0.02)


# A cell whose lease the planner saved and the executor never heard of waits for the lease's end: such runs wait together.
# Eight kills one after another take a busy machine a while.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "groups",
    [[[kill] for kill in EXECUTOR], [[kill] for kill in ACCOUNTING], [[PLANNER[0]], [PLANNER[1]], PLANNER[2:]]],
    ids=["executor", "accounting", "planner"],
)
def test_a_kill_at_any_step_sends_nothing_twice_and_loses_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, database: str, groups: list[list[Kill]]
) -> None:
    env = {"SR_BENCH_LEASE_S": "20"}
    if database == "postgresql":
        env["SR_BENCH_DATABASE_URL"] = request.getfixturevalue("postgres_server").new()
    kills = [kill for group in groups for kill in group]
    service, points = kills[0].service, [kill.point for kill in kills]
    with (
        upstream(tmp_path, {"models": MODELS}) as endpoint,
        running(tmp_path / "store", env=env, crash={service: points}) as processes,
    ):
        run_ids: list[str] = []
        for group in groups:
            budgets: list[Budget] = []
            try:
                for kill in group:
                    number = len(run_ids)
                    run_ids.append(begin(processes, endpoint, kill, number))
                    budgets.append(Budget(processes, run_ids[-1]))
                    wait_for_crash(processes, kill, number)
                for kill, run_id in zip(group, run_ids[-len(group) :], strict=True):
                    assert kill.fewest <= check_laws(processes, run_id) <= kill.most, kill
            finally:
                for budget in budgets:
                    budget.end()
            check_sent(processes, endpoint, run_ids)
            assert all(max(budget.seen) <= 10**12 for budget in budgets)
        assert processes.children[service].starts == len(kills) + 1
