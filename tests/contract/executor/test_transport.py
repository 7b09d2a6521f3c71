"""The transport against a scripted endpoint: ends, guards, keep-alive, and never a second request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor import connection, pool, reads
from srbench_executor.call import Call, Cut
from srbench_kit.completion import read_answer

from tests.contract.executor.streams import STOP, TAIL, USAGE, at_once, content, evidence
from tests.waiting import EARLY_S, until_async


@dataclass
class Moment:
    """When the endpoint has written so many pieces, and the call has read so many bytes, `then` happens."""

    upstream: Any
    written: int
    heard: int
    then: Callable[[Call], object]
    waiting: asyncio.Task[None] | None = None

    def watch(self, call: Call) -> None:
        read = 0
        on_body = call.on_body

        def noted(data: bytes, *more: Any) -> None:
            nonlocal read
            on_body(data, *more)
            read += len(data)

        async def wait() -> None:
            await until_async(lambda: len(self.upstream.written_ns) >= self.written and read >= self.heard)
            self.then(call)

        call.on_body = noted  # type: ignore[method-assign]
        self.waiting = asyncio.ensure_future(wait())


def time_is_up(call: Call) -> None:
    call._deadline = 0.0
    call._tick()


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


async def test_after_the_marker_a_hanging_connection_is_not_waited_for(upstream: Any, ask: Any, answer_type: Any) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL), end="hang")]
    receipt = (await ask(upstream.base_url, total_s=600, idle_s=600)).settled.receipt
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, "", True)


async def test_a_deadline_after_the_finish_reason_keeps_the_answer_without_final_usage(
    upstream: Any, ask: Any, answer_type: Any
) -> None:
    upstream.answers = [answer_type(chunks=at_once(content("x"), STOP), end="hang")]
    # Once all has been heard that comes, the time is up.
    over = Moment(upstream, written=2, heard=len(content("x") + STOP), then=time_is_up)
    receipt = (await ask(upstream.base_url, before=over.watch)).settled.receipt
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, "", False)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the first token is never read by itself."""
    monkeypatch.setattr(connection, "LATE_AFTER_NS", 0)
    monkeypatch.setattr(reads, "LATE_S", 3600.0)
    monkeypatch.setattr(reads, "CROWD", 0)


async def test_what_lies_unread_at_a_deadline_is_part_of_the_answer(
    upstream: Any, ask: Any, answer_type: Any, unread: None
) -> None:
    upstream.answers = [answer_type(chunks=[(0, content("one ")), (0.05, content("two"))], end="hang")]
    over = Moment(upstream, written=2, heard=len(content("one ")), then=time_is_up)
    got = await ask(upstream.base_url, before=over.watch)
    assert got.settled.receipt.reason == "deadline_exceeded"
    assert got.settled.text == "one two"
    assert b"two" in evidence(got).body


async def test_an_answer_that_is_over_unread_is_whole_when_its_call_is_stopped(
    upstream: Any, ask: Any, answer_type: Any, unread: None
) -> None:
    upstream.answers = [answer_type(chunks=[(0, content("one ")), (0.05, content("two") + b"".join(TAIL))])]
    cut = Cut(pb.CALL_STATUS_CANCELLED, "cancelled", "the run was cancelled")
    later = Moment(upstream, written=2, heard=len(content("one ")), then=lambda call: call.stop(cut))
    receipt = (await ask(upstream.base_url, before=later.watch)).settled.receipt
    assert (receipt.status, receipt.reason, receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, "", True)


@pytest.mark.parametrize(("total_s", "idle_s", "reason"), [(0.4, 600, "deadline_exceeded"), (600, 0.4, "idle_timeout")])
@pytest.mark.parametrize("chunks", [[], [(0.0, content("half"))]])
async def test_deadlines_end_a_call_before_and_after_its_headers(
    upstream: Any, ask: Any, answer_type: Any, total_s: float, idle_s: float, reason: str, chunks: Any
) -> None:
    gate = None if chunks else asyncio.Event()
    upstream.answers = [answer_type(chunks=chunks, end="hang", gate=gate)]
    began = time.monotonic()
    receipt = (await ask(upstream.base_url, total_s=total_s, idle_s=idle_s)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_FAILED, reason)
    assert time.monotonic() - began >= 0.4 - EARLY_S


