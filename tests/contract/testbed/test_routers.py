"""Routers of the testbed: what they decide, say and refuse."""

from __future__ import annotations

import orjson
from srbench_kit.values import Json
from srbench_testbed.server import Testbed

from tests.contract.testbed.asking import MATHS, body, events, get, post, raw


async def test_a_router_says_what_it_decided_and_what_it_used(testbed: Testbed) -> None:
    response = await post(testbed, body("mix", MATHS))
    router = testbed.config.routers[0]
    assert response.headers["x-sr-bench-config-hash"] == router.config_hash
    assert response.headers["x-vsr-selected-model"] == "one"
    assert response.headers["x-vsr-selected-decision"] == "maths"
    assert response.headers["x-vsr-inference-call-count"] == "2"
    receipt = orjson.loads(response.headers["x-vsr-model-usage"])
    assert receipt["version"] == 1
    assert receipt["complete"] is True
    assert [call["model"] for call in receipt["calls"]] == ["two", "one"]
    assert receipt["calls"][1]["usage"] == events(response)[-1]["usage"]
    assert "x-vsr-replay-id" not in response.headers
    assert testbed.ledger.rows[0].selected_model == "one"


async def test_keywords_route_and_the_last_route_takes_the_rest(testbed: Testbed) -> None:
    poem = await post(testbed, body("mix", "write a Poem"))
    rest = await post(testbed, body("mix", "write prose"))
    assert (poem.headers["x-vsr-selected-model"], rest.headers["x-vsr-selected-model"]) == ("two", "one")
    assert events(poem)[0]["model"] == "two"


async def test_the_limit_of_inference_calls_is_kept(testbed: Testbed) -> None:
    response = await post(testbed, body("mix", MATHS), **{"x-sr-bench-max-inference-calls": "1"})
    assert response.headers["x-vsr-inference-call-count"] == "1"


async def test_debug_headers_come_when_asked_for(testbed: Testbed) -> None:
    headers = (await post(testbed, body("mix"), **{"x-vsr-debug": "true"})).headers
    for name in ("replay-id", "selected-recipe", "selected-confidence", "selected-algorithm", "response-path"):
        assert headers[f"x-vsr-{name}"]


async def test_an_unexpected_configuration_is_refused(testbed: Testbed) -> None:
    right = testbed.config.routers[0].config_hash
    assert (await post(testbed, body("mix"), **{"x-sr-bench-expected-config-hash": right})).status_code == 200
    refused = await post(testbed, body("mix"), **{"x-sr-bench-expected-config-hash": "f" * 64})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CONFIG_HASH_MISMATCH")


async def test_receipts_travel_in_a_trailer_or_in_an_event(testbed: Testbed) -> None:
    data, _ = await raw(testbed, body("mix-trailer"), 0.3)
    tail = data.split(b"\r\n0\r\n")[1]
    assert tail.startswith(b"x-vsr-model-usage: {")
    assert tail.endswith(b"\r\n\r\n")
    assert b"trailer: x-vsr-model-usage" in data
    found = events(await post(testbed, body("mix-event")))
    assert found[-1]["x_vsr_model_usage"]["calls"][0]["model"] == "one"
    none = await post(testbed, body("mix-none"))
    assert "x-vsr-model-usage" not in none.headers
    assert events(none)[0]["model"] == "mix-none"


async def test_a_preview_decides_as_the_router_does_and_calls_nothing(testbed: Testbed) -> None:
    request: Json = {
        "model": "mix",
        "messages": [{"role": "user", "content": MATHS}],
        "max_tokens": 5,
        "options": {"trace": True},
        "preview_context": {"sampling_seed": 11},
    }
    found = (await post(testbed, request, "/api/v1/routing/preview")).json()
    assert found["config_hash"] == testbed.config.routers[0].config_hash
    assert (found["selected_model"], found["selection_status"]) == ("one", "execution_required")
    assert found["decision_result"]["decision_name"] == "maths"
    assert found["selection_provenance"]["sampling_seed"] == 11
    assert testbed.ledger.rows == []
    assert (await post(testbed, {"model": "mix"}, "/api/v1/routing/preview")).status_code == 400
    assert (await post(testbed, request | {"temprature": 1}, "/api/v1/routing/preview")).status_code == 400


async def test_the_configuration_is_bracketed_by_its_hashes(testbed: Testbed) -> None:
    hashes = (await get(testbed, "/api/v1/config/hash")).json()
    response = await get(testbed, "/api/v1/config")
    assert response.headers["etag"] == f'"{hashes["source_config_hash"]}"'
    assert hashes["active_runtime_hash"] == hashes["generated_runtime_hash"] == testbed.config.routers[0].config_hash
    assert hashes["activation_status"] == "active"
    assert {"recipes", "entrypoints", "evaluation", "routing", "global"} <= set(response.json())
    assert (await get(testbed, "/api/v1/config?router=mix-event")).headers["etag"] != response.headers["etag"]
