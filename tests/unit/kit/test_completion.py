"""What a completion says: channels, ends, usage, errors and strange shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench_kit.completion import read_answer

from tests.unit.kit.chat_streams import DONE, JSON, SSE, STOP, USAGE, USED, delta, event, read


def test_a_plain_stream_is_read_with_its_usage_and_model() -> None:
    got = read(delta(role="assistant", content=""), delta(content="4"), delta(content="2"), STOP, USED, DONE)
    assert (got.reason, got.text, got.finish_reason, got.output_complete) == ("", "42", "stop", True)
    assert (got.usage, got.usage_final, got.model) == (USAGE, True, "m")
    assert (got.content_chars, got.reasoning_chars) == (2, 0)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_apart(name: str) -> None:
    got = read(delta(content=None, **{name: "Check"}), delta(**{name: " units."}), delta(content="B"), STOP, DONE)
    assert (got.text, got.reasoning, got.reasoning_chars, got.content_chars) == ("B", "Check units.", 12, 13)


def test_both_reasoning_fields_with_the_same_words_are_one_piece() -> None:
    assert read(delta(reasoning="a", reasoning_content="a"), STOP, DONE).reasoning == "a"


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("<think>why</think>\n\nB", "B", "why"),
        ("why</think>B", "B", "why"),
        ("<think>open", "", "open"),
        ("a<think>x</think>b<think>y</think>c", "abc", "xy"),
        ("first</think>second</think>last", "last", "firstsecond"),
        ("no tags ", "no tags ", ""),
        ("<think></think>", "", ""),
        ("a<think>b", "", "b"),
        ("2 < 3 <thinking>", "2 < 3 <thinking>", ""),
    ],
)
def test_think_spans_are_reasoning(content: str, text: str, reasoning: str) -> None:
    got = read(*(delta(content=letter) for letter in content), STOP, DONE)
    assert (got.text, got.reasoning) == (text, reasoning)


def test_content_parts_are_read_by_type() -> None:
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "carry the one"}]}]
    got = read(delta(content=thinking), delta(content=[{"type": "text", "text": "12"}]), STOP, DONE)
    assert (got.text, got.reasoning, got.reason) == ("12", "carry the one", "")


def test_a_refusal_is_no_answer_text() -> None:
    got = read(delta(refusal="I cannot "), delta(refusal="help."), STOP, DONE)
    assert (got.text, got.refusal, got.reason, got.finish_reason) == ("", "I cannot help.", "", "stop")


def test_tool_calls_are_put_together_and_never_repaired() -> None:
    first = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": ""}}]
    more = [{"index": 0, "function": {"arguments": '{"city": "Par'}}]
    got = read(delta(content=None, tool_calls=first), delta(tool_calls=more), delta("tool_calls"), DONE)
    (call,) = got.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1", "lookup", '{"city": "Par')
    assert (got.finish_reason, got.reason) == ("tool_calls", "")


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [None, {"function": None}, {"function": {"arguments": None}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": 7}]},
        {"choices": [None, 3]},
        {"usage": None},
        {"usage": []},
        {"model": 5, "error": None},
    ],
)
def test_null_and_odd_members_change_nothing(odd: dict[str, Any]) -> None:
    got = read(delta(content="B"), event(odd), STOP, USED, DONE)
    assert (got.reason, got.text, got.usage) == ("", "B", USAGE)


@pytest.mark.parametrize(
    "odd", [b"data: {\n\n", b"data: 12\n\n", b"data: null\n\n", b"data: [1]\n\n", event({"choices": 3})]
)
def test_an_event_that_is_no_chunk_is_a_protocol_error_and_the_text_is_kept(odd: bytes) -> None:
    got = read(delta(content="B"), odd, STOP, DONE)
    assert (got.reason, got.text) == ("protocol_error", "B")


def test_content_of_another_type_is_refused_and_never_written_out() -> None:
    got = read(delta(content={"text": "B"}), STOP, DONE)
    assert (got.reason, got.text) == ("protocol_error", "")
    assert "content is an object" in got.message


def test_other_choices_are_left_out() -> None:
    assert read(delta(content="no", index=1), delta(content="yes"), STOP, delta("length", index=1), DONE).text == "yes"


def test_usage_is_merged_field_by_field_and_never_added_up() -> None:
    chunks = [
        {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None},
        {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}},
        {
            "completion_tokens": 3,
            "prompt_tokens": None,
            "prompt_tokens_details": {"cached_tokens": None, "audio_tokens": 0},
        },
    ]
    got = read(delta(content="x"), *(event({"choices": [], "usage": usage}) for usage in chunks), STOP, DONE)
    details = {"cached_tokens": 4, "audio_tokens": 0}
    assert got.usage == {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": details}


def test_a_finish_reason_and_a_clean_end_are_an_end() -> None:
    got = read(delta(content="Paris"), STOP, USED)
    assert (got.reason, got.text, got.usage_final) == ("", "Paris", True)


def test_a_finish_reason_before_a_cut_is_an_end_but_its_usage_is_not_final() -> None:
    got = read(delta(content="Paris"), STOP, USED, clean=False)
    assert (got.reason, got.usage_final, got.usage) == ("", False, USAGE)


def test_the_marker_without_a_finish_reason_leaves_it_unknown() -> None:
    got = read(delta(content="Paris"), DONE)
    assert (got.reason, got.finish_reason, got.output_complete) == ("", "", True)


@pytest.mark.parametrize("clean", [True, False])
def test_no_sign_of_an_end_is_a_cut(clean: bool) -> None:
    got = read(delta(content="The answer is (B"), clean=clean)
    assert (got.reason, got.text, got.usage, got.output_complete) == ("stream_cut", "The answer is (B", None, False)


@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_inside_an_event_is_a_cut_and_no_protocol_error(clean: bool) -> None:
    got = read(delta(content="The answer is"), delta(content=" (B")[:-20], clean=clean)
    assert (got.reason, got.text) == ("stream_cut", "The answer is")
    assert read(delta(content="B"), STOP, USED[:-20], clean=clean).reason == ""


def test_only_the_marker_is_a_protocol_error() -> None:
    got = read(DONE)
    assert (got.reason, got.usage, got.text) == ("protocol_error", None, "")


@pytest.mark.parametrize("nothing", [{"role": "assistant"}, {"role": "assistant", "content": ""}, {"content": None}, {}])
def test_a_choice_that_says_nothing_before_the_marker_is_one_too(nothing: dict[str, Any]) -> None:
    """So `llama_cpp.server` ends a stream when another request comes."""
    got = read(delta(**nothing), DONE)
    assert (got.reason, got.text, got.output_complete) == ("protocol_error", "", False)
    assert read(delta(**nothing), USED, DONE).reason == "protocol_error"
    assert read(document(choices=[{"index": 0, "message": nothing}]), headers=JSON).reason == "protocol_error"


@pytest.mark.parametrize(
    "said", [{"content": "B"}, {"reasoning": "hm"}, {"refusal": "No."}, {"tool_calls": [{"index": 0}]}]
)
def test_whatever_a_choice_says_makes_it_an_answer(said: dict[str, Any]) -> None:
    assert read(delta(**said), DONE).reason == ""


def test_an_empty_answer_that_says_stop_is_an_answer() -> None:
    assert read(delta(role="assistant", content=""), STOP, DONE).reason == ""


def test_an_unfinished_last_event_counts() -> None:
    assert read(delta(content="end"), STOP, USED[:-2]).usage == USAGE
    assert read(delta(content="end"), STOP[:-1]).finish_reason == "stop"


def test_what_follows_the_marker_does_not() -> None:
    assert read(delta(content="a"), STOP, b"data: [DONE] \r\n\r\n", delta(content="b")).text == "a"


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_a_cut_by_length_is_completed_and_not_whole(finish: str) -> None:
    got = read(delta(content="B"), delta(finish), DONE)
    assert (got.reason, got.output_complete) == ("", False)


def test_a_withheld_answer_is_a_failure_of_its_own_name() -> None:
    got = read(delta(content="B"), delta("content_filter"), USED, DONE)
    assert (got.reason, got.usage, got.usage_final) == ("content_filter", USAGE, True)


def test_unknown_finish_reasons_are_ends() -> None:
    assert read(delta(content="B"), delta("eos"), DONE).reason == ""


@pytest.mark.parametrize(
    "error",
    [
        event({"error": {"message": "worker lost", "type": "server_error", "code": 500}}),
        event({"error": "worker lost"}),
        b'event: error\ndata: {"message": "worker lost"}\n\n',
        b"event: error\ndata: worker lost\n\n",
        event({"type": "error", "error": {"message": "worker lost"}}),
    ],
)
def test_an_error_in_the_stream_is_an_upstream_error(error: bytes) -> None:
    got = read(delta(content="The ans"), error, DONE)
    assert (got.reason, got.message, got.text, got.usage) == ("upstream_error", "worker lost", "The ans", None)


def test_halves_of_a_pair_in_two_events_are_joined() -> None:
    stream = b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":"' + half + b'"},"finish_reason":null}]}\n\n'
        for half in (b"ok \\ud83d", b"\\ude00!", b"\\ud83d?")
    )
    got = read(stream, STOP, DONE)
    assert got.text == "ok \U0001f600!\ufffd?"
    got.text.encode()


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    got = read(b'data: {"choices":[{"index":0,"delta":{"content":"a\xffb"}}]}\n\n', STOP, DONE)
    assert got.text == "a\ufffdb"


def test_numbers_beyond_64_bits_and_nan_are_read() -> None:
    got = read(b'data: {"choices":[],"usage":{"prompt_tokens":NaN,"x":1}}\n\n', delta(content="B"), STOP, DONE)
    assert got.reason == ""
    assert json.loads(got.usage_json) == {"prompt_tokens": None, "x": 1}


@pytest.mark.parametrize("depth", [500, 2000, 200_000])
def test_deep_nesting_raises_nothing(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"1}")):
        deep = opening * depth + (b"1" if opening == b"[" else b"") + closing.replace(b"1}", b"}") * depth
        deep = deep.replace(b'"a":}', b'"a":1}', 1)
        for name in (b"usage", b"error", b"x_vsr_model_usage", b"choices", b"model"):
            read(b'data: {"' + name + b'":' + deep + b"}\n\n", DONE).usage_json  # noqa: B018
        read_answer(400, JSON, deep, clean_end=True)


def document(**changes: Any) -> bytes:
    message = {"role": "assistant", "content": "<think>hm</think>B", "refusal": None, "tool_calls": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"model": "m", "choices": [choice], "usage": USAGE} | changes).encode()


def test_a_json_document_is_read_like_a_stream() -> None:
    got = read(document(), headers=JSON)
    assert (got.reason, got.text, got.reasoning, got.finish_reason) == ("", "B", "hm", "stop")
    assert (got.usage, got.usage_final, got.model) == (USAGE, True, "m")


def test_a_cut_json_document_is_a_cut() -> None:
    assert read(document()[:-5], headers=JSON, clean=False).reason == "stream_cut"
    assert read(document()[:-5], headers=JSON).reason == "protocol_error"


def test_an_error_document_with_status_200_is_an_upstream_error() -> None:
    got = read(b'{"error":{"message":"model not loaded","code":404}}', headers=JSON)
    assert (got.reason, got.message) == ("upstream_error", "model not loaded")


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"choices":[]}'])
def test_a_document_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    assert read(body, headers=JSON).reason == "protocol_error"


def test_another_content_type_is_named() -> None:
    got = read(b"<!doctype html>", headers=[("content-type", "text/html")])
    assert got.reason == "protocol_error"
    assert "text/html" in got.message
    assert "no content type" in read(b"", headers=[]).message


@pytest.mark.parametrize(
    ("status", "body", "reason", "said"),
    [
        (500, b'{"error":{"message":"boom","code":500}}', "http_error", "HTTP 500: boom"),
        (
            400,
            b'{"error":{"message":"unknown field: stream_options"}}',
            "parameter_refused",
            "unknown field: stream_options",
        ),
        (400, b'{"error":{"message":"bad","param":"temperature"}}', "parameter_refused", "bad"),
        (422, b'{"detail":[{"msg":"extra field \'top_k\'"}]}', "parameter_refused", "top_k"),
        (400, b'{"error":{"message":"too long","param":"messages"}}', "http_error", "too long"),
        (400, b'{"error":{"message":"max_tokens","code":"context_length_exceeded"}}', "http_error", "max_tokens"),
        (401, b'{"error":{"message":"bad key"}}', "auth_refused", "bad key"),
        (403, b"", "auth_refused", "HTTP 403"),
        (404, b'{"object":"error","message":"no such model"}', "http_error", "no such model"),
        (429, b'{"error":{"message":"slow down"}}', "rate_limited", "slow down"),
        (503, b"", "overloaded", "HTTP 503"),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "overloaded", "busy"),
        (498, b"", "http_error", "HTTP 498"),
        (520, b"<html>", "http_error", "HTTP 520"),
        (599, b"[]", "http_error", "HTTP 599"),
        (307, b"", "http_error", "redirects are not followed"),
    ],
)
def test_an_http_error_has_a_reason_and_the_providers_words(status: int, body: bytes, reason: str, said: str) -> None:
    got = read(body, status=status, headers=JSON)
    assert (got.reason, got.usage, got.usage_final, got.text) == (reason, None, False, "")
    assert said in got.message


def test_a_long_error_is_shortened() -> None:
    got = read(json.dumps({"error": {"message": "x" * 9000}}).encode(), status=500, headers=JSON)
    assert len(got.message) < 600


def test_a_router_that_contradicts_itself_in_its_headers_is_not_taken_at_its_last_word() -> None:
    twice = [
        *SSE,
        ("x-vsr-model-usage", '{"calls":1}'), ("x-vsr-model-usage", '{"calls":2}'),
        ("x-vsr-inference-call-count", "1"), ("x-vsr-inference-call-count", "2"),
        ("x-vsr-selected-model", "a"), ("x-vsr-selected-model", "b"),
        ("x-vsr-config-hash", "h"), ("x-vsr-config-hash", "h"),
    ]  # fmt: skip
    got = read(delta(content="B"), STOP, DONE, headers=twice)
    assert (got.router_receipt, got.inference_call_count) == (b'{"calls":1}, {"calls":2}', None)
    assert (got.selected_model, got.config_hash) == ("a, b", "h")


def test_router_facts_come_from_headers_trailers_and_a_last_event() -> None:
    headers = [*SSE, ("x-vsr-selected-model", "small"), ("x-vsr-selected-decision", "math"), ("x-vsr-config-hash", "c1")]
    headers += [("x-vsr-inference-call-count", "2"), ("x-vsr-model-usage", '{"from":"header"}')]
    stream = [delta(content="B"), STOP, event({"choices": [], "x_vsr_model_usage": {"from": "event"}}), DONE]
    got = read(delta(content="B"), STOP, DONE, headers=headers)
    assert (got.selected_model, got.decision, got.config_hash, got.inference_call_count) == ("small", "math", "c1", 2)
    assert got.router_receipt == b'{"from":"header"}'
    assert read(*stream, headers=headers).router_receipt == b'{"from":"event"}'
    trailers = [("x-vsr-model-usage", '{"from":"trailer"}'), ("x-sr-bench-config-hash", "c2")]
    later = read(*stream, headers=headers, trailers=trailers)
    assert (later.router_receipt, later.config_hash) == (b'{"from":"trailer"}', "c2")
    assert read(DONE, headers=[*SSE, ("x-vsr-inference-call-count", "-1")]).inference_call_count is None
