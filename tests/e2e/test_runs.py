"""Whole evaluations over real processes and a real endpoint: budgets, cancelling, failures, offers, secrets."""

from __future__ import annotations

import base64
import collections
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import work_queue_service_pb2 as queue
from srbench_kit import wire

from tests.e2e.evaluations import calls, cells, finish, manifest, outcomes, report, spend, start, target
from tests.e2e.processes import Processes, running
from tests.e2e.upstream import Upstream, upstream

pytestmark = pytest.mark.e2e
CANARY = "sk-test-CANARY-123456"
FAST: dict[str, Any] = {"skill": {"default": 0.5}, "ttft_ms": 10, "itl_ms": 1, "chunks": 10}
# Ten minutes: nobody sees the end of it.
SLOW: dict[str, Any] = FAST | {"itl_ms": 100, "chunks": 6000}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[Upstream]:
    names = ("plain", "budget", "failing", "partly", "busy", "echo", "refused")
    models = [{"id": name} | FAST for name in names] + [{"id": "slow"} | SLOW]
    with upstream(folder, {"models": models}) as running_upstream:
        yield running_upstream


@pytest.fixture(scope="module")
def processes(folder: Path) -> Iterator[Processes]:
    with running(folder / "store", env={"SR_BENCH_TEST_KEY": CANARY}) as started:
        yield started


def requests(endpoint: Upstream, model: str) -> list[dict[str, Any]]:
    return [row for row in endpoint.ledger() if row["model"] == model]


def test_a_priced_run_ends_with_every_answer_graded_and_paid(processes: Processes, endpoint: Upstream) -> None:
    run_id = start(processes, manifest(20, [target("plain", endpoint.base_url)], concurrency=8), "plain")
    assert finish(processes, run_id).status == "completed"
    row = report(processes, run_id).summary.targets[0]
    assert (row.total, row.completed, row.scored, row.complete) == (20, 20, 20, True)
    right = sum(bool(sent["answer_right"]) for sent in requests(endpoint, "plain"))
    assert row.correct == pytest.approx(right, abs=20)
    paid = [call.cost_picodollars for call in calls(processes, run_id)]
    assert row.cost_picodollars == sum(paid) == spend(processes, run_id).known_cost_picodollars > 0
    assert spend(processes, run_id).reserved_picodollars == 0


def test_the_same_key_gives_the_same_run_and_another_plan_is_refused(processes: Processes, endpoint: Upstream) -> None:
    document = manifest(2, [target("plain", endpoint.base_url)])
    first = start(processes, document, "twice")
    assert start(processes, document, "twice") == first
    with pytest.raises(grpc.RpcError) as caught:
        start(processes, manifest(2, [target("plain", endpoint.base_url)], max_cost_usd=2), "twice")
    assert wire.reason(caught.value) == "IDEMPOTENCY_CONFLICT"
    finish(processes, first)


def test_money_never_passes_the_budget_under_64_calls_at_once(processes: Processes, endpoint: Upstream) -> None:
    # One call reserves about 0.0007 dollars and costs less than a tenth of it.
    budget_usd = 0.01
    document = manifest(300, [target("budget", endpoint.base_url)], concurrency=64, max_cost_usd=budget_usd)
    run_id = start(processes, document, "budget")
    seen = []
    while (now := spend(processes, run_id)).call_count == 0 or now.open_call_count:
        seen.append(now.known_cost_picodollars + now.reserved_picodollars)
        time.sleep(0.01)
    run = finish(processes, run_id)
    end = spend(processes, run_id)
    assert max([*seen, end.known_cost_picodollars + end.reserved_picodollars]) <= budget_usd * 1e12
    states = collections.Counter(cell.state for cell in cells(processes, run_id))
    assert sum(states.values()) == 300
    assert set(states) <= {queue.CELL_STATE_DONE, queue.CELL_STATE_FAILED, queue.CELL_STATE_CANCELLED}
    if run.status != "completed":
        assert (run.status, run.reason) == ("failed", "budget_exhausted")
    assert len(requests(endpoint, "budget")) == len(calls(processes, run_id))


def test_cancelling_closes_streams_and_starts_nothing_more(processes: Processes, endpoint: Upstream) -> None:
    document = manifest(20, [target("slow", endpoint.base_url)], concurrency=2, max_output_tokens=4096, idle_timeout_s=170)
    run_id = start(processes, document, "cancel")
    deadline = time.monotonic() + 60
    while len([call for call in calls(processes, run_id, active=True) if call.activity.received_bytes > 0]) < 2:
        assert time.monotonic() < deadline, "the activity of two calls was not shown"
        time.sleep(0.1)
    with processes.planner() as stub:
        stub.CancelRun(planner.CancelRunRequest(id=run_id), timeout=60)
        assert finish(processes, run_id).status == "cancelled"
        assert stub.CancelRun(planner.CancelRunRequest(id=run_id), timeout=60).status == "cancelled"
    assert len(requests(endpoint, "slow")) == 2
    states = collections.Counter(cell.state for cell in cells(processes, run_id))
    assert states == {queue.CELL_STATE_CANCELLED: 20}
    for call in calls(processes, run_id):
        assert call.status == accounting.CALL_STATUS_CANCELLED
        assert not call.usage.HasField("output_tokens")


