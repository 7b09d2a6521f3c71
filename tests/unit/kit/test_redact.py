"""What may be kept of what an endpoint sends."""

from __future__ import annotations

import pytest
from srbench_kit.redact import Redactor


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("set-cookie", "sid=1; path=/", "[redacted]"),
        ("location", "https://user:pass@h/a", "https://[redacted]@h/a"),
        ("location", "https://token@h/a", "https://[redacted]@h/a"),
        ("location", "https://h/a?mail=x@y.z", "https://h/a?mail=x@y.z"),
        ("location", "/users/x@y.z", "/users/x@y.z"),
        ("x-echo", "Bearer s3cret-value", "Bearer [redacted]"),
        ("x-vsr-selected-model", "gpt-x", "gpt-x"),
    ],
)
def test_headers_lose_keys_cookies_and_users_and_nothing_else(name: str, value: str, kept: str) -> None:
    assert Redactor(["s3cret-value"]).header(name, value) == kept
