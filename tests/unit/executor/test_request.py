"""What is sent: parameters, bodies, headers, where to, and when again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from srbench.v1 import plan_pb2, target_pb2
from srbench_executor import request
from srbench_executor.admission import LONGEST_WAIT_S, asked_wait_s, retry_after_s, spread_s, wait_s
from srbench_executor.exchange import Origin
from srbench_executor.pool import render
from srbench_kit.errors import InvalidInput
from srbench_kit.values import to_value


def test_a_targets_parameters_overlay_the_plans_and_a_null_removes() -> None:
    merged = request.parameters({"temperature": 0, "max_tokens": 5}, {"max_tokens": None, "max_completion_tokens": 9})
    assert merged == {"temperature": 0, "max_completion_tokens": 9}
    assert request.parameters({"stop": None}, {}) == {"stop": None}


@pytest.mark.parametrize(
    ("fields", "limit"),
    [({}, 7), ({"max_tokens": 5}, 5), ({"max_completion_tokens": 3, "max_tokens": 5}, 3), ({"max_tokens": True}, 7)],
)
def test_the_output_limit_is_what_the_request_says_or_the_runs(fields: dict[str, object], limit: int) -> None:
    assert request.output_token_limit(fields, 7) == limit  # type: ignore[arg-type]


def test_nothing_displaces_what_is_forced() -> None:
    target = target_pb2.Target(model="m")
    extra = {"model": "other", "stream": False, "messages": [], "tools": [1]}
    made = request.request_fields(target, {"temperature": 0}, ["x"], extra)  # type: ignore[arg-type]
    forced = {"model": "m", "messages": ["x"], "stream": True, "stream_options": {"include_usage": True}}
    assert made == {"temperature": 0, "tools": [1], **forced}


def test_messages_keep_their_shape_and_extra_members() -> None:
    message = plan_pb2.ChatMessage(role="tool", content=to_value([{"type": "text", "text": "x"}]))
    message.extra.CopyFrom(to_value({"tool_call_id": "c1"}))
    expected = [{"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "c1"}]
    assert request.chat_messages([message]) == expected


@pytest.mark.parametrize(
    ("url", "origin", "path", "host"),
    [
        ("http://a/v1", ("http", "a", 80), "/v1/chat/completions", "a"),
        ("https://a/v1/", ("https", "a", 443), "/v1/chat/completions", "a"),
        ("http://a:8000", ("http", "a", 8000), "/chat/completions", "a:8000"),
        ("http://[::1]:8000/v1", ("http", "::1", 8000), "/v1/chat/completions", "[::1]:8000"),
        ("https://a:443/v1", ("https", "a", 443), "/v1/chat/completions", "a"),
    ],
)
def test_where_a_base_url_leads(url: str, origin: tuple[str, str, int], path: str, host: str) -> None:
    found = request.endpoint(url)
    wanted = Origin(scheme=origin[0], host=origin[1], port=origin[2])
    assert (found.origin, found.path, found.host_header) == (wanted, path, host)


@pytest.mark.parametrize("url", ["", "a/v1", "ftp://a", "http://", "http://a:99999/v1"])
def test_a_base_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="base_url"):
        request.endpoint(url)


def test_a_mom_is_asked_for_its_debug_headers_and_told_what_is_expected() -> None:
    target = target_pb2.Target(model="m", kind=target_pb2.TARGET_KIND_MOM, config_hash="c", max_inference_calls=4)
    found = dict(request.headers(target, "h", "key-123", "s"))
    assert found["x-vsr-debug"] == "true"
    assert found["x-sr-bench-expected-config-hash"] == "c"
    assert found["x-sr-bench-max-inference-calls"] == "4"
    assert (found["x-session-id"], found["authorization"]) == ("s", "Bearer key-123")
    plain = dict(request.headers(target_pb2.Target(kind=1), "h", "", ""))
    assert set(plain) == {"host", "user-agent", "content-type", "accept", "accept-encoding"}


def test_sessions_are_the_same_for_the_same_case_and_unlike_any_other() -> None:
    assert request.session_id("r", "t", "c") == request.session_id("r", "t", "c")
    names = {
        request.session_id(*parts) for parts in (("r", "t", "c"), ("r2", "t", "c"), ("r", "t2", "c"), ("r", "t", "c2"))
    }
    assert len(names) == 4


@pytest.mark.parametrize("key", ["", "a\r\nx: y", "schl\u00fcssel", " padded", "tab\tkey"])
def test_a_key_that_no_header_can_carry_is_not_used(key: str) -> None:
    assert not request.usable_key(key)


def test_a_request_is_rendered_with_its_length() -> None:
    target = target_pb2.Target(model="m")
    made = request.outgoing(request.endpoint("http://a/v1"), {"x": "\u00e9"}, request.headers(target, "a", "", ""))
    head, _, body = render(made).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n")
    assert head.endswith(b"content-length: %d" % len(body))


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-7", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
        ("Fri, 99 Jan 2026 03:04:35 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_never_negative(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "-5"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:30 GMT", "date": "Wed, 21 Oct 2099 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:30 GMT", "date": "Wed, 21 Oct 2099 07:29:00 GMT"}, 0.0),
        ({"date": "Wed, 21 Oct 2099 07:29:00 GMT"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_asked_for_in_milliseconds_or_by_the_endpoints_own_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert asked_wait_s(list(headers.items()), NOW) == seconds


def test_without_advice_the_wait_doubles_up_to_a_bound() -> None:
    assert [wait_s(offer, None) for offer in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert wait_s(1000, None) == LONGEST_WAIT_S
    assert 0 < wait_s(0, 0.0) < 0.1
    assert [wait_s(offer, 0.0) for offer in range(1, 4)] == [0.5, 1.0, 2.0]
    assert wait_s(5, 12.0) == 12.0


def test_calls_that_were_refused_together_come_back_apart() -> None:
    pauses = [spread_s(2.0, f"run-1 {cell} 0 0") for cell in range(64)]
    assert 2.0 <= min(pauses) < 2.1
    assert 2.4 < max(pauses) < 2.5
    assert len(set(pauses)) == 64
    assert spread_s(2.0, "run-1 7 0 0") == pauses[7]
