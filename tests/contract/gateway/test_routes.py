"""Every route against real services: its status, its shape by the API document, and what it asked."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from srbench_gateway import openapi
from srbench_gateway.app import TABLE

V1 = "/api/sr-bench/v1"
DATASET = "d" * 64
CALL = f"call-{1:032x}"
MANIFEST = {"version": "sr-bench-1.0", "name": "n", "dataset": {"path": "p"}, "cases": [{"id": "c1", "answer": "A"}]}
DOCUMENT = openapi.document(TABLE)


def fits(answer: httpx.Response, method: str, path: str) -> Any:
    """The JSON of `answer`, once it has the shape that the document gives `path`."""
    responses = DOCUMENT["paths"][V1 + path][method]["responses"]
    described = responses.get(str(answer.status_code), responses["default"])
    schema = described["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(answer.json())
    return answer.json()


async def test_health_says_who_it_is_in_both_places(stand: Any) -> None:
    for path in ("/health", V1 + "/health", V1 + "/health/"):
        answer = await stand.http.get(path)
        assert answer.status_code == 200
        seen = fits(answer, "get", "/health")
        assert seen["version"] == "sr-bench-1.0"
        assert seen["status"] == "ready"
        assert seen["store_id"] == "5" * 64
        assert seen["grpc_port"] == stand.grpc_port


async def test_health_is_not_ready_while_accounting_is_away(stand: Any) -> None:
    await stand.accounting_server.drain(0)
    answer = await stand.http.get("/health")
    assert answer.status_code == 503
    assert answer.json()["status"] == "unavailable"
    assert answer.json()["services"] == {"planner": True, "accounting": False}
    assert answer.json()["error"] == "accounting does not answer"


async def test_the_catalog_has_the_names_of_released_clients(stand: Any) -> None:
    seen = fits(await stand.http.get(V1 + "/catalog"), "get", "/catalog")
    assert {"id", "title", "kind", "source_url", "adapter_version"} <= set(seen["benchmarks"][0])
    assert seen["profiles"][0]["purpose"] == seen["profiles"][0]["description"] == "Fixed development cases"


async def test_targets_are_shown_as_manifests_write_them(stand: Any) -> None:
    answer = await stand.http.get(V1 + "/targets")
    assert answer.headers["etag"] == '"1f"'
    seen = fits(answer, "get", "/targets")
    single, mom = seen["targets"]
    assert single == {
        "id": "s",
        "kind": "single",
        "model": "m",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key_env": "KEY",
        "request_params": {"temperature": 0.5},
        "prices": {"m": {"input": 1.25, "cached_input": 0, "cache_write": 0, "output": 10}},
    }
    assert mom == {
        "id": "r",
        "kind": "mom",
        "model": "auto",
        "max_inference_calls": 3,
        "cache_reporting": "none",
        "capture_recipe": True,
    }


async def test_datasets_are_listed_looked_at_selected_and_composed(stand: Any) -> None:
    listed = fits(await stand.http.get(V1 + "/datasets"), "get", "/datasets")
    assert listed["datasets"][0]["manifest_path"].endswith("manifest.json")
    assert listed["datasets"][0]["sources"]["arc-agi-2"]["revision"] == "f" * 40
    one = fits(await stand.http.get(f"{V1}/datasets/{DATASET}"), "get", "/datasets/{dataset_id}")
    assert one["benchmarks"] == [{"id": "arc-agi-2", "title": "ARC-AGI-2", "count": 3}]
    assert one["provenance"]["sha256"] == "e" * 64
    selection = fits(await stand.http.get(V1 + "/datasets/selection?profile=quick"), "get", "/datasets/selection")
    assert selection["model_requests"] == 0
    assert [item["reason_code"] for item in selection["benchmarks"]] == [None, "not_prepared"]
    composed = await stand.http.post(V1 + "/datasets/compose", json={"dataset_ids": [DATASET], "benchmarks": []})
    assert fits(composed, "post", "/datasets/compose")["dataset"]["id"] == DATASET


async def test_cases_page_by_an_offset_and_show_no_answer(stand: Any) -> None:
    path = f"{V1}/datasets/{DATASET}/cases"
    first = fits(await stand.http.get(path + "?limit=2&q=a+b"), "get", "/datasets/{dataset_id}/cases")
    assert stand.planner.requests[-1].query == "a b"
    assert (first["total"], first["next_cursor"], first["limit"]) == (3, 2, 2)
    assert first["cases"][0]["messages"] == [{"role": "user", "content": "?"}]
    last = fits(await stand.http.get(path + "?cursor=2"), "get", "/datasets/{dataset_id}/cases")
    assert last["next_cursor"] is None
    assert last["limit"] == 25


@pytest.mark.parametrize("named", [{"benchmark": "arc-agi-2"}, {"benchmarks": ["arc-agi-2"]}])
async def test_a_preparation_takes_one_benchmark_or_a_list(stand: Any, named: dict[str, Any]) -> None:
    answer = await stand.http.post(
        V1 + "/dataset-preparations", json={**named, "profile": "quick", "seed": 7, "limit": None}
    )
    assert answer.status_code == 202
    job = fits(answer, "post", "/dataset-preparations")["preparation"]
    assert (job["status"], job["dataset"], job["error"]) == ("queued", None, None)
    assert (job["request"]["benchmarks"], job["request"]["seed"]) == (["arc-agi-2"], 7)
    path = "/dataset-preparations/" + job["id"]
    done = fits(await stand.http.get(V1 + path), "get", "/dataset-preparations/{preparation_id}")["preparation"]
    assert done["dataset"]["sources"]["arc-agi-2"]["benchmark"] == "arc-agi-2"
    assert (
        len(fits(await stand.http.get(V1 + "/dataset-preparations"), "get", "/dataset-preparations")["preparations"]) == 1
    )


async def test_preparation_options_come_from_the_catalog(stand: Any) -> None:
    seen = fits(await stand.http.get(V1 + "/dataset-preparations/options"), "get", "/dataset-preparations/options")
    assert seen["benchmarks"][0]["profiles"] == {"smoke": 2, "quick": 12, "standard": 80}


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_plan_is_checked_from_a_bare_or_a_wrapped_manifest(stand: Any, wrapped: bool) -> None:
    answer = await stand.http.post(V1 + "/plans", json={"manifest": MANIFEST} if wrapped else MANIFEST)
    seen = fits(answer, "post", "/plans")
    assert (seen["status"], seen["model_requests"], seen["total"]) == ("validated", 0, 2)
    assert seen["manifest"]["plan_sha256"] == seen["plan_sha256"]
    assert "cases" not in seen["manifest"]
    assert seen["worst_case_cost_usd"] == 2.5
    assert (seen["worst_case_gaps"], seen["most_calls"]) == ([], 3)


async def test_a_plan_with_inline_cases_gives_them_back_so_that_it_can_be_run(stand: Any) -> None:
    inline = {key: value for key, value in MANIFEST.items() if key != "dataset"}
    frozen = (await stand.http.post(V1 + "/plans", json=inline)).json()["manifest"]
    assert frozen["cases"] == MANIFEST["cases"]
    started = await stand.http.post(V1 + "/runs", json={"manifest": frozen, "idempotency_key": "k"})
    assert started.status_code == 201


async def test_a_large_plan_is_taken_and_given_back(stand: Any) -> None:
    cases = [{"id": f"c{n}", "text": "x" * 1000} for n in range(12_000)]
    answer = await stand.http.post(V1 + "/plans", json={"version": "sr-bench-1.0", "cases": cases})
    assert answer.status_code == 200
    assert len(answer.json()["manifest"]["cases"]) == 12_000


async def test_a_run_is_started_once_for_a_key(stand: Any) -> None:
    body = {"manifest": MANIFEST, "idempotency_key": "k1"}
    first = await stand.http.post(V1 + "/runs", json=body)
    assert first.status_code == 201
    run = fits(first, "post", "/runs")
    assert run["manifest"]["name"] == "n"
    assert "cases" not in run["manifest"]
    assert run["owner"] == "local"
    again = await stand.http.post(V1 + "/runs", json=body)
    assert again.status_code == 201
    assert again.json()["id"] == run["id"]
    other = await stand.http.post(V1 + "/runs", json={**body, "manifest": {**MANIFEST, "seed": 2}})
    assert other.status_code == 400
    assert fits(other, "post", "/runs")["code"] == "idempotency_conflict"


async def test_a_start_without_a_key_is_a_new_run_each_time(stand: Any) -> None:
    for key in ({}, {"idempotency_key": None}):
        assert (await stand.http.post(V1 + "/runs", json={"manifest": MANIFEST, **key})).status_code == 201
    assert len(stand.planner.runs) == 2


async def test_a_reviewed_plan_that_changed_is_refused_as_released_clients_know_it(stand: Any) -> None:
    answer = await stand.http.post(V1 + "/runs", json={"manifest": {**MANIFEST, "plan_sha256": "0" * 64}})
    assert answer.status_code == 400
    seen = fits(answer, "post", "/runs")
    assert seen["code"] == "reviewed_plan_changed"
    assert seen["dispatch_started"] is False
    assert seen["model_requests"] == 0


async def test_a_run_is_polled_without_its_cases_and_without_its_manifest_crossing_again(stand: Any) -> None:
    run_id = await stand.run()
    stand.planner.requests.clear()
    stand.planner.finish_after = 3
    for _ in range(3):
        answer = await stand.http.get(f"{V1}/runs/{run_id}")
        seen = fits(answer, "get", "/runs/{run_id}")
        assert seen["manifest"]["version"] == "sr-bench-1.0"
        assert "SECRET-ANSWER" not in answer.text
    assert seen["status"] == "completed"
    assert seen["error"] is None
    assert [request.summary for request in stand.planner.requests] == [True, True, True]


async def test_runs_are_paged_newest_first(stand: Any) -> None:
    started = [await stand.run() for _ in range(3)]
    first = fits(await stand.http.get(V1 + "/runs?limit=2"), "get", "/runs")
    assert [run["id"] for run in first["runs"]] == sorted(started, reverse=True)[:2]
    assert first["total"] == 3
    row = first["runs"][0]
    assert row["manifest_summary"] is True
    assert row["manifest"]["targets"] == [
        {
            "id": "s",
            "kind": "single",
            "model": "m",
            "prices": {"m": {"input": 2, "cached_input": 0, "cache_write": 0, "output": 0}},
        }
    ]
    assert row["manifest"]["limits"]["max_cost_usd"] == 5
    last = fits(await stand.http.get(V1 + "/runs", params={"limit": 2, "after": first["next_cursor"]}), "get", "/runs")
    assert [run["id"] for run in last["runs"]] == sorted(started)[:1]
    assert last["next_cursor"] is None
    changed = await stand.http.get(V1 + "/runs", params={"status": "failed", "after": first["next_cursor"]})
    assert changed.status_code == 400
    assert changed.json()["reason"] == "BAD_PAGE_TOKEN"


async def test_results_page_by_integers_that_browsers_keep(stand: Any) -> None:
    path, after, found = f"{V1}/runs/{await stand.run()}/results", 0, []
    while after is not None:
        seen = fits(await stand.http.get(f"{path}?after={after}&limit=2"), "get", "/runs/{run_id}/results")
        assert (seen["total"], seen["limit"]) == (5, 2)
        found += [row["case_id"] for row in seen["results"]]
        after = seen["next_cursor"]
        assert after is None or 0 < after < 2**53
    assert found == ["c1", "c2", "c3", "c4", "c5"]


async def test_an_integer_beyond_64_bits_is_exact(stand: Any) -> None:
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/results?limit=1")
    assert answer.json()["results"][0]["answer"] == [[1, 2], [2**70, 0.5]]
    assert str(2**70) in answer.text


async def test_calls_are_listed_without_texts_and_given_with_them(stand: Any) -> None:
    run_id = await stand.run()
    active = fits(await stand.http.get(f"{V1}/runs/{run_id}/calls?active=true"), "get", "/runs/{run_id}/calls")
    assert [row["status"] for row in active["calls"]] == ["sent"]
    assert active["calls"][0]["activity"]["phase"] == "streaming"
    listed = fits(await stand.http.get(f"{V1}/runs/{run_id}/calls?limit=1"), "get", "/runs/{run_id}/calls")
    assert not {"final", "reasoning", "raw_usage", "tool_calls"} & set(listed["calls"][0])
    assert listed["calls"][0]["usage"]["input_tokens"] == 2**53 + 1
    assert listed["calls"][0]["selected_model"] is None
    following = await stand.http.get(f"{V1}/runs/{run_id}/calls?limit=2&after={listed['next_cursor']}")
    assert [row["sequence"] for row in following.json()["calls"]] == [2, 3]
    mixed = await stand.http.get(f"{V1}/runs/{run_id}/calls?active=true&after={listed['next_cursor']}")
    assert mixed.json()["reason"] == "BAD_PAGE_TOKEN"
    whole = fits(await stand.http.get(f"{V1}/runs/{run_id}/calls/{CALL}"), "get", "/runs/{run_id}/calls/{call_id}")
    assert whole["final"].startswith("<img")
    assert whole["raw_usage"] == {"prompt_tokens": 3}


async def test_events_say_where_to_go_on(stand: Any) -> None:
    path = f"{V1}/runs/{await stand.run()}/events"
    first = fits(await stand.http.get(path + "?limit=2"), "get", "/runs/{run_id}/events")
    assert [(event["seq"], event["kind"]) for event in first["events"]] == [(7, "created"), (9, "running")]
    assert first["events"][0]["at"] == first["events"][0]["created_at"] == 1_700_000_007
    assert (first["has_more"], first["next_cursor"]) == (True, 9)
    last = fits(await stand.http.get(path + "?after=9"), "get", "/runs/{run_id}/events")
    assert (last["has_more"], last["next_cursor"], len(last["events"])) == (False, None, 1)


async def test_the_report_shows_unknown_as_null(stand: Any) -> None:
    seen = fits(await stand.http.get(f"{V1}/runs/{await stand.run()}/report"), "get", "/runs/{run_id}/report")
    known, unknown = seen["summary"]["targets"]
    assert (known["accuracy"], known["accuracy_ci95"], known["cost_usd"]) == (0.5, [0.1, 0.9], None)
    assert unknown["accuracy_ci95"] is None
    assert seen["failure"] is None


async def test_cells_and_spend_are_given(stand: Any) -> None:
    run_id = await stand.run()
    cells = fits(await stand.http.get(f"{V1}/runs/{run_id}/cells"), "get", "/runs/{run_id}/cells")
    assert [(cell["state"], cell["reason"]) for cell in cells["cells"]] == [("done", None), ("failed", "x")]
    failed = await stand.http.get(f"{V1}/runs/{run_id}/cells?state=failed")
    assert len(failed.json()["cells"]) == 1
    spend = fits(await stand.http.get(f"{V1}/runs/{run_id}/spend"), "get", "/runs/{run_id}/spend")
    assert (spend["known_cost_usd"], spend["reserved_usd"], spend["max_cost_usd"]) == (0.0015, 0, 5)


@pytest.mark.parametrize("body", [None, {}])
async def test_cancelling_twice_gives_the_run_as_it_is(stand: Any, body: Any) -> None:
    run_id = await stand.run()
    for _ in range(2):
        answer = await stand.http.post(f"{V1}/runs/{run_id}/cancel", json=body)
        assert answer.status_code == 200
        assert fits(answer, "post", "/runs/{run_id}/cancel")["status"] == "cancelled"


async def test_a_run_is_paused_resumed_and_given_another_concurrency(stand: Any) -> None:
    run_id = await stand.run()
    for change, paused in (("pause", True), ("resume", False)):
        answer = await stand.http.post(f"{V1}/runs/{run_id}/{change}", json={})
        assert fits(answer, "post", f"/runs/{{run_id}}/{change}")["paused"] is paused
    path = f"{V1}/runs/{run_id}/concurrency"
    answer = await stand.http.post(path, json={"concurrency": 7})
    assert fits(answer, "post", "/runs/{run_id}/concurrency")["concurrency"] == 7
    for bad in ({}, {"concurrency": "many"}, {"concurrency": 7, "more": 1}, None):
        assert (await stand.http.post(path, json=bad)).status_code == 400, bad
    assert (await stand.http.post(f"{V1}/runs/run-none/pause", json={})).status_code == 404


async def test_head_is_get_without_a_body(stand: Any) -> None:
    answer = await stand.http.head(V1 + "/catalog")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await stand.http.head(f"{V1}/runs/{await stand.run()}/watch")).status_code == 405


async def test_every_answer_forbids_caching_sniffing_and_framing(stand: Any) -> None:
    for path in ("/health", V1 + "/catalog", V1 + "/nonesuch", "/openapi.json"):
        headers = (await stand.http.get(path)).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers


async def test_prices_are_asked_as_targets_write_them_and_estimates_keep_the_unknown_null(stand: Any) -> None:
    price = {"input": 0.075, "cached_input": 0, "cache_write": 1, "output": 2.5}
    path = f"{V1}/runs/{await stand.run()}/price-estimate"
    answer = await stand.http.get(path, params={"prices": json.dumps({"m": price})})
    (row,) = fits(answer, "get", "/runs/{run_id}/price-estimate")["targets"]
    assert (row["frozen_cost_usd"], row["estimated_cost_usd"], row["estimated_unknown_count"]) == (1.0, None, 1)
    sent = stand.accounting.prices["m"]
    assert (sent.input_picodollars, sent.output_picodollars, sent.HasField("cache_write_1h_picodollars")) == (
        75_000,
        2_500_000,
        False,
    )


NO_PRICES = ["[]", "{", '{"m": 1}', '{"m": {"input": 1}}', '{"m": {"input": 1, "output": 1, "dear": 1}}']
FREE = {"cached_input": 0, "cache_write": 0, "output": 0}


@pytest.mark.parametrize(
    "prices", NO_PRICES + [json.dumps({"m": FREE | {"input": bad}}) for bad in (-1, 1e9, 1e-7, True, "1")]
)
async def test_what_is_no_price_is_refused(stand: Any, prices: str) -> None:
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/price-estimate", params={"prices": prices})
    assert answer.status_code == 400
    assert answer.json()["reason"] == "BAD_PRICE"
    assert stand.accounting.prices == {}
