"""Any process may be killed at any durable step of a cell: nothing is sent twice, nothing acknowledged is lost, every cell
ends in exactly one state, and the budget holds throughout.

A run of 12 cases on 2 targets, 4 cells at a time; the process under test kills itself by SIGKILL at a named step and is
started again. The testbed's own ledger counts what was sent.
"""

from __future__ import annotations

import collections
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import work_queue_service_pb2 as queue
from srbench_kit.values import Json, to_value

from tests.e2e.processes import Processes, running
from tests.e2e.upstream import Upstream, upstream

pytestmark = pytest.mark.e2e

MODELS = [
    {"id": name, "skill": {"default": 0.5}, "ttft_ms": 20, "itl_ms": 2, "chunks": 10, "usage": "openai"}
    for name in ("one", "two")
]
PRICE = {"input": 1, "cached_input": 0.1, "cache_write": 1, "output": 2}
CASES, CELLS = 12, 24


def manifest(base_url: str) -> dict[str, Json]:
    cases: list[Json] = [
        {
            "id": f"mmlu-pro/{number}",
            "benchmark": "mmlu-pro",
            "messages": [{"role": "user", "content": f"Question {number}?\n\nA. yes\nB. no\n\nReply with the letter."}],
            "answer": "A",
            "choices": ["yes", "no"],
            "metadata": {"stratum": "math", "split": "dev"},
        }
        for number in range(CASES)
    ]
    targets: list[Json] = [
        {"id": name, "kind": "single", "model": name, "base_url": base_url, "prices": {name: PRICE}}
        for name in ("one", "two")
    ]
    limits: dict[str, Json] = {"concurrency": 4, "max_cost_usd": 1, "max_output_tokens": 64}
    return {"version": "sr-bench-1.0", "name": "kills", "cases": cases, "targets": targets, "limits": limits}


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


def finish(processes: Processes, run_id: str, timeout_s: float = 90) -> planner.Run:
    """The run once it has ended."""
    deadline = time.monotonic() + timeout_s
    with processes.planner() as stub:
        while True:
            run = stub.GetRun(planner.GetRunRequest(id=run_id, summary=True), timeout=60)
            if run.status not in ("queued", "running"):
                return run
            if time.monotonic() > deadline:
                logs = {path.name: path.read_text()[-1500:] for path in processes.store.glob("*.log")}
                raise TimeoutError(f"the run is still {run.status}: {run.progress} {logs}")
            time.sleep(0.1)


def everything(processes: Processes, run_id: str) -> tuple[list[planner.Cell], list[Any], list[Any]]:
    """Cells, calls and outcomes of a run."""
    with processes.planner() as stub:
        cells = list(stub.ListCells(planner.ListCellsRequest(run_id=run_id, page_size=1000), timeout=60).cells)
    with processes.accounting() as ledger:
        calls = list(ledger.ListCalls(accounting.ListCallsRequest(run_id=run_id, page_size=500), timeout=60).calls)
        outcomes = list(
            ledger.ListOutcomes(accounting.ListOutcomesRequest(run_id=run_id, page_size=500), timeout=60).results
        )
        for call in calls:
            if call.evidence_sha256:
                chunks = ledger.ReadEvidence(accounting.ReadEvidenceRequest(run_id=run_id, call_id=call.id), timeout=60)
                assert b"".join(chunk.data for chunk in chunks)
    return cells, calls, outcomes


def check_laws(processes: Processes, endpoint: Upstream, run_id: str) -> int:
    """Asserts what holds after any kill; returns the number of interrupted cells."""
    run = finish(processes, run_id)
    cells, calls, outcomes = everything(processes, run_id)
    sent = collections.Counter(row["identity"] for row in endpoint.ledger())
    assert set(sent.values()) <= {1}, "a request was sent twice"
    assert len(sent) <= len([call for call in calls if call.status != accounting.CALL_STATUS_NOT_ACCEPTED])
    states = collections.Counter(cell.state for cell in cells)
    assert len(cells) == CELLS
    assert set(states) <= {queue.CELL_STATE_DONE, queue.CELL_STATE_INTERRUPTED}, states
    assert states[queue.CELL_STATE_DONE] == len([row for row in outcomes if row.status == "completed"])
    assert {(row.case_id, row.target_id) for row in outcomes} == {(cell.case_id, cell.target_id) for cell in cells}
    assert len(outcomes) == CELLS
    by_cell = collections.Counter((call.case_id, call.target_id) for call in calls)
    assert set(by_cell.values()) == {1}
    done = {(row.case_id, row.target_id) for row in outcomes if row.status == "completed"}
    assert all(call.status == accounting.CALL_STATUS_COMPLETED for call in calls if (call.case_id, call.target_id) in done)
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
        running(tmp_path / "store", env={"SR_BENCH_LEASE_S": "3"}, crash={service: point}) as processes,
    ):
        with processes.planner() as stub:
            request = planner.CreateRunRequest(manifest=to_value(manifest(endpoint.base_url)), idempotency_key="k")
            run_id = stub.CreateRun(request, timeout=60).id
        budget = Budget(processes, run_id)
        try:
            interrupted = check_laws(processes, endpoint, run_id)
        finally:
            budget.end()
        assert processes.crashed(service), f"{point} was never reached"
        assert processes.children[service].starts == 2
        assert fewest <= interrupted <= most
        assert max(budget.seen) <= 10**12