async def test_a_comment_is_a_sign_of_life(upstream: Any, ask: Any, answer_type: Any) -> None:
    chunks = [(20.0, b": still here\n\n") for _ in range(3)]
    upstream.answers = [answer_type(chunks=[*chunks, *at_once(content("x"), *TAIL)])]
    quiet_s: list[float] = []

    def watch(call: Call) -> None:
        on_body = call.on_body

        def noted(*piece: Any) -> None:
            call._activity -= 1000
            on_body(*piece)
            quiet_s.append(call.quiet_s)

        call.on_body = noted

    assert (await ask(upstream.base_url, idle_s=600, total_s=600, before=watch)).settled.receipt.reason == ""
    assert len(quiet_s) >= 4
    assert max(quiet_s) < 1000


@pytest.mark.parametrize("headers_sent", [True, False])
async def test_a_stop_is_at_once_even_before_headers(upstream: Any, ask: Any, answer_type: Any, headers_sent: bool) -> None:
    gate = None if headers_sent else asyncio.Event()
    upstream.answers = [answer_type(chunks=at_once(content("half")) if headers_sent else [], end="hang", gate=gate)]

    def stop_soon(call: Call) -> None:
        cut = Cut(pb.CALL_STATUS_CANCELLED, "cancelled", "the run was cancelled")

        def stop() -> None:
            call.stop(cut)
            assert call.ended.done()
            ended.append(call)

        asyncio.get_running_loop().call_later(0.2, stop)

    ended: list[Call] = []
    receipt = (await ask(upstream.base_url, total_s=600, idle_s=600, before=stop_soon)).settled.receipt
    assert len(ended) == 1, "the call had ended when `stop` returned"
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


@contextlib.contextmanager
def swallowing() -> Iterator[int]:
    """The port of a listener whose queue is full: the kernel answers no further connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as clients:
        for _ in range(2):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def test_an_address_that_answers_nothing_does_not_hide_the_next_one(
    upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    real = pool._open_one

    async def noted(address: Any) -> socket.socket:
        tried.append(address[1][1])
        return await real(address)

    with swallowing() as silent:

        async def lead(host: str, port: int) -> Any:
            return [(socket.AF_INET, ("127.0.0.1", each)) for each in (silent, upstream.port)]

        monkeypatch.setattr(pool, "lookup", lead)
        monkeypatch.setattr(pool, "_open_one", noted)
        upstream.answers = [answer_type(chunks=at_once(content("x"), *TAIL), chunked=False)]
        for _ in range(2):
            assert (await ask("http://model.example/v1")).settled.text == "x"
    # What answered is tried first from then on.
    assert tried == [silent, upstream.port, upstream.port]


async def test_the_last_address_that_refuses_is_the_reason(
    ask: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lead(host: str, port: int) -> Any:
        return [(socket.AF_INET, ("127.0.0.1", 9)), (socket.AF_INET6, ("::1", 9, 0, 0))]

    monkeypatch.setattr(pool, "lookup", lead)
    receipt = (await ask("http://model.example/v1")).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "connect_failed")


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%1", "::ffff:169.254.169.254", "100.100.100.200"])
async def test_a_name_never_leads_to_a_metadata_address(
    upstream: Any, ask: Any, answer_type: Any, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    port = int(upstream.base_url.removesuffix("/v1").rpartition(":")[2])
    good: list[str] = []
    real = pool.lookup

    async def lead(host: str, port: int) -> Any:
        found = [address, *good] if host == "model.example" else []
        return [(socket.AF_INET, (each, port)) for each in found] or await real(host, port)

    monkeypatch.setattr(pool, "lookup", lead)
    refused = (await ask(f"http://model.example:{port}/v1")).settled.receipt
    assert (refused.status, refused.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "name_not_resolved")
    assert "metadata address" in refused.message
    assert upstream.requests == []
    good.append("127.0.0.1")
    upstream.answers = [answer_type(chunks=[(0, content("B")), (0, STOP)])]
    assert (await ask(f"http://model.example:{port}/v1")).settled.receipt.status == pb.CALL_STATUS_COMPLETED


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
