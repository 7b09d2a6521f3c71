"""TLS and proxies under the transport, against a scripted endpoint."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor import pool, tls

from tests.contract.executor.streams import KEY, TAIL, at_once, content


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    made.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return made


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_tls_streams_and_keeps_the_connection(
    make_upstream: Any, ask: Any, answer_type: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls.client_context.cache_clear()
    upstream = await make_upstream(server_context(certificate))
    chunks = [(0, content("<")), (60, content("x" * 40_000)), *at_once(*TAIL)]
    upstream.answers = [answer_type(chunks=chunks)]
    for _ in range(2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, len(got.settled.text)) == ("repetition", 40_001)
    upstream.answers = [answer_type(chunks=[(0, content("a")), (60, content("b")), *at_once(*TAIL)])]
    for _ in range(2):
        got = await ask(upstream.base_url)
        assert (got.settled.receipt.reason, got.settled.text) == ("", "ab")
        assert got.settled.receipt.first_token_clock == "kernel"
    assert upstream.connections == 3
    tls.client_context.cache_clear()


async def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_request(
    make_upstream: Any, ask: Any, certificate: Path
) -> None:
    tls.client_context.cache_clear()
    upstream = await make_upstream(server_context(certificate))
    receipt = (await ask(upstream.base_url)).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "tls_failed")
    assert "not trusted" in receipt.message
    assert upstream.requests == []


async def test_a_name_that_ends_with_a_dot_is_the_name_in_its_certificate(
    make_upstream: Any, ask: Any, answer_type: Any, certificate: Path, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def here(host: str, port: int) -> Any:
        return [(socket.AF_INET, ("127.0.0.1", port))]

    monkeypatch.setattr(pool, "lookup", here)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls.client_context.cache_clear()
    upstream = await make_upstream(server_context(certificate))
    upstream.answers = [answer_type(chunks=at_once(content("a"), *TAIL))]
    got = await ask(f"https://localhost.:{upstream.port}/v1")
    assert (got.settled.receipt.reason, got.settled.text) == ("", "a")
    tls.client_context.cache_clear()


async def test_tls_to_a_plain_endpoint_fails_as_tls(ask: Any) -> None:
    async def complain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        receipt = (await ask(f"https://127.0.0.1:{port}/v1")).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "tls_failed")


async def test_proxies_are_used_but_never_for_loopback(
    upstream: Any, make_upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy answers itself; that it got the request for the other host is what counts."""
    proxy = await make_upstream()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    proxy.answers = [answer_type(chunks=[(0, content("via")), (60, content(" proxy")), *at_once(*TAIL)])]
    upstream.answers = [answer_type(chunks=at_once(content("direct"), *TAIL))]
    got = await ask("http://models.example:8000/v1", key=KEY)
    assert (got.settled.receipt.reason, got.settled.text) == ("", "via proxy")
    assert (got.settled.receipt.first_token_clock, got.settled.receipt.usage_final) == ("loop", True)
    assert proxy.requests[0][0].startswith(b"POST http://models.example:8000/v1/chat/completions")
    assert (await ask(upstream.base_url)).settled.text == "direct"
    assert (len(proxy.requests), len(upstream.requests)) == (1, 1)
    monkeypatch.setenv("NO_PROXY", "models.invalid")
    # Another name than before: the way to a host is chosen once.
    assert (await ask("http://models.invalid/v1")).settled.receipt.reason == "name_not_resolved"
    assert len(proxy.requests) == 1


async def test_through_a_proxy_a_call_can_be_cut_stopped_and_refused(
    make_upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = await make_upstream()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    proxy.answers = [answer_type(chunks=at_once(content("half")), end="abort_chunked")]
    cut = (await ask("http://models.example/v1")).settled.receipt
    assert (cut.status, cut.reason) == (pb.CALL_STATUS_FAILED, "stream_cut")
    proxy.answers = [answer_type(chunks=at_once(content("half")), end="hang")]
    idle = (await ask("http://models.example/v1", idle_s=0.3)).settled.receipt
    assert (idle.status, idle.reason) == (pb.CALL_STATUS_FAILED, "idle_timeout")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free.getsockname()[1]}")
    refused = (await ask("http://other.example/v1")).settled.receipt
    assert (refused.status, refused.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "connect_failed")
    assert len(proxy.requests) == 2


@pytest.mark.parametrize("named", ["socks5://u:CANARY@127.0.0.1:1080", "ftp://127.0.0.1", "http://:1", "http://h:99999"])
async def test_a_proxy_that_cannot_be_used_is_named_and_nothing_goes_past_it(
    ask: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", named)
    receipt = (await ask("http://models.example/v1")).settled.receipt
    assert (receipt.status, receipt.reason) == (pb.CALL_STATUS_NOT_ACCEPTED, "connect_failed")
    assert "the environment names" in receipt.message
    assert "CANARY" not in receipt.message


async def test_a_proxy_without_a_scheme_speaks_http(
    make_upstream: Any, ask: Any, answer_type: Any, no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = await make_upstream()
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{proxy.port}")
    proxy.answers = [answer_type(chunks=at_once(content("via"), *TAIL))]
    assert (await ask("http://models.example/v1")).settled.text == "via"
