"""The request of a routing preview, and what its answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench.v1 import target_pb2
from srbench_executor.previewing import BadPreview, preview_fields, preview_headers, routing_document
from srbench_executor.request import address

ROUTER = target_pb2.Target(id="r", kind=target_pb2.TARGET_KIND_MOM, model="auto", config_hash="h")
MESSAGES: list[Any] = [{"role": "user", "content": "?"}]


def test_a_preview_asks_what_a_router_decides_by_and_never_generates() -> None:
    params = {"temperature": 0, "max_tokens": 16, "seed": 3}
    fields = preview_fields(ROUTER, params, MESSAGES, {"tools": [], "metadata": {"k": "v"}}, {"sampling_seed": 7})
    assert fields == {
        "messages": MESSAGES,
        "tools": [],
        "metadata": {"k": "v"},
        "model": "auto",
        "max_tokens": 16,
        "options": {"trace": True},
        "preview_context": {"sampling_seed": 7},
    }
    assert preview_fields(ROUTER, {"max_completion_tokens": 9}, MESSAGES, {}, {})["max_completion_tokens"] == 9
    assert "max_tokens" not in preview_fields(ROUTER, {}, MESSAGES, {}, {})


def test_its_headers_carry_the_key_and_the_expected_configuration() -> None:
    where = address("http://router:8080/api/v1/routing/preview", "preview_url")
    headers = dict(preview_headers(ROUTER, where, "k"))
    assert headers["authorization"] == "Bearer k"
    assert headers["x-sr-bench-expected-config-hash"] == "h"
    assert headers["host"] == "router:8080"
    assert where.path == "/api/v1/routing/preview"
    assert "authorization" not in dict(preview_headers(target_pb2.Target(), where, ""))


def test_the_whole_document_is_the_answer() -> None:
    document = {"config_hash": "h", "selected_model": "m", "new": [1, {"x": None}]}
    assert routing_document(ROUTER, 200, json.dumps(document).encode()) == document


@pytest.mark.parametrize(
    ("status", "body", "reason", "says"),
    [
        (200, b"no json", "protocol_error", "not JSON"),
        (200, b"[]", "protocol_error", "no JSON object"),
        (200, b'{"a": 1, "a": 2}', "protocol_error", "twice"),
        (200, b"{}", "config_hash_mismatch", "no configuration"),
        (200, b'{"config_hash": "x"}', "config_hash_mismatch", "'x'"),
        (401, b"", "auth_refused", "401"),
        (404, b'{"error": {"message": "no such path"}}', "http_error", "no such path"),
        (429, b"", "rate_limited", "429"),
        (503, b"", "overloaded", "503"),
        (307, b"", "http_error", "redirects are not followed"),
        (204, b"", "http_error", "204"),
    ],
)
def test_everything_else_has_a_reason_and_a_sentence(status: int, body: bytes, reason: str, says: str) -> None:
    with pytest.raises(BadPreview) as caught:
        routing_document(ROUTER, status, body)
    assert caught.value.reason == reason
    assert says in caught.value.message
