"""Which proxy leads where: the forms that people write `NO_PROXY` in."""

from __future__ import annotations

import pytest
from srbench_executor.exchange import Origin
from srbench_executor.proxies import proxy_for


@pytest.fixture(autouse=True)
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")


def way(host: str, port: int = 8000, scheme: str = "http") -> str | None:
    return proxy_for(Origin(scheme=scheme, host=host, port=port))


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("10.1.2.3", "10.0.0.0/8"),
        ("10.1.2.3", "localhost, 10.1.2.3:8000"),
        ("10.1.2.3", "*"),
        ("2001:db8::5", "2001:db8::/32"),
        ("2001:db8::5", "[2001:db8::5]:8000"),
        ("2001:db8::5", "2001:db8:0::5"),
        ("gpu.corp.example", "*.corp.example"),
        ("gpu.corp.example", ".corp.example"),
        ("gpu.corp.example", "corp.example."),
        ("gpu.corp.example.", "CORP.example"),
        ("corp.example", "a.example corp.example"),
    ],
)
def test_what_is_listed_is_reached_directly(host: str, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", listed)
    assert way(host) is None


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("11.1.2.3", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3:9000"),
        ("10.1.2.3", "2001:db8::/32, 2.3, 10.1"),
        ("xcorp.example", "corp.example"),
        ("10.example", "10.0.0.0/8"),
        ("corp.example", " , ., []"),
    ],
)
def test_what_is_not_listed_goes_through_the_proxy(host: str, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", listed)
    assert way(host) == "http://proxy.example:3128"


def test_a_scheme_without_a_proxy_of_its_own_takes_the_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert way("a.example", scheme="https") is None
    monkeypatch.setenv("ALL_PROXY", "//other.example:1")
    assert way("a.example", scheme="https") == "http://other.example:1"
    assert way("localhost", scheme="https") is None
