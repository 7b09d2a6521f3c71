"""What an endpoint sends back of a key, a cookie or a password is in no receipt and no evidence, and both still agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench_kit.completion import read_answer

from tests.contract.executor.streams import KEY, TAIL, USAGE, at_once, content, evidence


async def test_a_key_that_comes_back_is_in_nothing_that_is_kept(upstream: Any, ask: Any, answer_type: Any) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "type": "auth", "code": 401}}).encode()
    upstream.answers = [
        answer_type(
            status=401, headers={"content-type": "application/json", "x-echo": KEY}, chunks=at_once(body[:30], body[30:])
        )
    ]
    got = await ask(upstream.base_url, key=KEY)
    assert got.settled.receipt.reason == "auth_refused"
    assert b"CANARY" not in got.settled.receipt.SerializeToString() + evidence(got).SerializeToString()


async def test_a_key_spelled_out_over_several_events_is_not_kept_either(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(*(content(letter) for letter in f"it is {KEY}!"), *TAIL))]
    got = await ask(upstream.base_url, key=KEY)
    saved = evidence(got)
    again = read_answer(200, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end)
    assert again.text == got.settled.text == "it is [redacted]!"
    assert (again.finish_reason, again.usage) == ("stop", USAGE)


JSON_ANSWER = {"choices": [{"message": {"content": f"it is {KEY}!"}, "finish_reason": "stop"}], "usage": USAGE}
ESCAPED = json.dumps(JSON_ANSWER).replace(KEY, "".join(f"\\u{ord(letter):04x}" for letter in KEY)).encode()


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("text/event-stream", [content(f"it is {KEY}!"), *TAIL]),
        ("text/event-stream", [*(content(letter) for letter in f"<think>{KEY}</think>it is {KEY}!"), *TAIL]),
        ("application/json", [json.dumps(JSON_ANSWER).encode()]),
        ("application/json", [ESCAPED]),
    ],
)
async def test_a_receipt_says_what_the_evidence_says_when_a_key_was_taken_out(
    upstream: Any, ask: Any, answer_type: Any, kind: str, parts: list[bytes]
) -> None:
    upstream.answers = [answer_type(headers={"content-type": kind}, chunks=at_once(*parts))]
    got = await ask(upstream.base_url, key=KEY)
    receipt, saved = got.settled.receipt, evidence(got)
    headers = [(h.name, h.value) for h in saved.headers]
    again = read_answer(200, headers, saved.body, clean_end=saved.clean_end)
    assert b"CANARY" not in receipt.SerializeToString() + saved.SerializeToString()
    assert again.text == got.settled.text == "it is [redacted]!"
    assert (receipt.reason, receipt.finish_reason, json.loads(receipt.usage_json)) == ("", "stop", USAGE)
    told = (receipt.content_chars, receipt.reasoning_chars, receipt.usage_final, receipt.output_complete)
    assert told == (again.content_chars, again.reasoning_chars, again.usage_final, again.output_complete)


async def test_cookies_and_user_information_of_the_endpoint_are_not_kept(upstream: Any, ask: Any, answer_type: Any) -> None:
    headers = {"content-type": "text/event-stream", "set-cookie": "sid=CANARY", "location": "http://u:CANARY@h/v1?a=b@c"}
    upstream.answers = [answer_type(headers=headers, chunks=at_once(content("x"), *TAIL))]
    kept = {h.name: h.value for h in evidence(await ask(upstream.base_url)).headers}
    assert (kept["set-cookie"], kept["location"]) == ("[redacted]", "http://[redacted]@h/v1?a=b@c")
