"""What may come over the wire as HTTP: trailers, bytes before and after the answer, codings, and what is no HTTP at all."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import read_answer

from tests.contract.executor.streams import TAIL, at_once, content, evidence


async def test_trailers_carry_the_routers_receipt(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL), trailers={"X-Vsr-Model-Usage": '{"version":1}'})]
    got = await ask(upstream.base_url)
    assert got.settled.receipt.router_receipt_json == b'{"version":1}'
    assert [(found.name, found.value) for found in evidence(got).trailers] == [("x-vsr-model-usage", '{"version":1}')]


@pytest.mark.parametrize(
    "unasked",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3\r\nx-vsr-model-usage: {}\r\n\r\nABC",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nABCDE\r\n",
        b"HTTP/1.1 2",
        b"garbage",
    ],
)
async def test_what_follows_the_answer_is_no_part_of_it_and_the_connection_is_left(
    upstream: Any, ask: Any, answer_type: Any, unasked: bytes
) -> None:
    body = b"".join([content("x" * 300), *TAIL])
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
    upstream.answers = [answer_type(raw_head=head + body + unasked, end="hang")]
    for number in (1, 2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, got.settled.text) == ("", "x" * 300)
        assert got.settled.receipt.router_receipt_json == b""
        saved = evidence(got)
        assert (saved.body, [found.name for found in saved.trailers]) == (body, [])
        assert (len(upstream.requests), upstream.connections) == (number, number)


async def test_what_comes_before_the_answer_is_skipped(upstream: Any, ask: Any, answer_type: Any) -> None:
    final = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    upstream.answers = [answer_type(raw_head=early + final, chunks=at_once(content("x"), *TAIL))]
    got = await ask(upstream.base_url)
    assert (got.settled.receipt.reason, got.settled.text, got.settled.receipt.http_status) == ("", "x", 200)


ANSWER = b"".join([content("x" * 300), *TAIL])
LENGTH = b"content-length: %d" % len(ANSWER)
CHUNK = b"%x\r\n%s\r\n0\r\n\r\n" % (len(ANSWER), ANSWER)


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        (b"HTTP/1.1 200 OK\ncontent-type: text/event-stream\n" + LENGTH + b"\n\n" + ANSWER, True),
        (b"HTTP/1.1 200\r\nContent-Type: text/event-stream\r\nx: a\r\n b\r\n" + LENGTH + b"\r\n\r\n" + ANSWER, True),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx: a\x01\xff\r\n" + LENGTH + b"\r\n\r\n" + ANSWER, True),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
            + CHUNK,
            False,
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            + CHUNK.replace(b"\r\n", b"  \r\n", 1),
            True,
        ),
        (b"\r\nHTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + LENGTH + b"\r\n\r\n" + ANSWER, True),
    ],
)
async def test_an_answer_is_not_lost_for_the_manners_of_a_server(
    upstream: Any, ask: Any, answer_type: Any, odd: bytes, kept: bool
) -> None:
    upstream.answers = [answer_type(raw_head=odd, end="quiet")]
    for _ in range(2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, got.settled.text, got.settled.receipt.usage_final) == ("", "x" * 300, True)
    assert (len(upstream.requests), upstream.connections) == (2, 1 if kept else 2)


@pytest.mark.parametrize(
    ("raw_head", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", "headers are longer"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n" + b"x: " + b"y" * 200_000,
            "headers are longer",
        ),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "another protocol"),
    ],
)
async def test_what_is_no_http_answer_is_a_protocol_error(
    upstream: Any, ask: Any, answer_type: Any, raw_head: bytes, said: str
) -> None:
    upstream.answers = [answer_type(raw_head=raw_head)]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, "protocol_error")
    assert said in receipt.message


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def gzip_members(data: bytes) -> bytes:
    return gzip.compress(data[:50]) + gzip.compress(b"") + gzip.compress(data[50:]) + bytes(5)


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("gzip", gzip_members), ("deflate", zlib.compress), ("deflate", raw_deflate)],
)
async def test_a_coding_that_nobody_asked_for_is_undone(
    upstream: Any, ask: Any, answer_type: Any, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(b"".join([content("x"), *TAIL]))
    pieces = [(1.0, packed[at : at + 7]) for at in range(0, len(packed), 7)]
    headers = {"content-type": "text/event-stream", "content-encoding": coding}
    upstream.answers = [answer_type(headers=headers, chunks=pieces)]
    got = await ask(upstream.base_url)
    assert (got.settled.receipt.reason, got.settled.text) == ("", "x")
    assert evidence(got).body == b"".join([content("x"), *TAIL])


@pytest.mark.parametrize(("coding", "packed"), [("gzip", False), ("x-gzip", False), ("", True), ("identity", True)])
async def test_a_coding_is_told_by_the_body_where_its_header_lies(
    upstream: Any, ask: Any, answer_type: Any, coding: str, packed: bool
) -> None:
    """Gateways leave the header of a coding that they undid, or lose that of one that they passed on."""
    body = b"".join([content("x"), *TAIL])
    sent = gzip.compress(body) if packed else body
    headers = {"content-type": "text/event-stream"} | ({"content-encoding": coding} if coding else {})
    upstream.answers = [answer_type(headers=headers, chunks=[(1.0, sent[:1]), (1.0, sent[1:])])]
    got = await ask(upstream.base_url)
    saved = evidence(got)
    assert (got.settled.receipt.reason, got.settled.text, saved.body) == ("", "x", body)
    again = read_answer(200, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end)
    assert again == got.call.completion


async def test_a_compression_bomb_stops_at_the_cap(upstream: Any, ask: Any, answer_type: Any) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    bomb = gzip.compress(b": " + b"x" * 50_000_000)
    upstream.answers = [answer_type(headers=headers, chunks=at_once(bomb))]
    got = await ask(upstream.base_url, max_chars=10)
    assert got.settled.receipt.reason == "output_bytes_limit"
    assert got.call.body.size < 3_000_000


async def test_an_unknown_coding_is_named(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(headers={"content-type": "text/event-stream", "content-encoding": "br"})]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert receipt.reason == "protocol_error"
    assert "coded its answer as br" in receipt.message


@pytest.mark.parametrize("coding", ["br", "gzip, gzip"])
async def test_a_body_in_an_unknown_coding_is_kept_as_it_came_and_says_nothing(
    upstream: Any, ask: Any, answer_type: Any, coding: str
) -> None:
    parts = [content("x"), *TAIL, bytes(range(256))]
    headers = {"content-type": "text/event-stream", "content-encoding": coding}
    upstream.answers = [answer_type(headers=headers, chunks=at_once(*parts))]
    got = await ask(upstream.base_url)
    receipt, saved = got.settled.receipt, evidence(got)
    assert (receipt.status, receipt.reason, got.settled.text) == (pb.CALL_STATUS_FAILED, "protocol_error", "")
    assert (saved.body, receipt.received_bytes) == (b"".join(parts), len(b"".join(parts)))
    again = read_answer(200, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end)
    assert (again.text, again.usage, receipt.content_chars, receipt.usage_json) == ("", None, 0, b"")


async def test_one_huge_event_in_many_pieces_is_read_whole(upstream: Any, ask: Any, answer_type: Any) -> None:
    words = "".join(f"n{number:06d} " for number in range(330_000))
    data = content(words)
    pieces = at_once(*(data[at : at + 16_384] for at in range(0, len(data), 16_384)))
    upstream.answers = [answer_type(chunks=[*pieces, *at_once(*TAIL)])]
    got = await ask(upstream.base_url, max_chars=10_000_000)
    assert got.settled.text == words
