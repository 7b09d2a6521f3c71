"""The LiteLLM proxy in front of the testbed: what a proxy adds, drops and guesses, as the ledger sees it."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as accounting

from tests.e2e.evaluations import calls, finish, manifest, outcomes, report, start, target
from tests.e2e.processes import Processes, running
from tests.e2e.upstream import Upstream, upstream
from tests.foreign.servers import prepared, served

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
CASES = 5
KEY = "sk-litellm-CANARY-7f3a"
MODELS = [
    {"id": "plain", "skill": {"default": 1}, "ttft_ms": 40, "itl_ms": 2, "cached_share": 0.25},
    {"id": "thinker", "skill": {"default": 1}, "reasoning": "reasoning_content"},
    {"id": "tagger", "skill": {"default": 1}, "reasoning": "think"},
    {"id": "silent", "skill": {"default": 1}, "usage_when": "never"},
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    with upstream(tmp_path_factory.mktemp("testbed"), {"models": MODELS}) as started:
        yield started


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, endpoint: Upstream) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    behind = {"api_base": endpoint.base_url, "api_key": "sk-behind", "max_retries": 0}
    models: list[dict[str, Any]] = [
        {"model_name": f"via-{model['id']}", "litellm_params": behind | {"model": f"openai/{model['id']}"}}
        for model in MODELS
    ]
    made_up = {"model": "openai/gpt-4o-mini", "api_key": "none", "mock_response": "The answer is A."}
    models.append({"model_name": "made-up", "litellm_params": made_up})
    # Its own retries are off: whoever measures wants each failure, and the upstream is asked once.
    (folder / "config.json").write_text(json.dumps({"model_list": models, "router_settings": {"num_retries": 0}}))
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_MASTER_KEY": KEY}
    command = [str(prepared("litellm/bin/litellm")), "--config", str(folder / "config.json")]
    with served(command, folder, "/health/liveliness", env) as url:
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("foreign") / "store", env={"LITELLM_KEY": KEY}) as started:
        yield started


def buckets(call: accounting.Call) -> tuple[int | None, ...]:
    names = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
    return tuple(getattr(call.usage, name) if call.usage.HasField(name) else None for name in names)


def whole(processes: Processes, run_id: str, call: accounting.Call) -> accounting.Call:
    with processes.accounting() as stub:
        return stub.GetCall(accounting.GetCallRequest(run_id=run_id, call_id=call.id), timeout=30)


def test_answers_usage_and_reasoning_come_through(processes: Processes, proxy: str, endpoint: Upstream) -> None:
    names = [f"via-{model['id']}" for model in MODELS] + ["made-up"]
    targets = [target(name, proxy, api_key_env="LITELLM_KEY") for name in names]
    run_id = start(processes, manifest(CASES, targets, concurrency=3, max_output_tokens=256), "through")
    run = finish(processes, run_id, 200)
    assert (run.status, run.progress.completed) == ("completed", CASES * len(names))
    sent = collections.Counter(row["identity"] for row in endpoint.ledger())
    assert (len(sent), set(sent.values())) == (CASES * len(MODELS), {1})
    for call in calls(processes, run_id):
        texts, (fresh, cached, written, output) = whole(processes, run_id, call), buckets(call)
        assert (call.model, call.finish_reason, call.output_complete) == (call.target_id, "stop", True)
        assert 0 < call.ttft_s <= call.latency_s
        assert output
        assert texts.final
        if call.target_id in ("via-silent", "made-up"):
            # LiteLLM counts by itself what its upstream does not report, and knows nothing of caches.
            assert (fresh, cached, written) == (None, None, None)
            assert not call.HasField("cost_picodollars")
            assert call.cost_lower_picodollars < call.cost_upper_picodollars
            continue
        assert fresh is not None
        assert cached is not None
        assert written == 0
        assert call.cost_picodollars == fresh * 10**6 + cached * 10**5 + output * 2 * 10**6
        assert (cached > 0) is (call.target_id == "via-plain")
        assert bool(texts.reasoning) is (call.target_id in ("via-thinker", "via-tagger"))
        assert "</think>" not in texts.final
    known = {row.id: row.HasField("cost_picodollars") for row in report(processes, run_id).summary.targets}
    assert known == {name: name not in ("via-silent", "made-up") for name in names}


def test_failures_behind_the_proxy_are_failures_and_none_is_asked_again(
    processes: Processes, proxy: str, endpoint: Upstream
) -> None:
    before = len(endpoint.ledger())
    endpoint.fault(
        [
            {"fault": "reset_mid_stream", "match": {"model": "plain", "prompt_substring": "Question 0?"}},
            {"fault": "error_event", "match": {"model": "plain", "prompt_substring": "Question 1?"}},
            {
                "fault": "http_status",
                "match": {"model": "plain", "prompt_substring": "Question 2?"},
                "params": {"status": 500},
            },
            {"fault": "cut_by_length", "match": {"model": "plain", "prompt_substring": "Question 3?"}},
        ]
    )
    one = target("via-plain", proxy, api_key_env="LITELLM_KEY")
    run_id = start(processes, manifest(CASES, [one], concurrency=1, max_output_tokens=256), "faults")
    run = finish(processes, run_id, 200)
    endpoint.fault([])
    assert (run.status, run.progress.failed) == ("completed", 3)
    ended = {row.case_id: (row.status, row.reason) for row in outcomes(processes, run_id)}
    assert ended == {
        "mmlu-pro/0": ("failed", "upstream_error"),
        "mmlu-pro/1": ("failed", "upstream_error"),
        "mmlu-pro/2": ("failed", "http_error"),
        "mmlu-pro/3": ("completed", ""),
        "mmlu-pro/4": ("completed", ""),
    }
    assert len(endpoint.ledger()) - before == CASES
    cut = next(call for call in calls(processes, run_id) if call.case_id == "mmlu-pro/3")
    assert (cut.finish_reason, cut.output_complete) == ("length", False)
    assert not any(call.HasField("cost_picodollars") for call in calls(processes, run_id) if call.case_id < "mmlu-pro/3")


def test_a_model_that_the_proxy_does_not_have_is_told_in_its_words(processes: Processes, proxy: str) -> None:
    run_id = start(processes, manifest(2, [target("nowhere", proxy, api_key_env="LITELLM_KEY")]), "nowhere")
    assert finish(processes, run_id, 100).reason == "target_failing"
    for row in outcomes(processes, run_id):
        assert row.reason == "http_error"
        assert "Invalid model name" in row.error


def test_the_proxys_key_is_stored_nowhere(processes: Processes) -> None:
    """Comes last: looks at all that the tests before left."""
    found = [path for path in Path(processes.store).rglob("*") if path.is_file()]
    assert found
    for path in found:
        assert KEY.encode() not in path.read_bytes(), path.name
