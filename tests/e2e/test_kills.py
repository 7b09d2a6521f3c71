"""Any process may be killed at any durable step of a cell: nothing is sent twice, nothing acknowledged is lost, every cell
ends in exactly one state, and the budget holds throughout.

A run of 12 cases on 2 targets, 4 cells at a time; the process under test kills itself by SIGKILL at a named step and is
started again. The testbed's own ledger counts what was sent.
"""

from __future__ import annotations

import collections
import threading
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


def check_laws(processes: Processes, endpoint: Upstream, run_id: str) -> int:
    """Asserts what holds after any kill; returns the number of interrupted cells."""
    run = finish(processes, run_id)
    planned, made, ended = cells(processes, run_id), readable(processes, run_id), outcomes(processes, run_id)
    sent = collections.Counter(row["identity"] for row in endpoint.ledger())
    assert set(sent.values()) <= {1}, "a request was sent twice"
    assert len(sent) <= len([call for call in made if call.status != accounting.CALL_STATUS_NOT_ACCEPTED])
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


# Where a process dies, and how many cells may end without an answer. A dispatch whose end nobody saw is interrupted, and
# with 4 cells in flight at most 4 are; where the process that dies is not the one that streams, none is.
KILLS = [
    ("executor", "executor.before_dispatch@5", 0, 3),
    ("executor", "executor.after_dispatch@5", 1, 4),
    ("executor", "executor.mid_stream@40", 1, 4),
    ("executor", "executor.before_receipt@5", 1, 4),
    ("executor", "executor.before_settle@5", 0, 3),
    ("executor", "executor.after_settle@5", 0, 3),
    ("executor", "executor.before_outcome@5", 0, 3),
    ("executor", "executor.before_complete@5", 0, 3),
    ("accounting", "accounting.before_dispatch@5", 0, 0),
    ("accounting", "accounting.after_dispatch@5", 0, 0),
    ("accounting", "accounting.before_settle@5", 0, 0),
    ("accounting", "accounting.after_settle@5", 0, 0),
    ("accounting", "accounting.before_outcome@5", 0, 0),
    ("accounting", "accounting.after_outcome@5", 0, 0),
    ("planner", "planner.before_save@3", 0, 0),
    ("planner", "planner.after_save@3", 0, 0),
    ("planner", "planner.before_save@9", 0, 0),
    ("planner", "planner.after_save@9", 0, 0),
]


@pytest.mark.parametrize(("service", "point", "fewest", "most"), KILLS, ids=[point for _, point, _, _ in KILLS])
def test_a_kill_at_any_step_sends_nothing_twice_and_loses_nothing(
    tmp_path: Path, service: str, point: str, fewest: int, most: int
) -> None:
    with (
        upstream(tmp_path, {"models": MODELS}) as endpoint,
        running(tmp_path / "store", env={"SR_BENCH_LEASE_S": "20"}, crash={service: point}) as processes,
    ):
        targets = [target(name, endpoint.base_url) for name in NAMES]
        run_id = start(processes, manifest(CASES, targets, concurrency=4))
        budget = Budget(processes, run_id)
        try:
            interrupted = check_laws(processes, endpoint, run_id)
        finally:
            budget.end()
        assert processes.crashed(service), f"{point} was never reached"
        assert processes.children[service].starts == 2
        assert fewest <= interrupted <= most
        assert max(budget.seen) <= 10**12
