"""The object store of a fleet is away for 20 s while a run goes on, and the planner that has the queue dies meanwhile:
nothing is sent twice, nothing acknowledged is lost, the budget is exact, all evidence is in the object store in the end."""

from __future__ import annotations

import hashlib
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench_kit.objects import Objects

from tests.e2e.evaluations import calls, manifest, question, start, target
from tests.e2e.upstream import Upstream, upstream
from tests.fleet.fleet import CAPACITY, Fleet, running
from tests.fleet.laws import Witness, check
from tests.object_store import CREDENTIALS, ObjectStore, running_object_store
from tests.postgres import Database
from tests.waiting import until

pytestmark = pytest.mark.e2e

AWAY_S = 20.0
NAMES = ("one", "two")
# Slow answers: 120 cells over 16 hands last about as long as the store is away, at little work for this machine.
MODELS = [{"id": name, "skill": {"default": 0.5}, "ttft_ms": 300, "itl_ms": 90, "chunks": 20} for name in NAMES]
CASES = 60
CELLS = CASES * len(NAMES)
BUDGET_USD = 1


def document(endpoint: Upstream) -> dict[str, Any]:
    targets = [target(name, endpoint.base_url) for name in NAMES]
    made = manifest(0, targets, concurrency=CAPACITY * 4, max_cost_usd=BUDGET_USD)
    return made | {"cases": [question(case) for case in range(CASES)]}


def segments(fleet: Fleet) -> list[Path]:
    """Evidence that is not yet known to be in the object store."""
    return list((fleet.store / "segments").glob("*.seg"))


def away(fleet: Fleet, objects: ObjectStore, endpoint: Upstream) -> None:
    """Shuts the store for 20 s, and kills the planner that has the queue in the middle."""
    sent = len(endpoint.ledger())
    objects.door.shut()
    time.sleep(AWAY_S / 2)
    # The run goes on without the object store.
    until(lambda: len(endpoint.ledger()) - sent > CAPACITY)
    fleet.signal(fleet.owner(), signal.SIGKILL)
    time.sleep(AWAY_S / 2)
    # Evidence waits here for the store.
    until(lambda: bool(segments(fleet)))
    objects.door.open()


def evidence(fleet: Fleet, run_id: str, call_id: str) -> bytes:
    with fleet.accounting() as stub:
        request = accounting.ReadEvidenceRequest(run_id=run_id, call_id=call_id)
        return b"".join(part.data for part in stub.ReadEvidence(request, timeout=60))


def test_the_fleet_survives_an_object_store_that_is_away(
    tmp_path: Path, postgres_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with running_object_store() as objects, upstream(tmp_path, {"models": MODELS}) as endpoint:
        env = {"SR_BENCH_OBJECTS_URL": objects.url, "SR_BENCH_SEAL_S": "0.5"}
        with running(tmp_path / "fleet", postgres_server.new(), env) as fleet:
            run_id = start(fleet, document(endpoint), key="away")
            witness = Witness(fleet, run_id)
            try:
                until(lambda: len(calls(fleet, run_id)) > CAPACITY * 4)
                away(fleet, objects, endpoint)
                assert check(fleet, endpoint, run_id, witness, CELLS, BUDGET_USD * 10**12) == 0
            finally:
                witness.end()
            assert witness.ends, "the witness saw nothing"
            until(lambda: not segments(fleet))
            assert list(Objects(objects.url).list("segments"))
            for call in calls(fleet, run_id)[::10]:
                assert hashlib.sha256(evidence(fleet, run_id, call.id)).hexdigest() == call.evidence_sha256
