"""Clients that send too much, too slowly, too deep, twice, or not HTTP at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from srbench_gateway.bodies import MIB, Bounds
from srbench_gateway.http_server import HttpBounds

V1 = "/api/sr-bench/v1"
JSON = {"content-type": "application/json"}


async def talk(port: int, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Everything the server says to `parts`, sent one by one, until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = bytearray()

    async def listen() -> None:
        while chunk := await reader.read(65536):
            heard.extend(chunk)

    listening = asyncio.ensure_future(listen())
    with contextlib.suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(listening, 60)
    writer.close()
    return bytes(heard)


def body_of(raw: bytes) -> Any:
    return json.loads(raw.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        (b"", "EMPTY_BODY", "empty"),
        (b"{", "BAD_JSON", "line 1, column 2"),
        (b'{"a":1} x', "BAD_JSON", "line 1"),
        (b"[]", "NOT_AN_OBJECT", "a list; expected a JSON object"),
        (b"null", "NOT_AN_OBJECT", "null; expected"),
        (b'{"a":1,"a":2}', "DUPLICATE_KEY", "'a' twice"),
        (b'{"manifest":{"seed":1,"seed":2}}', "DUPLICATE_KEY", "'seed' twice"),
        (b'{"a":NaN}', "BAD_NUMBER", "NaN"),
        (b'{"a":1e999}', "BAD_NUMBER", "not finite"),
        (b'{"a":' + b"9" * 5000 + b"}", "BAD_NUMBER", "4300 digits"),
        (b'{"a":"\xff"}', "BAD_ENCODING", "offset 6"),
        (b'{"version":' + b"[" * 60 + b"]" * 60 + b"}", "TOO_DEEP", "nested deeper"),
        (b'{"version":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "TOO_DEEP", "nested deeper"),
        (b'{"version":' + b'{"a":' * 500 + b"1" + b"}" * 501, "TOO_DEEP", "nested deeper"),
    ],
)
async def test_malformed_bodies_get_one_sentence(stand: Any, body: bytes, reason: str, words: str) -> None:
    answer = await stand.http.post(V1 + "/plans", content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert answer.json()["reason"] == reason
    assert words in answer.json()["error"]
    assert stand.planner.requests == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
async def test_a_body_that_does_not_call_itself_json_is_415(stand: Any, headers: dict[str, str]) -> None:
    answer = await stand.http.post(V1 + "/plans", content=b'{"version":"sr-bench-1.0"}', headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (415, "NOT_JSON")


async def test_json_in_utf8_is_taken_under_each_of_its_names(stand: Any) -> None:
    for kind in ("application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'):
        answer = await stand.http.post(V1 + "/plans", content=b'{"version":"sr-bench-1.0"}', headers={"content-type": kind})
        assert answer.status_code == 200, answer.text


async def test_a_large_body_is_413_by_its_length_before_it_is_read(start: Any) -> None:
    stand = await start(bounds=Bounds(plan_bytes=2 * MIB))
    head = f"POST {V1}/plans HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {10**12}\r\nconnection: close\r\n\r\n"
    raw = await talk(stand.http_port, head.encode() + b"{")
    assert raw.startswith(b"HTTP/1.1 413")
    assert body_of(raw)["reason"] == "BODY_TOO_LARGE"


async def test_a_large_body_without_a_length_is_413_while_it_is_read(start: Any) -> None:
    stand = await start(bounds=Bounds(plan_bytes=2 * MIB))
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(40):
            sent += MIB
            yield b" " * MIB

    answer = await stand.http.post(V1 + "/plans", content=endless(), headers=JSON)
    assert (answer.status_code, answer.json()["facts"]) == (413, {"limit": str(2 * MIB)})
    assert (await stand.http.get(V1 + "/catalog")).status_code == 200


async def test_small_routes_take_small_bodies_only(stand: Any) -> None:
    body = {"dataset_ids": ["x" * MIB]}
    assert (await stand.http.post(V1 + "/datasets/compose", json=body)).status_code == 413
    assert (await stand.http.post(V1 + "/plans", json={"version": "x" * MIB})).status_code == 400


async def test_a_body_that_stops_coming_is_408(start: Any) -> None:
    stand = await start(bounds=Bounds(idle_s=0.2))
    head = f"POST {V1}/plans HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    raw = await talk(stand.http_port, (head + "content-length: 100\r\nconnection: close\r\n\r\n{").encode())
    assert raw.startswith(b"HTTP/1.1 408")
    assert body_of(raw)["reason"] == "SLOW_BODY"


async def test_a_body_that_drips_is_408(start: Any) -> None:
    stand = await start(bounds=Bounds(idle_s=5, total_s=0.3))
    head = f"POST {V1}/plans HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += "content-length: 1000\r\nconnection: close\r\n\r\n"
    raw = await talk(stand.http_port, head.encode(), *[b" "] * 6, pause_s=0.1)
    assert raw.startswith(b"HTTP/1.1 408")


async def test_a_head_that_does_not_come_ends_the_connection(start: Any) -> None:
    stand = await start(http_bounds=HttpBounds(head_s=0.2, grace_s=1))
    assert await talk(stand.http_port) == b""
    assert await talk(stand.http_port, b"GET /health HTTP/1.1\r\nhost: loc") == b""
    assert await talk(stand.http_port, b"GET /heal", *[b"x"] * 5, pause_s=0.1) == b""


async def test_a_second_head_that_does_not_come_ends_the_connection_too(start: Any) -> None:
    stand = await start(http_bounds=HttpBounds(head_s=0.2, grace_s=1))
    first = f"GET {V1}/catalog HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    raw = await talk(stand.http_port, first, b"GET /he", pause_s=0.1)
    assert raw.count(b"HTTP/1.1 200") == 1


async def test_the_rest_of_an_unwanted_body_is_not_awaited_for_ever(start: Any) -> None:
    stand = await start(http_bounds=HttpBounds(head_s=0.3, grace_s=1))
    head = f"POST {V1}/nonesuch HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"
    raw = await talk(stand.http_port, head.encode(), *[b" "] * 10, pause_s=0.1)
    assert raw.startswith(b"HTTP/1.1 404")


async def test_a_connection_serves_on_after_an_unwanted_body(stand: Any) -> None:
    refused = f"POST {V1}/nonesuch HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n".encode()
    last = f"GET {V1}/catalog HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
    raw = await talk(stand.http_port, refused, b"12345" + last, pause_s=0.1)
    assert raw.count(b"HTTP/1.1 404") == 1
    assert raw.count(b"HTTP/1.1 200") == 1


async def test_a_long_head_is_431(stand: Any) -> None:
    raw = await talk(stand.http_port, b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 20_000)
    assert not raw or raw.startswith(b"HTTP/1.1 431")
    assert (await stand.http.get("/health", headers={"x-long": "y" * 40_000})).status_code == 200


async def test_a_large_body_right_behind_the_head_is_no_long_head(stand: Any) -> None:
    body = json.dumps({"version": "sr-bench-1.0", "name": "x" * 200_000}).encode()
    head = f"POST {V1}/plans HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
    raw = await talk(stand.http_port, head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)
    assert raw.startswith(b"HTTP/1.1 200")


async def test_what_is_not_http_is_400_in_json(stand: Any) -> None:
    raw = await talk(stand.http_port, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 400")
    assert body_of(raw) == {"error": "the request is not HTTP", "code": "bad_request", "reason": "BAD_REQUEST"}


async def test_connections_beyond_the_bound_are_told_so(start: Any) -> None:
    stand = await start(http_bounds=HttpBounds(connections=2, grace_s=1))
    held = [await asyncio.open_connection("127.0.0.1", stand.http_port) for _ in range(2)]
    await asyncio.sleep(0.1)
    raw = await talk(stand.http_port)
    assert raw.startswith(b"HTTP/1.1 503")
    assert body_of(raw)["reason"] == "TOO_MANY_CONNECTIONS"
    for _, writer in held:
        writer.close()
        await writer.wait_closed()
    assert (await stand.http.get("/health")).status_code == 200


async def test_others_are_served_while_a_huge_body_is_parsed(stand: Any) -> None:
    cases = json.dumps([{"id": str(n), "a": [1, 2, 3]} for n in range(150_000)])
    huge = f'{{"version":"x","cases":{cases},"version":"y"}}'.encode()
    posted = asyncio.ensure_future(stand.http.post(V1 + "/plans", content=huge, headers=JSON))
    served = 0
    while not posted.done():
        assert (await stand.http.get(V1 + "/targets")).status_code == 200
        served += 1
    assert posted.result().json()["reason"] == "DUPLICATE_KEY"
    assert served > 2
