"""A real, small model behind `llama_cpp.server`, which sends no usage in a stream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench_kit.values import Json

from tests.e2e.evaluations import calls, finish, manifest, outcomes, report, start, target
from tests.e2e.processes import Processes, running
from tests.foreign.servers import prepared, served

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
CASES = 3
CONTEXT = 2048


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [str(prepared("llama/bin/python")), "-m", "llama_cpp.server", "--model", str(prepared("model.gguf"))]
    command += ["--model_alias", "smollm2", "--n_ctx", str(CONTEXT)]
    with served(command, tmp_path_factory.mktemp("llama"), "/v1/models") as url:
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("foreign") / "store") as started:
        yield started


def evaluate(processes: Processes, server: str, key: str, **limits: Json) -> tuple[str, list[accounting.Call]]:
    document = manifest(CASES, [target("smollm2", server)], concurrency=1, max_output_tokens=24, **limits)
    run_id = start(processes, document, key)
    run = finish(processes, run_id, 200)
    assert (run.status, run.progress.completed) == ("completed", CASES)
    found = []
    with processes.accounting() as stub:
        for call in calls(processes, run_id):
            found.append(stub.GetCall(accounting.GetCallRequest(run_id=run_id, call_id=call.id), timeout=60))
    return run_id, found


def test_a_real_model_answers_and_what_it_does_not_report_stays_unknown(processes: Processes, server: str) -> None:
    run_id, found = evaluate(processes, server, "first")
    assert len(found) == CASES
    for call in found:
        assert (call.status, call.model) == (accounting.CALL_STATUS_COMPLETED, "smollm2")
        assert call.finish_reason in ("stop", "length")
        assert call.output_complete is (call.finish_reason == "stop")
        assert call.final.strip()
        assert 0 < call.ttft_s < call.latency_s
        assert not call.usage.ListFields()
        assert list(call.usage_flags) == ["no_usage"]
        assert not call.HasField("cost_picodollars")
    (row,) = report(processes, run_id).summary.targets
    assert not row.HasField("cost_picodollars")
    assert not row.HasField("tokens")
    assert row.known_cost_picodollars == 0
    assert 0 < row.spend_upper_picodollars < 10**12
    _, again = evaluate(processes, server, "second")
    assert [call.final for call in again] == [call.final for call in found]


@pytest.mark.parametrize(
    ("mode", "reason", "says"),
    [("json", "http_error", f"maximum context length is {CONTEXT} tokens"), ("stream", "stream_cut", "")],
)
def test_a_question_beyond_its_context_is_a_failure(
    processes: Processes, server: str, mode: str, reason: str, says: str
) -> None:
    """Asked for a stream the server says 200, sends nothing and hangs up: no empty answer, though it looks like one."""
    document = manifest(2, [target("smollm2", server, response_mode=mode)], concurrency=1, max_output_tokens=24)
    for case in document["cases"]:  # type: ignore[union-attr]
        case["messages"] = [{"role": "user", "content": "word " * CONTEXT}]  # type: ignore[index,call-overload]
    run_id = start(processes, document, f"long {mode}")
    run = finish(processes, run_id, 100)
    assert (run.reason, run.error) == ("target_failing", f"every cell of smollm2 that ended failed alike: {reason}")
    for row in outcomes(processes, run_id):
        assert row.reason == reason
        assert says in row.error
        assert not row.HasField("score")


def test_a_document_carries_the_usage_that_a_stream_lacks(processes: Processes, server: str) -> None:
    document = manifest(1, [target("smollm2", server, response_mode="json")], max_output_tokens=24)
    run_id = start(processes, document, "document")
    assert finish(processes, run_id, 100).status == "completed"
    (call,) = calls(processes, run_id)
    # Prompt and output are counted, what a cache served is not.
    assert call.usage.output_tokens > 0
    assert not call.usage.HasField("input_tokens")
    assert not call.HasField("ttft_s")
    assert 0 < call.cost_lower_picodollars < call.cost_upper_picodollars
