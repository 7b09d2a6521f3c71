"""What one planner prepares, every planner tells; and when it dies in the middle, the others say so."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc

from tests.fleet.fleet import Fleet, running
from tests.postgres import Database

pytestmark = pytest.mark.e2e


@pytest.fixture
def silent_hub() -> Iterator[str]:
    """A source of datasets that takes connections and says nothing, so that a preparation is under way for ever."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def fleet(tmp_path: Path, postgres_server: Database, silent_hub: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr("tests.fleet.fleet.COUNTS", {"planner": 2, "accounting": 1, "grader": 1, "executor": 0})
    with running(tmp_path, postgres_server.new(), {"HF_ENDPOINT": silent_hub}) as found:
        yield found


def ask(fleet: Fleet, name: str, work: Callable[[rpc.PlannerServiceStub], pb.DatasetPreparation]) -> pb.DatasetPreparation:
    """The answer of one planner."""
    with fleet.channel(name) as channel:
        return work(rpc.PlannerServiceStub(channel))


def until(fleet: Fleet, name: str, job_id: str, fits: Callable[[pb.DatasetPreparation], bool]) -> pb.DatasetPreparation:
    deadline = time.monotonic() + 60
    while True:
        found = ask(fleet, name, lambda stub: stub.GetDatasetPreparation(pb.GetDatasetPreparationRequest(id=job_id)))
        if fits(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_every_planner_tells_of_a_preparation_and_of_its_end_with_the_planner_that_did_it(fleet: Fleet) -> None:
    owner = fleet.owner()
    other = "planner-1" if owner == "planner-0" else "planner-0"
    asked = pb.CreateDatasetPreparationRequest(benchmarks=["mmlu-pro"], profile="smoke")
    job_id = ask(fleet, owner, lambda stub: stub.CreateDatasetPreparation(asked)).id
    for name in (owner, other):
        until(fleet, name, job_id, lambda job: job.phase == "downloading")
    fleet.signal(owner, signal.SIGKILL)
    ended = until(fleet, other, job_id, lambda job: job.status == "failed")
    assert (ended.reason, ended.error) == ("INTERRUPTED", "the planner that had this in hand is gone; ask again to go on")
    again = ask(fleet, other, lambda stub: stub.CreateDatasetPreparation(asked))
    assert again.id != job_id
    # It is started again, and tells the same.
    fleet.wait_healthy(owner)
    assert ask(fleet, owner, lambda stub: stub.GetDatasetPreparation(pb.GetDatasetPreparationRequest(id=job_id))) == ended
