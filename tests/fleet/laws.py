"""What must hold of a run whatever happened to the fleet, and a witness who saw what was acknowledged meanwhile."""

from __future__ import annotations

import collections
import threading
from typing import Any

import grpc
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import work_queue_service_pb2 as queue

from tests.e2e.evaluations import calls, cells, finish, outcomes, spend
from tests.e2e.upstream import Upstream
from tests.fleet.fleet import Fleet
from tests.waiting import until

_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Witness:
    """Watches, from another thread, the money of a run, and remembers every end that the ledger ever showed."""

    def __init__(self, fleet: Fleet, run_id: str) -> None:
        self._fleet, self._run_id = fleet, run_id
        self._over = threading.Event()
        self.most_money = 0
        self.ends: dict[str, tuple[int, str]] = {}
        self.graded: dict[tuple[str, str], str] = {}
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            try:
                with self._fleet.accounting() as stub:
                    self._look(stub)
            except grpc.RpcError as error:
                # The fault cut this very call; the next one goes to a process that lives.
                if error.code() not in _AWAY:
                    raise

    def _look(self, stub: Any) -> None:
        money = stub.GetSpend(accounting.GetSpendRequest(run_id=self._run_id), timeout=5)
        self.most_money = max(self.most_money, money.known_cost_picodollars + money.reserved_picodollars)
        listed = stub.ListCalls(accounting.ListCallsRequest(run_id=self._run_id, page_size=500), timeout=5)
        for call in listed.calls:
            if call.status == accounting.CALL_STATUS_COMPLETED:
                self.ends[call.id] = (call.cost_picodollars, call.evidence_sha256)
        ended = stub.ListOutcomes(accounting.ListOutcomesRequest(run_id=self._run_id, page_size=500), timeout=5)
        self.graded.update({(row.case_id, row.target_id): row.status for row in ended.results})

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def check(fleet: Fleet, upstream: Upstream, run_id: str, witness: Witness, planned: int, limit: int) -> int:
    """Asserts the laws of a run once it has ended; how many of its cells were interrupted."""
    run = finish(fleet, run_id)
    # It has seen the ledger at least once, however seldom it had a turn.
    until(lambda: bool(witness.ends))
    witness.end()
    made, ended, states = calls(fleet, run_id), outcomes(fleet, run_id), cells(fleet, run_id)
    _once(upstream, made)
    _every_cell_has_one_end(states, made, ended, planned)
    _nothing_is_lost(witness, made, ended)
    _the_money_is_exact(fleet, run_id, witness, limit)
    interrupted = sum(cell.state == queue.CELL_STATE_INTERRUPTED for cell in states)
    assert run.status == ("interrupted" if interrupted else "completed")
    return interrupted


def _once(upstream: Upstream, made: list[Any]) -> None:
    mine = {call.request_sha256 for call in made}
    rows = upstream.ledger()
    sent = collections.Counter(row["identity"] for row in rows)
    assert set(sent.values()) <= {1}, f"sent twice: {[row for row in rows if sent[row['identity']] > 1]}"
    assert len(mine) == len(made), "two calls of one request"


def _every_cell_has_one_end(states: list[Any], made: list[Any], ended: list[Any], planned: int) -> None:
    found = collections.Counter(cell.state for cell in states)
    assert set(found) <= {queue.CELL_STATE_DONE, queue.CELL_STATE_INTERRUPTED}, (found, [c.reason for c in states])
    assert len(states) == len(ended) == planned
    names = {(cell.case_id, cell.target_id) for cell in states}
    assert {(row.case_id, row.target_id) for row in ended} == names
    assert found[queue.CELL_STATE_DONE] == sum(row.status == "completed" for row in ended)
    assert set(collections.Counter((call.case_id, call.target_id) for call in made).values()) == {1}


def _nothing_is_lost(witness: Witness, made: list[Any], ended: list[Any]) -> None:
    now = {call.id: (call.cost_picodollars, call.evidence_sha256) for call in made}
    assert {name: now.get(name) for name in witness.ends} == witness.ends
    graded = {(row.case_id, row.target_id): row.status for row in ended}
    assert {name: graded.get(name) for name in witness.graded} == witness.graded


def _the_money_is_exact(fleet: Fleet, run_id: str, witness: Witness, limit: int) -> None:
    money = spend(fleet, run_id)
    while True:
        made, before = calls(fleet, run_id), money
        money = spend(fleet, run_id)
        if money == before:
            break
        # A zombie still tells what its calls came to.
    known = [call for call in made if call.HasField("cost_picodollars")]
    assert money.known_cost_picodollars == sum(call.cost_picodollars for call in known)
    assert (money.call_count, money.open_call_count) == (len(made), 0)
    unknown = [call for call in made if not call.HasField("cost_picodollars")]
    assert money.reserved_picodollars == sum(call.reserved_picodollars for call in unknown)
    assert max(witness.most_money, money.known_cost_picodollars + money.reserved_picodollars) <= limit
