"""The testbed over real sockets: what it answers, what it records, and how it fails on demand."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json
from srbench_testbed.answer_key import Entry, prompt_sha256
from srbench_testbed.config import Config, parse_config
from srbench_testbed.server import Testbed

CONFIG: Json = {
    "seed": 7,
    "models": [
        {"id": "one", "skill": {"default": 1}, "cached_share": 0.5, "chunks": 8},
        {"id": "two", "skill": {"default": 0}, "chunks": 8},
        {"id": "claude", "usage": "anthropic", "cached_share": 0.5},
        {"id": "deep", "usage": "deepseek", "cached_share": 0.5},
        {"id": "gem", "usage": "gemini", "reasoning": "reasoning_content"},
        {"id": "silent", "usage_when": "never"},
        {"id": "chatty", "usage_when": "always"},
        {"id": "document", "response_mode": "json"},
        {"id": "slow", "ttft_ms": 60, "itl_ms": 20, "chunks": 4},
        {"id": "thinks", "reasoning": "think", "chunks": 5},
        {"id": "alias", "response_model": "alias-2026-01"},
    ],
    "routers": [
        {
            "id": "mix",
            "routes": [
                {"decision": "maths", "subject": "mmlu-pro/math", "calls": ["two", "one"]},
                {"decision": "poems", "keyword": "poem", "model": "two"},
                {"decision": "rest", "model": "one"},
            ],
        },
        {"id": "mix-trailer", "receipt": "trailer", "routes": [{"decision": "rest", "model": "one"}]},
        {"id": "mix-event", "receipt": "event", "routes": [{"decision": "rest", "model": "one"}]},
        {"id": "mix-none", "receipt": "none", "response_model": "router", "routes": [{"decision": "rest", "model": "one"}]},
    ],
}
MATHS = "What is 1 + 1?"
KEY = {
    prompt_sha256(MATHS): Entry(
        prompt_sha256=prompt_sha256(MATHS),
        kind="choice",
        right="C",
        wrong=("A", "B", "D"),
        benchmark="mmlu-pro",
        stratum="math",
        case_id="mmlu-pro/1",
    )
}


def config() -> Config:
    return parse_config(CONFIG)


@pytest.fixture
async def testbed() -> AsyncIterator[Testbed]:
    async with Testbed(config(), KEY) as testbed:
        yield testbed


def body(model: str, prompt: str = "hello", stream: bool = True, **more: Json) -> dict[str, Json]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "stream": stream,
        "stream_options": {"include_usage": True},
        **more,
    }


async def post(testbed: Testbed, payload: Json, path: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.post(testbed.url + path, content=orjson.dumps(payload), headers=headers)


async def get(testbed: Testbed, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.get(testbed.url + path)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    blocks = [block.removeprefix("data: ") for block in response.text.split("\n\n") if block]
    assert blocks[-1] == "[DONE]"
    return [orjson.loads(block) for block in blocks[:-1]]


def text(response: httpx.Response) -> str:
    return "".join(choice["delta"].get("content", "") for event in events(response) for choice in event["choices"])


async def raw(testbed: Testbed, payload: Json, timeout_s: float = 5.0) -> tuple[bytes, str]:
    """All bytes of an answer, and how the connection ended: `closed`, `reset` or `open`."""
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    data = orjson.dumps(payload)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data))
    received = b""
    try:
        while True:
            part = await asyncio.wait_for(reader.read(65536), timeout_s)
            if not part:
                return received, "closed"
            received += part
    except TimeoutError:
        return received, "open"
    except ConnectionResetError:
        return received, "reset"
    finally:
        writer.close()


async def fault(testbed: Testbed, name: str, match: dict[str, Json] | None = None, **params: Json) -> None:
    answer = await post(testbed, [{"fault": name, "match": match or {}, "params": params}], "/testbed/faults")
    assert answer.status_code == 200, answer.text


# Answers.


async def test_a_streamed_answer_has_a_role_pieces_a_finish_usage_and_an_end(testbed: Testbed) -> None:
    response = await post(testbed, body("one", MATHS))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    found = events(response)
    assert found[0]["choices"][0]["delta"]["role"] == "assistant"
    assert len(found) == 1 + 8 + 1 + 1
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert found[-1]["choices"] == []
    usage = found[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] == 8
    assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] // 2
    assert {event["model"] for event in found} == {"one"}
    assert len({event["id"] for event in found}) == 1
    assert response.headers["x-request-id"] in found[0]["id"]


async def test_skill_decides_right_and_wrong(testbed: Testbed) -> None:
    assert "C" in text(await post(testbed, body("one", MATHS))).split("\n\n")[-1]
    assert "C" not in text(await post(testbed, body("two", MATHS))).split("\n\n")[-1]
    assert [row.answer_right for row in testbed.ledger.rows] == [True, False]


async def test_the_same_request_gets_the_same_text_and_another_id(testbed: Testbed) -> None:
    first, second = await post(testbed, body("one")), await post(testbed, body("one"))
    assert text(first) == text(second)
    assert events(first)[0]["id"] != events(second)[0]["id"]


async def test_without_stream_there_is_one_document(testbed: Testbed) -> None:
    found = (await post(testbed, body("one", MATHS, stream=False))).json()
    assert found["object"] == "chat.completion"
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["choices"][0]["message"]["content"] == text(await post(testbed, body("one", MATHS)))
    assert found["usage"]["prompt_tokens"] > 0
    assert (await post(testbed, body("document"))).json()["object"] == "chat.completion"


@pytest.mark.parametrize(
    ("model", "members"),
    [
        ("claude", {"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"}),
        (
            "deep",
            {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"},
        ),
        ("gem", {"prompt_tokens", "completion_tokens", "total_tokens"}),
    ],
)
async def test_usage_comes_in_the_models_dialect(testbed: Testbed, model: str, members: set[str]) -> None:
    usage = events(await post(testbed, body(model)))[-1]["usage"]
    assert set(usage) == members
    if model == "gem":
        assert usage["total_tokens"] > usage["prompt_tokens"] + usage["completion_tokens"]
    if model == "deep":
        assert usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"] == usage["prompt_tokens"]


async def test_usage_comes_when_asked_for_always_or_never(testbed: Testbed) -> None:
    unasked = {"model": "one", "messages": [{"role": "user", "content": "x"}], "stream": True}
    assert not any(event.get("usage") for event in events(await post(testbed, unasked)))
    assert any(event.get("usage") for event in events(await post(testbed, unasked | {"model": "chatty"})))
    assert not any(event.get("usage") for event in events(await post(testbed, body("silent"))))


async def test_reasoning_goes_through_its_channel(testbed: Testbed) -> None:
    found = events(await post(testbed, body("gem")))
    reasoning = [
        event["choices"][0]["delta"]["reasoning_content"]
        for event in found[1:]
        if event["choices"] and "reasoning_content" in event["choices"][0]["delta"]
    ]
    assert len(reasoning) == 19
    assert text(await post(testbed, body("thinks"))).startswith("<think>")


async def test_a_model_may_answer_under_another_name(testbed: Testbed) -> None:
    assert events(await post(testbed, body("alias")))[0]["model"] == "alias-2026-01"


async def test_models_are_listed(testbed: Testbed) -> None:
    names = [item["id"] for item in (await get(testbed, "/v1/models")).json()["data"]]
    assert names[0] == "one"
    assert names[-1] == "mix-none"


async def test_paced_answers_keep_their_pace() -> None:
    async with Testbed(config(), KEY, paced=True) as testbed:
        started = time.monotonic()
        async with (
            httpx.AsyncClient(trust_env=False) as client,
            client.stream("POST", testbed.base_url + "/chat/completions", json=body("slow")) as response,
        ):
            stamps = [time.monotonic() - started async for _ in response.aiter_raw()]
        assert stamps[0] >= 0.06
        assert stamps[-1] >= 0.06 + 3 * 0.02
        assert len(stamps) >= 4
        row = testbed.ledger.rows[0]
        assert row.first_byte_ns - row.received_ns >= 60_000_000
        assert row.ended_ns > row.first_byte_ns


async def test_many_requests_at_once_each_get_their_own_answer(testbed: Testbed) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        answers = await asyncio.gather(
            *(client.post(testbed.base_url + "/chat/completions", json=body("one", f"q{n}")) for n in range(60))
        )
    assert len({events(answer)[0]["id"] for answer in answers}) == 60
    assert testbed.ledger.counts()["most"] == 1


async def test_requests_on_one_connection_are_answered_in_order(testbed: Testbed) -> None:
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    data = orjson.dumps(body("one", stream=False))
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)
    writer.write(request * 3)
    seen: list[bytes] = []
    for _ in range(3):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        seen.append(orjson.loads(await reader.readexactly(length))["id"])
    writer.close()
    assert seen == sorted(seen)
    assert len(set(seen)) == 3


async def test_expect_continue_is_honoured(testbed: Testbed) -> None:
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    data = orjson.dumps(body("one", stream=False))
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(data)
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(data)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        ({"model": "nobody", "messages": [{"role": "user", "content": "x"}]}, 404, "NO_SUCH_MODEL"),
        ({"messages": []}, 400, "BAD_FIELD"),
        ([], 400, "BAD_FIELD"),
        ({"model": "one", "messages": []}, 400, "BAD_FIELD"),
    ],
)
async def test_bad_requests_are_refused_and_recorded(testbed: Testbed, payload: Json, status: int, code: str) -> None:
    response = await post(testbed, payload)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert testbed.ledger.counts()["requests"] == 1


async def test_what_is_not_http_is_refused(testbed: Testbed) -> None:
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()
    assert (await get(testbed, "/nothing")).status_code == 404


def test_other_addresses_than_loopback_are_refused() -> None:
    for host in ("0.0.0.0", "10.1.2.3", "::", "example.org"):
        with pytest.raises(InvalidInput) as caught:
            Testbed(host=host)
        assert caught.value.reason == "NOT_LOOPBACK"


# Routers.


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


# The ledger.


async def test_the_ledger_proves_how_often_something_was_sent(testbed: Testbed) -> None:
    secret = "Bearer sk-very-secret-value"
    for prompt in ("x", "x", "y"):
        await post(testbed, body("one", prompt), authorization=secret, **{"x-session-id": "s-1"})
    await post(testbed, body("one", "x", temperature=0.5))
    counts = (await get(testbed, "/testbed/counts")).json()
    assert counts["requests"] == 4
    assert sorted(counts["identities"].values()) == [1, 3]
    assert sorted(counts["bodies"].values()) == [1, 1, 2]
    assert counts["most"] == 3
    assert counts["in_hand"] == 0
    lines = [orjson.loads(line) for line in (await get(testbed, "/testbed/ledger")).text.splitlines()]
    assert len(lines) == 4
    first = lines[0]
    assert (first["method"], first["path"], first["model"], first["session_id"]) == (
        "POST",
        "/v1/chat/completions",
        "one",
        "s-1",
    )
    assert ["authorization", "sha256:" + hashlib.sha256(secret.encode()).hexdigest()] in first["headers"]
    assert secret not in str(lines)
    assert first["received_ns"] < first["first_byte_ns"] <= first["ended_ns"]
    assert first["ended"] == "complete"
    page = (await get(testbed, f"/testbed/ledger?after={first['sequence']}&limit=2")).text.splitlines()
    assert [orjson.loads(line)["sequence"] for line in page] == [lines[1]["sequence"], lines[2]["sequence"]]
    assert (await get(testbed, "/testbed/ledger?limit=x")).status_code == 400


async def test_a_reset_forgets(testbed: Testbed) -> None:
    await post(testbed, body("one"))
    await fault(testbed, "no_done")
    await post(testbed, {}, "/testbed/reset")
    assert (await get(testbed, "/testbed/counts")).json()["requests"] == 0
    assert len((await get(testbed, "/testbed/faults")).json()["active"]) == 1
    await post(testbed, {}, "/testbed/reset?faults=1")
    assert (await get(testbed, "/testbed/faults")).json()["active"] == []


async def test_a_client_that_goes_away_is_on_record(testbed: Testbed) -> None:
    await fault(testbed, "hang_mid_stream")
    data, ended = await raw(testbed, body("one"), 0.3)
    assert ended == "open"
    assert data.count(b"data: ") == 4
    for _ in range(100):
        if testbed.ledger.rows[0].ended:
            break
        await asyncio.sleep(0.01)
    assert testbed.ledger.rows[0].ended == "client_closed"


async def test_the_ledger_file_holds_each_request_before_it_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    async with Testbed(config(), KEY, ledger_path=path) as testbed:
        await fault(testbed, "hang_before_headers")
        await raw(testbed, body("one"), 0.2)
        received = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        assert received[0]["event"] == "received"
        assert received[0]["model"] == "one"
        assert received[0]["fault"] == ""
    ended = orjson.loads(path.read_bytes().splitlines()[-1])
    assert ended["event"] == "ended"
    assert ended["ended"] in ("client_closed", "shutdown")


# Faults.


@pytest.mark.parametrize(
    ("name", "params", "ending", "must", "must_not"),
    [
        ("reset_before_headers", {}, "reset", b"", b"HTTP"),
        ("close_before_headers", {}, "closed", b"", b"HTTP"),
        ("hang_before_headers", {}, "open", b"", b"HTTP"),
        ("close_mid_stream", {}, "closed", b"data: ", b"\r\n0\r\n"),
        ("hang_mid_stream", {}, "open", b"data: ", b"[DONE]"),
        ("truncated_chunk", {}, "closed", b"400\r\n", b"[DONE]"),
        ("bad_chunk_size", {}, "closed", b"zz\r\n", b"[DONE]"),
        ("until_close", {}, "closed", b"[DONE]", b"chunked"),
        ("short_body", {}, "closed", b"content-length", b"[DONE]"),
        ("trailing_garbage", {}, "closed", b"0\r\n\r\ngarbage", b"content-length"),
        ("not_http", {}, "closed", b"SSH-2.0", b"HTTP"),
        ("no_done", {}, "open", b'"usage"', b"[DONE]"),
        ("error_event", {}, "open", b'"error"', b"[DONE]"),
        ("malformed_json", {}, "open", b'"cut ', b"[DONE]"),
        ("invalid_utf8", {}, "open", b"\xff\xfe", b"[DONE]"),
        ("no_last_newline", {}, "open", b"[DONE]\r\n0\r\n", b"[DONE]\n"),
        ("crlf", {}, "open", b"[DONE]\r\n\r\n", b"[DONE]\n"),
        ("byte_order_mark", {}, "open", b"\xef\xbb\xbf", b"HTTP/1.1 5"),
        ("comments", {}, "open", b": comment\n", b"HTTP/1.1 5"),
        ("duplicate_headers", {}, "open", b"no-cachex", b"HTTP/1.1 5"),
        ("interim_responses", {}, "open", b"HTTP/1.1 103 Early Hints", b"HTTP/1.1 5"),
        ("usage_missing", {}, "open", b"[DONE]", b'"usage"'),
        ("usage_null", {}, "open", b'"usage":null', b"prompt_tokens"),
        ("usage_contradictory", {}, "open", b'"total_tokens":9', b'"usage":null'),
        ("usage_malformed", {}, "open", b'"prompt_tokens":"10"', b'"usage":null'),
        ("usage_zeros_first", {}, "open", b'"prompt_tokens":0', b'"usage":null'),
        ("finish_reason", {}, "open", b'"content_filter"', b'"stop"'),
        ("no_finish_reason", {}, "open", b"[DONE]", b'"stop"'),
        ("cut_by_length", {}, "open", b'"length"', b'"stop"'),
        ("wrong_model", {}, "open", b'"imposter"', b'"model":"one"'),
        ("no_model", {}, "open", b"[DONE]", b'"model":"one"'),
        ("null_choices", {}, "open", b'"choices":null', b"HTTP/1.1 5"),
        ("repetition_loop", {"period": 3, "chars": 900}, "open", b'"abc"', b'"stopp'),
        ("huge_event", {"bytes": 100_000}, "open", b"x" * 100_000, b"HTTP/1.1 5"),
        ("huge_header", {}, "open", b"h" * 100_000, b"HTTP/1.1 5"),
        ("split_bytes", {}, "open", b"1\r\nd\r\n1\r\na\r\n", b"data"),
        ("empty_answer", {}, "open", b"[DONE]", b"Answer"),
        ("html_page", {}, "open", b"<!DOCTYPE html>", b"data: "),
        ("redirect", {}, "open", b"location: http://127.0.0.1:1/", b"data: "),
        ("http_status", {"status": 429, "retry_after_s": 2}, "open", b"retry-after: 2\r\n", b"data: "),
        ("http_status", {"status": 503, "retry_after_date_s": 5}, "open", b" GMT\r\n", b"data: "),
        ("wrong_content_type", {}, "open", b"content-type: text/plain\r\n", b"text/event-stream"),
    ],
)
async def test_faults_do_what_they_say(
    testbed: Testbed, name: str, params: dict[str, Json], ending: str, must: bytes, must_not: bytes
) -> None:
    await fault(testbed, name, **params)
    data, ended = await raw(testbed, body("one"), 0.35)
    assert ended == ending
    assert must in data
    assert must_not not in data
    assert testbed.ledger.rows[-1].fault == name
    assert testbed.ledger.counts()["requests"] == 1


async def test_a_reset_in_the_middle_is_a_reset(testbed: Testbed) -> None:
    await fault(testbed, "reset_mid_stream", after_parts=3)
    _, ended = await raw(testbed, body("one"))
    assert ended == "reset"
    assert testbed.ledger.rows[0].ended == "fault:reset_mid_stream"


async def test_usage_in_every_chunk(testbed: Testbed) -> None:
    await fault(testbed, "usage_every_chunk")
    found = events(await post(testbed, body("one")))
    assert all(event["usage"]["prompt_tokens"] for event in found)


async def test_stalls_take_as_long_as_they_say(testbed: Testbed) -> None:
    for name in ("stall_before_headers", "stall_mid_stream"):
        await fault(testbed, name, seconds=0.2)
        started = time.monotonic()
        assert events(await post(testbed, body("one")))
        assert time.monotonic() - started >= 0.2


async def test_a_drip_is_slow_and_whole(testbed: Testbed) -> None:
    await fault(testbed, "slow_drip", delay_ms=1, bytes=100)
    assert text(await post(testbed, body("one")))


@pytest.mark.parametrize(("name", "needle"), [("endless_stream", b" more"), ("keepalive_only", b": keep-alive")])
async def test_endless_answers_end_with_the_client(testbed: Testbed, name: str, needle: bytes) -> None:
    await fault(testbed, name)
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    data = orjson.dumps(body("one"))
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data))
    received = b""
    while received.count(needle) < 30:
        received += await asyncio.wait_for(reader.read(65536), 5)
    writer.transport.abort()
    for _ in range(200):
        if testbed.ledger.rows[0].ended:
            break
        await asyncio.sleep(0.01)
    assert testbed.ledger.rows[0].ended == "client_closed"


async def test_a_gzip_body_unpacks_or_is_cut(testbed: Testbed) -> None:
    await fault(testbed, "gzip_body")
    assert text(await post(testbed, body("one")))
    await fault(testbed, "gzip_body", missing=10)
    data, _ = await raw(testbed, body("one", stream=False), 0.3)
    head, _, packed = data.partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head
    with pytest.raises(EOFError):
        gzip.decompress(packed)


async def test_the_key_comes_back_when_told_to(testbed: Testbed) -> None:
    await fault(testbed, "echo_authorization")
    response = await post(testbed, body("one"), authorization="Bearer canary-123")
    assert "Bearer canary-123" in text(response)
    assert response.headers["x-echo"] == "Bearer canary-123"


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("wrong_config_hash", "x-sr-bench-config-hash", "0" * 64),
        ("no_config_hash", "x-sr-bench-config-hash", None),
        ("receipt_malformed", "x-vsr-model-usage", "{not json"),
        ("receipt_incomplete", "x-vsr-model-usage", '{"version":1,"complete":false,"calls":[]}'),
        ("receipt_missing", "x-vsr-model-usage", None),
        ("receipt_contradictory", "x-vsr-inference-call-count", "7"),
    ],
)
async def test_faults_of_routers(testbed: Testbed, name: str, header: str, value: str | None) -> None:
    await fault(testbed, name)
    assert (await post(testbed, body("mix"))).headers.get(header) == value


async def test_an_oversized_receipt_is_oversized(testbed: Testbed) -> None:
    await fault(testbed, "receipt_oversized")
    data, _ = await raw(testbed, body("mix"), 0.3)
    assert len(data.partition(b"\r\n\r\n")[0]) > 20_000


async def test_faults_strike_by_number_and_are_listed(testbed: Testbed) -> None:
    await fault(testbed, "http_status", {"model": "one", "nth": 2}, status=500)
    statuses = [(await post(testbed, body(model))).status_code for model in ("one", "two", "one", "one")]
    assert statuses == [200, 200, 500, 200]
    listing = (await get(testbed, "/testbed/faults")).json()
    assert len(listing["catalogue"]) >= 50
    assert all(item["sentence"] for item in listing["catalogue"])
    assert (listing["active"][0]["seen"], listing["active"][0]["struck"]) == (3, 1)


async def test_a_bad_fault_is_refused_and_changes_nothing(testbed: Testbed) -> None:
    await fault(testbed, "no_done")
    refused = await post(testbed, [{"fault": "crlf"}, {"fault": "no_such"}], "/testbed/faults")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "NO_SUCH_FAULT")
    assert [rule.fault.name for rule in testbed.injector.rules] == ["no_done"]
    await post(testbed, {"fault": "crlf"}, "/testbed/faults")
    assert [rule.fault.name for rule in testbed.injector.rules] == ["no_done", "crlf"]
