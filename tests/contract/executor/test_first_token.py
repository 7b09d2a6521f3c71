"""When the first token and the first content came: by the kernel's stamps, told apart from all that comes before them.

The endpoint notes when it wrote what, on the same clock, so that a machine that stands still in between changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor.call import Call

from tests.contract.executor.streams import STOP, TAIL, at_once, content, event
from tests.waiting import PATIENCE_S

# The kernel's clock is read beside the monotonic one; between the two readings a busy machine may do something else.
SLIP_NS = 20_000_000
BUSY_S = 0.2


async def test_first_token_and_first_content_are_told_apart(upstream: Any, ask: Any, answer_type: Any) -> None:
    thought = event({"choices": [{"index": 0, "delta": {"reasoning": "hm"}}]})
    role = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    chunks = [(50, b": hi\n\n"), (50, role), (100, thought), (100, content("B")), (100, STOP), *at_once(*TAIL[1:])]
    upstream.answers = [answer_type(chunks=chunks)]
    got = await ask(upstream.base_url)
    receipt, sent_ns = got.settled.receipt, got.call.sent_ns
    _, _, thought_ns, content_ns, stop_ns, *_, last_ns = upstream.written_ns
    assert thought_ns - SLIP_NS < sent_ns + receipt.ttft_ns < content_ns
    assert content_ns - SLIP_NS < sent_ns + receipt.first_content_ns < stop_ns
    assert last_ns - SLIP_NS < sent_ns + receipt.latency_ns


async def test_content_inside_think_tags_is_no_first_content(upstream: Any, ask: Any, answer_type: Any) -> None:
    thoughts = [(0, content("<think>a")), (100, content("b</th")), (0, content("ink>\n"))]
    upstream.answers = [answer_type(chunks=[*thoughts, (100, content("B")), *at_once(*TAIL)])]
    got = await ask(upstream.base_url)
    receipt, sent_ns = got.settled.receipt, got.call.sent_ns
    _, second_ns, _, content_ns, *_ = upstream.written_ns
    assert sent_ns + receipt.ttft_ns < second_ns
    assert content_ns - SLIP_NS < sent_ns + receipt.first_content_ns


async def test_the_first_token_is_dated_by_the_kernel_while_the_loop_is_busy(ask: Any) -> None:
    endpoint = ThreadedEndpoint(content("first"), lambda _call: time.sleep(BUSY_S))
    got = await ask(endpoint.url, before=endpoint.meet)
    endpoint.finish()
    receipt, arrival_ns = got.settled.receipt, got.call.sent_ns + got.settled.receipt.ttft_ns
    assert receipt.first_token_clock == "kernel"
    assert endpoint.before_ns - SLIP_NS < arrival_ns < endpoint.after_ns + SLIP_NS
    assert receipt.first_token_lag_ns > BUSY_S * 1e9 - SLIP_NS


async def test_an_answer_that_lies_unread_when_the_time_is_up_is_an_answer(ask: Any) -> None:
    def time_is_up(call: Call) -> None:
        call._deadline = 0.0
        call._tick()

    endpoint = ThreadedEndpoint(b"".join([content("B"), *TAIL]), time_is_up)
    got = await ask(endpoint.url, before=endpoint.meet)
    endpoint.finish()
    receipt = got.settled.receipt
    assert (receipt.status, receipt.reason, got.settled.text) == (pb.CALL_STATUS_COMPLETED, "", "B")
    assert receipt.usage_final


class ThreadedEndpoint:
    """Writes `first`, from a thread of its own, while the caller's event loop is kept; `meanwhile` is called there once all
    of it has been written. The rest of an answer follows when `first` has been read."""

    def __init__(self, first: bytes, meanwhile: Callable[[Call], None]) -> None:
        self.call: Call | None = None
        self._first, self._meanwhile = first, meanwhile
        self.before_ns = self.after_ns = 0
        self._loop = asyncio.get_running_loop()
        self._busy, self._written, self._read = threading.Event(), threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def meet(self, call: Call) -> None:
        self.call = call

    def finish(self) -> None:
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            self._loop.call_soon_threadsafe(self._keep_busy)
            assert self._busy.wait(PATIENCE_S)
            self.before_ns = time.monotonic_ns()
            connection.sendall(self._first)
            self.after_ns = time.monotonic_ns()
            self._written.set()
            # Not while the loop is busy: the kernel joins what waits unread, and keeps the last stamp.
            assert self._read.wait(PATIENCE_S)
            with contextlib.suppress(OSError):
                connection.sendall(b"".join(TAIL))

    def _keep_busy(self) -> None:
        self._busy.set()
        assert self._written.wait(PATIENCE_S)
        assert self.call is not None
        self._meanwhile(self.call)
        self._look()

    def _look(self) -> None:
        if self.call is not None and (self.call.first.token_ns is not None or self.call.ended.done()):
            self._read.set()
        else:
            self._loop.call_later(0.005, self._look)
