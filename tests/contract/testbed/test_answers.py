"""What the testbed answers, and what it refuses."""

from __future__ import annotations

import asyncio
import time

import httpx
import orjson
import pytest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json
from srbench_testbed.server import Testbed

from tests.contract.testbed.asking import KEY, MATHS, body, config, events, get, post, text
from tests.waiting import EARLY_S


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


async def test_models_and_routers_are_listed_by_name(testbed: Testbed) -> None:
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
        assert row.first_byte_ns - row.received_ns >= 60_000_000 - EARLY_S * 1e9
        assert row.ended_ns > row.first_byte_ns


async def test_many_requests_at_once_each_get_their_own_answer(testbed: Testbed) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
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
