"""The one model client that upstream's code gets: every request leaves once, and what cannot be gone on from ends it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from srbench_kit import tau3_worker as worker

TEXT = {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}


class Endpoint(BaseHTTPRequestHandler):
    """Answers with `answer`; keeps what it was asked."""

    answer: ClassVar[tuple[int, bytes]] = (200, b"")
    asked: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.headers["authorization"], body))
        status, data = self.answer
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def endpoints() -> Iterator[dict[str, dict[str, str]]]:
    Endpoint.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    yield {role: {"base_url": url, "api_key": f"token-{role}", "model": role} for role in ("subject", "simulator")}
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_request_leaves_once_with_the_token_of_its_role(endpoints: dict[str, dict[str, str]]) -> None:
    Endpoint.answer = (200, json.dumps(TEXT).encode())
    ask = worker.caller(endpoints, 10)
    messages = [{"role": "user", "content": "Hi"}]
    reply = ask(model=worker.USER, messages=messages, num_retries=3, seed=1, temperature=0.0)
    assert (reply.choices[0].message.content, reply.get("usage").prompt_tokens) == ("Hello.", 3)
    assert reply.choices[0].message.tool_calls is None
    assert Endpoint.asked == [("Bearer token-simulator", {"model": "simulator", "messages": messages})]
    ask(model=worker.AGENT, messages=messages, tools=[{"type": "function"}])
    assert Endpoint.asked[1][1]["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"", "http_500"),
        (401, b'{"error": {"code": "deadline_exceeded", "message": "the time is over"}}', "deadline_exceeded"),
        (200, b"no JSON", "bad_reply"),
        (200, b'{"choices": []}', "bad_reply"),
    ],
)
def test_an_answer_that_is_no_reply_ends_it_and_is_not_asked_for_again(
    endpoints: dict[str, dict[str, str]], status: int, body: bytes, reason: str
) -> None:
    Endpoint.answer = (status, body)
    with pytest.raises(worker.Ended) as caught:
        worker.caller(endpoints, 10)(model=worker.AGENT, messages=[])
    assert (caught.value.role, caught.value.reason) == ("subject", reason)
    assert len(Endpoint.asked) == 1


def test_an_endpoint_that_is_gone_ends_it() -> None:
    gone = {"subject": {"base_url": "http://127.0.0.1:9/v1", "api_key": "t", "model": "m"}}
    with pytest.raises(worker.Ended) as caught:
        worker.caller(gone, 10)(model=worker.AGENT, messages=[])
    assert caught.value.reason == "endpoint_lost"


def call(arguments: str, name: str = "get") -> dict[str, Any]:
    message = {"content": None, "tool_calls": [{"id": "1", "function": {"name": name, "arguments": arguments}}]}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"choices": [{"message": {"content": " \n"}, "finish_reason": "stop"}]}, "empty_reply"),
        ({"choices": [{"message": {"content": "so"}, "finish_reason": "length"}]}, "output_limit"),
        (call("{broken"), "bad_tool_call"),
        (call("[1]"), "bad_tool_call"),
        (call("{}", name=""), "bad_tool_call"),
    ],
)
def test_what_upstream_would_break_down_at_is_told_as_a_fault(reply: dict[str, Any], reason: str) -> None:
    with pytest.raises(worker.Ended) as caught:
        worker.usable("subject", reply)
    assert caught.value.reason == reason
    assert reason in worker.FAULTS


def test_no_exception_handler_of_upstream_catches_what_ends_a_conversation() -> None:
    assert not issubclass(worker.Ended, Exception)
    assert not issubclass(worker.JudgeNeeded, Exception)


def test_calls_with_arguments_are_handed_on(endpoints: dict[str, dict[str, str]]) -> None:
    reply = worker.usable("subject", call('{"id": 7}'))
    (tool,) = reply.choices[0].message.tool_calls
    assert (tool.function.name, json.loads(tool.function.arguments)) == ("get", {"id": 7})


def test_records_leave_out_what_the_ledger_knows_better() -> None:
    record = {"messages": [{"role": "user", "content": "x", "raw_data": {}, "usage": {}, "cost": 1.0}], "agent_cost": 1}
    assert worker.plain(record) == {"messages": [{"role": "user", "content": "x"}]}
