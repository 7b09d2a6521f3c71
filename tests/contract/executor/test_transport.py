"""The transport against a scripted endpoint: ends, guards, keep-alive, TLS, proxies, and never a second request."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor import tls
from srbench_executor.call import Call, Cut
from srbench_kit.completion import read_answer

USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "prompt_tokens_details": {"cached_tokens": 8}}


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def content(text: str, finish: str | None = None) -> bytes:
    return event({"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


STOP = event({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
TAIL = [STOP, event({"choices": [], "usage": USAGE}), b"data: [DONE]\n\n"]


def at_once(*parts: bytes) -> list[tuple[float, bytes]]:
    return [(0, part) for part in parts]


def evidence(result: Any) -> pb.Evidence:
    return pb.Evidence.FromString(zstandard.decompress(result.settled.evidence, max_output_size=1 << 26))


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_stream_is_read_kept_and_settled(upstream: Any, ask: Any, answer_type: Any, chunked: bool) -> None:
    parts = [content("4"), content("2"), *TAIL]
    upstream.answers = [answer_type(chunks=at_once(*parts), chunked=chunked)]
    got = await ask(upstream.base_url)
    receipt = got.settled.receipt
    assert (receipt.status, receipt.reason, got.settled.text) == (pb.CALL_STATUS_COMPLETED, "", "42")
    assert (receipt.finish_reason, receipt.output_complete, receipt.usage_final) == ("stop", True, True)
    assert json.loads(receipt.usage_json) == USAGE
    assert receipt.latency_ns >= receipt.ttft_ns >= 0
    assert receipt.first_token_clock == "kernel"
    assert receipt.HasField("connect_ns")
    saved = evidence(got)
    assert (saved.body, saved.clean_end, saved.http_status) == (b"".join(parts), True, 200)
    again = read_answer(200, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end)
    assert again == got.call.completion


async def test_the_request_carries_what_was_agreed_and_nothing_of_ours(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL))]
    await ask(upstream.base_url + "/", key="k-123456", kind=2, config_hash="", max_inference_calls=3)
    head, body = upstream.requests[0]
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /v1/chat/completions http/1.1"
    for line in ("authorization: bearer k-123456", "x-vsr-debug: true", "x-sr-bench-max-inference-calls: 3"):
        assert line in lines
    assert "accept-encoding: identity" in lines
    assert not any(line.startswith("cookie") for line in lines)
    assert json.loads(body) == {
        "temperature": 0,
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_connections_are_used_again_and_ones_that_were_closed_are_not(
    upstream: Any, ask: Any, answer_type: Any
) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL))]
    first, second = await ask(upstream.base_url), await ask(upstream.base_url)
    assert upstream.connections == 1
    assert first.settled.receipt.HasField("connect_ns")
    assert not second.settled.receipt.HasField("connect_ns")
    closing = answer_type(chunks=at_once(content("x"), *TAIL), chunked=False)
    upstream.answers = [closing]
    for _ in range(3):
        assert (await ask(upstream.base_url)).settled.receipt.reason == ""
    assert (upstream.connections, len(upstream.requests)) == (3, 5)


async def test_an_idle_connection_that_the_peer_closed_costs_no_request(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL))]
    await ask(upstream.base_url)
    await upstream.hang_up()
    got = await ask(upstream.base_url)
    assert (got.settled.receipt.reason, len(upstream.requests), upstream.connections) == ("", 2, 2)


@pytest.mark.parametrize("end", ["reset", "abort_chunked"])
async def test_a_cut_stream_is_a_cut_and_its_text_is_kept(upstream: Any, ask: Any, answer_type: Any, end: str) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("The answer is")), end=end)]
    got = await ask(upstream.base_url)
    receipt = got.settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, "stream_cut")
    assert (receipt.usage_final, receipt.output_complete, receipt.usage_json) == (False, False, b"")
    assert b"The answer is" in evidence(got).body
    assert not evidence(got).clean_end
    assert len(upstream.requests) == 1


async def test_a_connection_lost_before_any_answer_is_a_cut_and_not_sent_again(
    upstream: Any, ask: Any, answer_type: Any
) -> None:
    upstream.answers = [answer_type(status=0, end="reset")]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, "stream_cut")
    assert "may have been accepted" in receipt.message
    assert not receipt.HasField("http_status")
    assert len(upstream.requests) == 1


async def test_after_the_marker_a_hanging_connection_costs_a_moment_only(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL), end="hang")]
    began = time.monotonic()
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, "", True)
    assert time.monotonic() - began < 3


async def test_a_deadline_after_the_finish_reason_keeps_the_answer_without_final_usage(
    upstream: Any, ask: Any, answer_type: Any
) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), STOP), end="hang")]
    receipt = (await ask(upstream.base_url, total_s=0.4)).settled.receipt
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, "", False)


@pytest.mark.parametrize(("total_s", "idle_s", "reason"), [(0.4, 10, "deadline_exceeded"), (10, 0.4, "idle_timeout")])
@pytest.mark.parametrize("chunks", [[], [(0.0, content("half"))]])
async def test_deadlines_end_a_call_before_and_after_its_headers(
    upstream: Any, ask: Any, answer_type: Any, total_s: float, idle_s: float, reason: str, chunks: Any
) -> None:
    gate = None if chunks else asyncio.Event()
    upstream.answers = [answer_type(chunks=chunks, end="hang", gate=gate)]
    began = time.monotonic()
    receipt = (await ask(upstream.base_url, total_s=total_s, idle_s=idle_s)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, reason)
    assert 0.3 < time.monotonic() - began < 3


async def test_a_steady_trickle_is_not_idle(upstream: Any, ask: Any, answer_type: Any) -> None:
    chunks = [(150.0, b": still here\n\n") for _ in range(6)]
    upstream.answers = [answer_type(chunks=[*chunks, *at_once(content("x"), *TAIL)])]
    assert (await ask(upstream.base_url, idle_s=0.5)).settled.receipt.reason == ""


@pytest.mark.parametrize("headers_sent", [True, False])
async def test_a_stop_is_at_once_even_before_headers(upstream: Any, ask: Any, answer_type: Any, headers_sent: bool) -> None:
    gate = None if headers_sent else asyncio.Event()
    upstream.answers = [answer_type(chunks=at_once(content("half")) if headers_sent else [], end="hang", gate=gate)]

    def stop_soon(call: Call) -> None:
        cut = Cut(pb.CALL_STATUS_CANCELLED, "cancelled", "the run was cancelled")
        asyncio.get_running_loop().call_later(0.2, call.stop, cut)

    began = time.monotonic()
    receipt = (await ask(upstream.base_url, before=stop_soon)).settled.receipt
    assert time.monotonic() - began < 1
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_CANCELLED, "cancelled", False)


@pytest.mark.parametrize("period", [1, 3, 7, 50, 128])
async def test_a_loop_of_any_period_is_cut_as_the_models_doing(
    upstream: Any, ask: Any, answer_type: Any, period: int
) -> None:
    word = "".join(chr(0x4E00 + position) for position in range(period))
    upstream.answers = [answer_type(chunks=[(0, content(word * (200 // period + 1)))] * 40, end="hang")]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_COMPLETED, "repetition")
    assert (receipt.output_complete, receipt.usage_final) == (False, False)


async def test_a_text_that_is_too_long_is_cut_as_the_models_doing(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=[(0, content("abcdefghij"))] * 3, end="hang")]
    receipt = (await ask(upstream.base_url, max_chars=25)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_COMPLETED, "output_chars")


async def test_endless_bytes_are_a_failure(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=[(0, b": " + b"x" * 60_000 + b"\n\n")] * 40, end="hang")]
    receipt = (await ask(upstream.base_url, max_chars=10)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, "output_bytes_limit")


async def test_first_token_and_first_content_are_told_apart(upstream: Any, ask: Any, answer_type: Any) -> None:
    thought = event({"choices": [{"index": 0, "delta": {"reasoning": "hm"}}]})
    role = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    chunks = [(50, b": hi\n\n"), (50, role), (200, thought), (400, content("B")), (200, STOP), *at_once(*TAIL[1:])]
    upstream.answers = [answer_type(chunks=chunks)]
    receipt = (await ask(upstream.base_url)).settled.receipt
    for value, wanted in ((receipt.ttft_ns, 300), (receipt.first_content_ns, 700), (receipt.latency_ns, 900)):
        assert abs(value / 1e6 - wanted) < 80 + upstream.late_ms


async def test_content_inside_think_tags_is_no_first_content(upstream: Any, ask: Any, answer_type: Any) -> None:
    chunks = [
        (0, content("<think>a")),
        (100, content("b</th")),
        (0, content("ink>\n")),
        (100, content("B")),
        *at_once(*TAIL),
    ]
    upstream.answers = [answer_type(chunks=chunks)]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert receipt.ttft_ns < 90e6
    assert receipt.first_content_ns > 180e6


async def test_the_first_token_is_dated_by_the_kernel_while_the_loop_is_busy(
    upstream: Any, ask: Any, answer_type: Any
) -> None:
    """The endpoint writes from a thread, so that blocking the loop does not delay the writing."""
    port, done = _threaded_endpoint(0.1)

    def block(_call: Call) -> None:
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.4)

    receipt = (await ask(f"http://127.0.0.1:{port}/v1", before=block)).settled.receipt
    done()
    assert receipt.first_token_clock == "kernel"
    assert 80e6 < receipt.ttft_ns < 300e6
    assert receipt.first_token_lag_ns > 100e6
    assert receipt.ttft_ns + receipt.first_token_lag_ns > 400e6


def _threaded_endpoint(delay_s: float) -> tuple[int, Callable[[], None]]:
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            time.sleep(delay_s)
            connection.sendall(content("first"))
            # Not while the loop is blocked: the kernel joins what waits unread, and keeps the last stamp.
            time.sleep(0.6)
            connection.sendall(b"".join(TAIL))

    thread = threading.Thread(target=serve)
    thread.start()

    def finish() -> None:
        thread.join()
        listener.close()

    return listener.getsockname()[1], finish


async def test_trailers_carry_the_routers_receipt(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL), trailers={"X-Vsr-Model-Usage": '{"version":1}'})]
    got = await ask(upstream.base_url)
    assert got.settled.receipt.router_receipt_json == b'{"version":1}'
    assert [(found.name, found.value) for found in evidence(got).trailers] == [("x-vsr-model-usage", '{"version":1}')]


async def test_what_comes_before_the_answer_is_skipped(upstream: Any, ask: Any, answer_type: Any) -> None:
    final = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    upstream.answers = [answer_type(raw_head=early + final, chunks=at_once(content("x"), *TAIL))]
    got = await ask(upstream.base_url)
    assert (got.settled.receipt.reason, got.settled.text, got.settled.receipt.http_status) == ("", "x", 200)


@pytest.mark.parametrize(
    ("raw_head", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", "headers are longer"),
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


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]
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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(upstream: Any, ask: Any, answer_type: Any, status: int) -> None:
    upstream.answers = [answer_type(status=status, headers={"location": upstream.base_url})]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason, len(upstream.requests)) == (pb.CALL_STATUS_FAILED, "http_error", 1)


@pytest.mark.parametrize(("status", "accepted"), [(429, False), (503, False), (500, True), (529, True), (408, True)])
async def test_only_429_and_503_are_provably_not_accepted(
    upstream: Any, ask: Any, answer_type: Any, status: int, accepted: bool
) -> None:
    upstream.answers = [answer_type(status=status, headers={"content-type": "application/json"}, chunks=at_once(b"{}"))]
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert receipt.status == (pb.CALL_STATUS_FAILED if accepted else pb.CALL_STATUS_NOT_ACCEPTED)
    assert (receipt.http_status, len(upstream.requests)) == (status, 1)


async def test_nobody_listening_and_no_such_name_have_their_own_reasons(ask: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = (await ask(f"http://127.0.0.1:{port}/v1")).settled.receipt
    assert (refused.status, refused.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "connect_failed")
    unknown = (await ask("http://no-such-host.invalid/v1")).settled.receipt
    assert (unknown.status, unknown.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "name_not_resolved")


KEY = "sk-test-CANARY-123456"


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


async def test_the_answers_identity_must_be_the_declared_one(upstream: Any, ask: Any, answer_type: Any) -> None:
    headers = {"content-type": "text/event-stream", "x-vsr-config-hash": "c1"}
    upstream.answers = [answer_type(headers=headers, chunks=at_once(content("x"), *TAIL))]
    other = (await ask(upstream.base_url, expected_response_model="m2")).settled.receipt
    assert (other.status, other.reason) == (pb.CALL_STATUS_FAILED, "identity_mismatch")
    assert json.loads(other.usage_json) == USAGE
    assert (await ask(upstream.base_url, expected_response_model="m", config_hash="c1")).settled.receipt.reason == ""
    stale = (await ask(upstream.base_url, config_hash="c2")).settled.receipt
    assert (stale.status, stale.reason) == (pb.CALL_STATUS_FAILED, "config_hash_mismatch")


async def test_a_json_target_is_asked_for_json(upstream: Any, ask: Any, answer_type: Any) -> None:
    message = {"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}
    document = json.dumps({"model": "m", "choices": [message], "usage": USAGE}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(document))}
    upstream.answers = [answer_type(headers=headers, chunks=at_once(document), chunked=False)]
    got = await ask(upstream.base_url, response_mode=1)
    assert (got.settled.receipt.reason, got.settled.text, got.settled.receipt.usage_final) == ("", "B", True)
    sent = json.loads(upstream.requests[0][1])
    assert sent["stream"] is False
    assert "stream_options" not in sent


async def test_one_huge_event_is_read_in_linear_time(upstream: Any, ask: Any, answer_type: Any) -> None:
    words = "".join(f"n{number:06d} " for number in range(330_000))
    data = content(words)
    pieces = at_once(*(data[at : at + 16_384] for at in range(0, len(data), 16_384)))
    upstream.answers = [answer_type(chunks=[*pieces, *at_once(*TAIL)])]
    began = time.process_time()
    got = await ask(upstream.base_url, max_chars=10_000_000)
    assert got.settled.text == words
    assert time.process_time() - began < 2


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    made.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return made


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_tls_streams_and_keeps_the_connection(
    make_upstream: Any, ask: Any, answer_type: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls.client_context.cache_clear()
    upstream = await make_upstream(server_context(certificate))
    chunks = [(0, content("<")), (60, content("x" * 40_000)), *at_once(*TAIL)]
    upstream.answers = [answer_type(chunks=chunks)]
    for _ in range(2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, len(got.settled.text)) == ("repetition", 40_001)
    upstream.answers = [answer_type(chunks=[(0, content("a")), (60, content("b")), *at_once(*TAIL)])]
    for _ in range(2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, got.settled.text) == ("", "ab")
        assert got.settled.receipt.first_token_clock == "kernel"
    assert upstream.connections == 3
    tls.client_context.cache_clear()


async def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_request(
    make_upstream: Any, ask: Any, certificate: Path
) -> None:
    tls.client_context.cache_clear()
    upstream = await make_upstream(server_context(certificate))
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "tls_failed")
    assert "not trusted" in receipt.message
    assert upstream.requests == []


async def test_tls_to_a_plain_endpoint_fails_as_tls(ask: Any) -> None:
    async def complain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        receipt = (await ask(f"https://127.0.0.1:{port}/v1")).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "tls_failed")


async def test_proxies_are_used_but_never_for_loopback(
    upstream: Any, make_upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy answers itself; that it got the request for the other host is what counts."""
    proxy = await make_upstream()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    proxy.answers = [answer_type(chunks=[(0, content("via")), (60, content(" proxy")), *at_once(*TAIL)])]
    upstream.answers = [answer_type(chunks=at_once(content("direct"), *TAIL))]
    got = await ask("http://models.example:8000/v1", key=KEY)
    assert (got.settled.receipt.reason, got.settled.text) == ("", "via proxy")
    assert (got.settled.receipt.first_token_clock, got.settled.receipt.usage_final) == ("loop", True)
    assert proxy.requests[0][0].startswith(b"POST http://models.example:8000/v1/chat/completions")
    assert (await ask(upstream.base_url)).settled.text == "direct"
    assert (len(proxy.requests), len(upstream.requests)) == (1, 1)
    monkeypatch.setenv("NO_PROXY", "models.invalid")
    # Another name than before: the way to a host is chosen once.
    assert (await ask("http://models.invalid/v1")).settled.receipt.reason == "name_not_resolved"
    assert len(proxy.requests) == 1


async def test_through_a_proxy_a_call_can_be_cut_stopped_and_refused(
    make_upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = await make_upstream()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    proxy.answers = [answer_type(chunks=at_once(content("half")), end="abort_chunked")]
    cut = (await ask("http://models.example/v1")).settled.receipt
    assert (cut.status, cut.reason) == (pb.CALL_STATUS_FAILED, "stream_cut")
    proxy.answers = [answer_type(chunks=at_once(content("half")), end="hang")]
    idle = (await ask("http://models.example/v1", idle_s=0.3)).settled.receipt
    assert (idle.status, idle.reason) == (pb.CALL_STATUS_FAILED, "idle_timeout")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free.getsockname()[1]}")
    refused = (await ask("http://other.example/v1")).settled.receipt
    assert (refused.status, refused.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "connect_failed")
    assert len(proxy.requests) == 2
