"""TLS between services: with certificates of one authority calls pass, without one, or with another's, they do not."""

from __future__ import annotations

import asyncio
import datetime
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench_kit import tls, wire
from srbench_kit.errors import InvalidInput
from srbench_kit.serving import Server

PEM, NO_PASSWORD = serialization.Encoding.PEM, serialization.NoEncryption()


def certificates(folder: Path) -> dict[str, str]:
    """Variables that name a certificate for `sr-bench` of a new authority."""
    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])

    def made(subject: x509.Name, key: ec.EllipticCurvePrivateKey, authority: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(tls.NAME)]), critical=False)
        return builder.sign(keys[0], hashes.SHA256())

    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service")])
    parts = {
        "SR_BENCH_TLS_CA": made(issuer, keys[0], True).public_bytes(PEM),
        "SR_BENCH_TLS_CERT": made(own, keys[1], False).public_bytes(PEM),
        "SR_BENCH_TLS_KEY": keys[1].private_bytes(PEM, serialization.PrivateFormat.PKCS8, NO_PASSWORD),
    }
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    return {name: str(folder / name) for name in parts}


def use(monkeypatch: pytest.MonkeyPatch, named: dict[str, str]) -> None:
    for name in tls.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, path in named.items():
        monkeypatch.setenv(name, path)


async def serves(port: int) -> bool:
    async with wire.channel(f"127.0.0.1:{port}") as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        except aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def checked(*arguments: str) -> int:
    command = (sys.executable, "-m", "srbench_kit.healthcheck", *arguments)
    return await (await asyncio.create_subprocess_exec(*command)).wait()


async def test_only_those_of_the_same_authority_are_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = certificates(tmp_path / "ours"), certificates(tmp_path / "theirs")
    use(monkeypatch, ours)
    server = Server("127.0.0.1:0")
    await server.start()
    assert await serves(server.port)
    assert await checked(f"127.0.0.1:{server.port}") == 0
    assert await checked("--plain", f"127.0.0.1:{server.port}") == 1
    use(monkeypatch, theirs)
    assert not await serves(server.port)
    use(monkeypatch, {})
    assert not await serves(server.port)
    await server.drain(0)


@pytest.mark.parametrize("name", tls.VARIABLES)
def test_a_part_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    named = certificates(tmp_path / "ours")
    use(monkeypatch, named | {name: str(tmp_path / "none")})
    with pytest.raises(InvalidInput, match=name):
        tls.files()
    del named[name]
    use(monkeypatch, named)
    with pytest.raises(InvalidInput, match=f"{name} is not set"):
        tls.files()
