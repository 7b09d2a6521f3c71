"""Which endpoint addresses are allowed, and what is appended to them."""

from __future__ import annotations

import pytest
from srbench_kit.errors import InvalidInput
from srbench_planner.base_url import base_url


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("http://10.0.0.5/v1", "http://10.0.0.5/v1"),
        ("http://192.168.1.7:8000/v1", "http://192.168.1.7:8000/v1"),
        ("http://h/v1/", "http://h/v1"),
        ("http://h/v1//", "http://h/v1"),
        ("http://h", "http://h"),
        ("http://h/api/openai/v1", "http://h/api/openai/v1"),
        (" http://h/v1\n", "http://h/v1"),
        ("http://my_model:9000/v1", "http://my_model:9000/v1"),
        ("HTTP://H/v1", "HTTP://H/v1"),
    ],
)
def test_an_allowed_address_loses_only_its_slash(given: str, expected: str) -> None:
    assert base_url(given, "targets[0].base_url") == expected


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("http://169.254.169.254/v1", "link-local"),
        ("http://2852039166/v1", "link-local"),
        ("http://0xA9FEA9FE/v1", "link-local"),
        ("http://0xA9.254.0251.0376/v1", "link-local"),
        ("http://169.254.43518/v1", "link-local"),
        ("http://[::ffff:169.254.169.254]/v1", "link-local"),
        ("http://[::ffff:a9fe:a9fe]/v1", "link-local"),
        ("http://[64:ff9b::a9fe:a9fe]/v1", "link-local"),
        ("http://[2002:a9fe:a9fe::]/v1", "link-local"),
        ("http://[fe80::1]/v1", "link-local"),
        ("http://[fd00:ec2::254]/v1", "metadata"),
        ("http://100.100.100.200/v1", "metadata"),
        ("http://metadata.google.internal/v1", "metadata"),
        ("http://instance-data.ec2.internal/v1", "metadata"),
        ("http://METADATA.google.internal./v1", "metadata"),
        ("file:///etc/hostname", "http:// or https://"),
        ("gopher://127.0.0.1:70/v1", "http:// or https://"),
        ("http://user:secret@api.example.com/v1", "user information"),
        ("http://api.example.com#@169.254.169.254/v1", "fragment"),
        ("http://api.example.com\\@169.254.169.254/v1", "backslashes"),
        ("http://h/v1?api-version=2", "query"),
        ("http://h/v1?", "query"),
        ("http://h/v1/chat/completions", "/chat/completions"),
        ("http://h/v1/chat/completions/", "/chat/completions"),
        ("", "http or https address"),
        ("   ", "http or https address"),
        (None, "http or https address"),
        (7, "http or https address"),
        ("api.example.com/v1", "http:// or https://"),
        ("//h/v1", "http:// or https://"),
        ("http:///v1", "host"),
        ("http://h:/v1", "host"),
        ("http://api.example.com:99999/v1", "port"),
        ("http://api.example.com:0/v1", "port"),
        ("http://api.example.com:x/v1", "port"),
        ("http://[::1/v1", "well-formed"),
        ("http://h h/v1", "spaces"),
        ("http://h/v1\r\nx: y", "control"),
        ("http://m\u0435ta/v1", "non-ASCII"),
        ("http://a%2eb/v1", "well-formed host"),
    ],
)
def test_a_forbidden_address_is_refused_by_the_rule_it_breaks(given: object, rule: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        base_url(given, "targets[0].base_url")  # type: ignore[arg-type]
    assert caught.value.reason == "BAD_URL"
    assert caught.value.message.startswith("targets[0].base_url ")
    assert rule in caught.value.message


def test_a_password_in_an_address_is_never_shown() -> None:
    with pytest.raises(InvalidInput) as caught:
        base_url("http://user:secret@api.example.com/v1", "base_url")
    assert "secret" not in caught.value.message + str(caught.value.facts)