def test_one_failed_cell_does_not_end_a_run(processes: Processes, endpoint: Upstream) -> None:
    endpoint.fault({"fault": "http_status", "match": {"model": "partly", "nth": 3}, "params": {"status": 500}})
    run_id = start(processes, manifest(10, [target("partly", endpoint.base_url)], concurrency=2), "partly")
    run = finish(processes, run_id)
    assert (run.status, run.progress.completed, run.progress.failed) == ("completed", 9, 1)
    failed = [row for row in outcomes(processes, run_id) if row.status == "failed"]
    assert [row.reason for row in failed] == ["http_error"]
    assert not failed[0].HasField("score")
    assert len(requests(endpoint, "partly")) == 10
    assert report(processes, run_id).summary.targets[0].total == 10


def test_a_target_that_always_fails_alike_ends_the_run_early(processes: Processes, endpoint: Upstream) -> None:
    endpoint.fault({"fault": "http_status", "match": {"model": "failing"}, "params": {"status": 500}})
    run_id = start(processes, manifest(100, [target("failing", endpoint.base_url)], concurrency=2), "failing")
    run = finish(processes, run_id)
    assert (run.status, run.reason) == ("failed", "target_failing")
    assert len(requests(endpoint, "failing")) < 20
    assert {cell.state for cell in cells(processes, run_id)} == {queue.CELL_STATE_FAILED, queue.CELL_STATE_CANCELLED}


def test_what_was_not_accepted_is_offered_again_and_each_offer_is_on_record(
    processes: Processes, endpoint: Upstream
) -> None:
    endpoint.fault(
        {"fault": "http_status", "match": {"model": "busy", "times": 2}, "params": {"status": 429, "retry_after_s": 0}}
    )
    run_id = start(processes, manifest(1, [target("busy", endpoint.base_url)]), "busy")
    assert finish(processes, run_id).status == "completed"
    made = [(call.offer, call.status) for call in calls(processes, run_id)]
    refused, accepted = accounting.CALL_STATUS_NOT_ACCEPTED, accounting.CALL_STATUS_COMPLETED
    assert made == [(0, refused), (1, refused), (2, accepted)]
    assert len(requests(endpoint, "busy")) == 3


def test_a_closed_port_is_offered_again_and_then_given_up(processes: Processes) -> None:
    run_id = start(processes, manifest(2, [target("gone", "http://127.0.0.1:9/v1")], admission_wait_s=1), "closed")
    run = finish(processes, run_id)
    assert (run.status, run.reason) == ("failed", "target_failing")
    assert {row.reason for row in outcomes(processes, run_id)} == {"connect_failed"}
    assert spend(processes, run_id).reserved_picodollars == 0


def test_a_key_that_the_endpoint_echoes_is_stored_nowhere(processes: Processes, endpoint: Upstream, folder: Path) -> None:
    endpoint.fault({"fault": "echo_authorization", "match": {"model": "echo"}})
    run_id = start(processes, manifest(3, [target("echo", endpoint.base_url, api_key_env="SR_BENCH_TEST_KEY")]), "echo")
    finish(processes, run_id)
    assert len(requests(endpoint, "echo")) == 3
    forms = [CANARY.encode(), base64.b64encode(CANARY.encode())[:20], b"CANARY"]
    for path in (folder / "store").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(form in data for form in forms), path.name
    for call in calls(processes, run_id):
        with processes.accounting() as stub:
            whole = stub.GetCall(accounting.GetCallRequest(run_id=run_id, call_id=call.id), timeout=60)
        assert "CANARY" not in str(whole)


def test_a_parameter_that_the_provider_refuses_is_told_in_its_own_words(processes: Processes, endpoint: Upstream) -> None:
    params = {"status": 400, "message": "Unsupported parameter: temperature", "code": "unsupported_parameter"}
    endpoint.fault({"fault": "http_status", "match": {"model": "refused"}, "params": params})
    run_id = start(processes, manifest(2, [target("refused", endpoint.base_url)]), "refused")
    assert finish(processes, run_id).reason == "target_failing"
    for row in outcomes(processes, run_id):
        assert row.reason == "parameter_refused"
        assert "Unsupported parameter: temperature" in row.error
