"""How the testbed fails on demand."""

from __future__ import annotations

import asyncio
import gzip
import time

import orjson
import pytest
from srbench_kit.values import Json
from srbench_testbed.server import Testbed

from tests.contract.testbed.asking import body, events, fault, get, post, raw, text
from tests.waiting import EARLY_S


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
        assert time.monotonic() - started >= 0.2 - EARLY_S


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
        received += await asyncio.wait_for(reader.read(65536), 60)
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
async def test_a_fault_of_a_router_shows_in_the_header_that_it_is_about(
    testbed: Testbed, name: str, header: str, value: str | None
) -> None:
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
