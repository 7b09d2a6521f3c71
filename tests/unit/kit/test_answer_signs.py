"""Names and shapes by which compatible endpoints differ: each was reported against another tool that did not know it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench_kit.completion import Completion, read_answer

SSE = [("content-type", "text/event-stream")]
JSON = [("content-type", "application/json")]
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def choice(**fields: Any) -> bytes:
    return event({"choices": [{"index": 0} | fields]})


def delta(**fields: Any) -> bytes:
    return choice(delta=fields)


STOP = choice(delta={}, finish_reason="stop")
WHOLE = {"choices": [{"message": {"content": "B"}, "finish_reason": "stop"}], "usage": USAGE}


def read(*parts: bytes, headers: Any = SSE, status: int = 200, clean: bool = True) -> Completion:
    return read_answer(status, headers, b"".join(parts), clean_end=clean)


@pytest.mark.parametrize(
    "error",
    [
        {"object": "error", "message": "worker lost", "type": "InternalServerError", "code": 500},
        {"type": "error", "message": "worker lost", "code": "server_error"},
        {"type": "overloaded_error", "message": "worker lost"},
        {"code": 40303, "message": "worker lost"},
        {"detail": "worker lost"},
        {"id": "", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "worker lost"}},
        {
            "choices": [
                {"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "worker lost"}}
            ]
        },
    ],
)
@pytest.mark.parametrize("said", [b"", delta(content="The ans")])
def test_an_error_is_one_under_every_name_that_servers_give_it(error: dict[str, Any], said: bytes) -> None:
    got = read(said, event(error), DONE)
    assert (got.reason, got.message) == ("upstream_error", "worker lost")
    assert (got.usage_final, got.output_complete) == (False, False)


@pytest.mark.parametrize(
    "harmless",
    [
        {"type": "ping"},
        {"object": "chat.completion.chunk", "id": "x"},
        {"code": 0, "message": "success"},
        {"code": "200", "msg": "ok"},
        {"error": None, "detail": ""},
        {"choices": None, "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"choices": [], "prompt_filter_results": [{"content_filter_results": {}}]},
    ],
)
def test_what_reports_no_error_is_none(harmless: dict[str, Any]) -> None:
    assert read(event(harmless), delta(content="B"), STOP, DONE).reason == ""


@pytest.mark.parametrize("finish", ["error", "abort", "network_error", "insufficient_system_resource", "Cancelled"])
def test_a_server_that_gave_up_is_no_answer(finish: str) -> None:
    got = read(delta(content="B"), choice(delta={}, finish_reason=finish), DONE)
    assert (got.reason, got.finish_reason) == ("upstream_error", finish)


@pytest.mark.parametrize("finish", ["sensitive", "SPII", "guardrail_intervened", "content_filtered", "refusal"])
def test_filters_have_many_names(finish: str) -> None:
    assert read(delta(content="B"), choice(delta={}, finish_reason=finish), DONE).reason == "content_filter"


@pytest.mark.parametrize("nothing", ["null", "None", ""])
def test_a_finish_reason_that_says_none_ends_nothing(nothing: str) -> None:
    half = choice(delta={"content": "The ans"}, finish_reason=nothing)
    assert read(half, clean=False).reason == "stream_cut"
    got = read(half, STOP, choice(delta={}, finish_reason=nothing), DONE)
    assert (got.reason, got.finish_reason) == ("", "stop")


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"id": "r", "usage": USAGE}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
    ],
)
def test_usage_is_found_beside_in_and_under_the_choice(last: dict[str, Any]) -> None:
    got = read(delta(content="B"), event(last), DONE)
    assert (got.usage, got.usage_final) == (USAGE, True)


@pytest.mark.parametrize("index", [None, "0", 0])
def test_the_first_choice_may_be_numbered_oddly(index: Any) -> None:
    assert read(event({"choices": [{"index": index, "delta": {"content": "B"}}]}), STOP, DONE).text == "B"


@pytest.mark.parametrize(
    "thought",
    [
        {"thinking": "hm"},
        {"reasoning_text": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "x"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_content": "", "reasoning": "hm"},
    ],
)
def test_reasoning_has_many_names_and_is_counted_once(thought: dict[str, Any]) -> None:
    got = read(delta(content="", **thought), delta(content="B"), STOP, DONE)
    assert (got.text, got.reasoning) == ("B", "hm")


@pytest.mark.parametrize("odd", [{"thinking": True}, {"reasoning": {"effort": "low"}}, {"reasoning_details": [3, {}]}])
def test_what_is_no_text_is_no_reasoning(odd: dict[str, Any]) -> None:
    got = read(delta(content="B", **odd), STOP, DONE)
    assert (got.reason, got.text, got.reasoning) == ("", "B", "")


@pytest.mark.parametrize("empty", [{}, None])
def test_a_whole_message_after_its_deltas_is_not_said_twice(empty: Any) -> None:
    last = choice(delta=empty, message={"role": "assistant", "content": "42"}, finish_reason="stop")
    assert read(delta(role="assistant"), delta(content="4"), delta(content="2"), last, DONE).text == "42"
    assert read(delta(role="assistant"), last, DONE).text == "42"


def test_the_shape_of_a_plain_completion_is_read() -> None:
    assert read(choice(text="4"), choice(text="2", finish_reason="stop"), DONE).text == "42"


def piece(index: int, name: str = "", arguments: str = "", **fields: Any) -> bytes:
    return delta(tool_calls=[{"index": index, "function": {"name": name, "arguments": arguments}} | fields])


def test_parallel_calls_under_one_index_stay_apart() -> None:
    got = read(piece(0, "f", "{}", id="a"), piece(0, "g", '{"x":', id="b"), piece(0, "", "1}"), STOP, DONE)
    assert [(call.id, call.name, call.arguments) for call in got.tool_calls] == [("a", "f", "{}"), ("b", "g", '{"x":1}')]


def test_a_name_that_comes_with_every_piece_is_one_name() -> None:
    got = read(piece(0, "find", '{"x"', id="a"), piece(0, "find", ":1}", id="a"), STOP, DONE)
    assert [(call.name, call.arguments) for call in got.tool_calls] == [("find", '{"x":1}')]


@pytest.mark.parametrize("beat", [b"event: ping\ndata: 2024-04-27 01:35:43\n\n", b"event: keepalive\ndata: null\n\n"])
def test_events_that_keep_a_connection_open_may_hold_anything(beat: bytes) -> None:
    assert read(beat, delta(content="B"), beat, STOP, DONE).reason == ""


def test_the_marker_may_stand_in_quotes() -> None:
    assert read(delta(content="B"), b'data: "[DONE]"\n\n').usage_final


@pytest.mark.parametrize("lead", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_a_document_under_the_type_of_a_stream_is_read(lead: bytes) -> None:
    got = read(lead, json.dumps(WHOLE).encode())
    assert (got.reason, got.text, got.usage, got.usage_final) == ("", "B", USAGE, True)
    failed = read(lead, b'{"error":{"message":"model not loaded"}}')
    assert (failed.reason, failed.message) == ("upstream_error", "model not loaded")


@pytest.mark.parametrize("lead", [b"", b"\n", b": hi\n\n", b"event: open\n\n", b"id: 1\n"])
def test_a_stream_under_the_type_of_a_document_is_read(lead: bytes) -> None:
    got = read(lead, delta(content="B"), STOP, DONE, headers=JSON)
    assert (got.reason, got.text, got.usage_final) == ("", "B", True)


def test_a_document_may_begin_with_a_byte_order_mark() -> None:
    assert read(b"\xef\xbb\xbf" + json.dumps(WHOLE).encode(), headers=JSON).text == "B"


def test_a_type_that_a_proxy_wrote_twice_is_one() -> None:
    twice = [("content-type", "text/event-stream; charset=utf-8, text/event-stream")]
    assert read(delta(content="B"), STOP, DONE, headers=twice).text == "B"


def test_a_refusal_may_be_worded_in_an_event() -> None:
    got = read(event({"error": {"message": "slow down"}}), status=429)
    assert (got.reason, got.message, got.generation_seen) == ("rate_limited", "HTTP 429: slow down", False)


def test_names_of_a_router_are_utf_8_whatever_http_says() -> None:
    headers = [*SSE, ("x-vsr-selected-decision", "数学".encode().decode("latin-1")), ("x-vsr-selected-model", "caf\xe9")]
    got = read(delta(content="B"), STOP, DONE, headers=headers)
    assert (got.decision, got.selected_model) == ("数学", "café")


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"code": "content_policy_violation", "type": "invalid_request_error"},
        {"code": "data_inspection_failed"},
        {"code": 1301},
    ],
)
def test_a_prompt_that_a_filter_kept_back_is_no_refused_parameter(error: dict[str, Any]) -> None:
    body = json.dumps({"error": {"message": "The prompt was filtered.", "param": "prompt"} | error}).encode()
    got = read(body, headers=JSON, status=400)
    assert (got.reason, got.message) == ("http_error", "HTTP 400: The prompt was filtered.")


@pytest.mark.parametrize("code", [[1301], "bad", None, True])
def test_other_refusals_are_not_taken_for_a_filters(code: Any) -> None:
    body = json.dumps({"error": {"code": code, "param": "prompt"}}).encode()
    assert read(body, headers=JSON, status=400).reason == "parameter_refused"


@pytest.mark.parametrize(
    ("name", "reason"), [("stream_options", "parameter_refused"), ("stop", "parameter_refused"), ("messages", "http_error")]
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_field_that_a_validator_refuses_is_named(name: str, reason: str, wrapped: bool) -> None:
    detail = {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}
    body: dict[str, Any] = {"object": "error", "message": detail, "code": 3051} if wrapped else detail
    got = read(json.dumps(body).encode(), headers=JSON, status=422)
    assert (got.reason, got.message) == (reason, f"HTTP 422: '{name}': Extra inputs are not permitted")


def test_a_part_of_content_without_a_type_is_text() -> None:
    assert read(delta(content=[{"text": "4"}, {"type": "text", "text": "2"}]), STOP, DONE).text == "42"


def test_a_mark_before_each_piece_loses_nothing() -> None:
    mark = b"\xef\xbb\xbf"
    assert read(mark + delta(content="4"), mark + delta(content="2"), mark + STOP, mark + DONE).text == "42"


def test_a_control_character_inside_a_text_is_read() -> None:
    assert read(b'data: {"choices":[{"delta":{"content":"a\tb"}}]}\n\n', STOP, DONE).text == "a\tb"


@pytest.mark.parametrize(
    ("why", "passed_on"),
    [
        ("connection termination", True),
        ("remote reset", True),
        ("local reset", True),
        ("protocol error", True),
        ("connection failure, transport failure reason: delayed connect error: 111", False),
        ("remote connection failure", False),
        ("connection timeout", False),
        ("overflow", False),
        ("remote refused stream reset", False),
    ],
)
def test_envoys_503_may_come_after_the_model_has_begun(why: str, passed_on: bool) -> None:
    body = f"upstream connect error or disconnect/reset before headers. reset reason: {why}".encode()
    got = read(body, headers=[("content-type", "text/plain")], status=503)
    assert (got.reason, got.passed_on) == ("overloaded", passed_on)
    assert not read(b"no healthy upstream", headers=[("content-type", "text/plain")], status=503).passed_on
