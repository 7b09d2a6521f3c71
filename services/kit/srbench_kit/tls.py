"""TLS between the services, where the operator has it: both sides show a certificate of the deployment's own authority.

`SR_BENCH_TLS_CA`, `SR_BENCH_TLS_CERT` and `SR_BENCH_TLS_KEY` name PEM files; all or none. Every certificate carries the
name `sr-bench`, whatever its machine is called, so that addresses may be names of services, lists and bare IPs. Unix
sockets stay as they are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import grpc

from srbench_kit.errors import InvalidInput

NAME = "sr-bench"
VARIABLES = ("SR_BENCH_TLS_CA", "SR_BENCH_TLS_CERT", "SR_BENCH_TLS_KEY")
TARGET_OPTION = ("grpc.ssl_target_name_override", NAME)


@dataclass(frozen=True, slots=True)
class Files:
    """The contents of the three files."""

    authority: bytes
    certificate: bytes
    key: bytes


def files() -> Files | None:
    """What the environment names; `None` for no TLS. Raises: `InvalidInput` (`BAD_TLS`)."""
    named = {name: os.environ.get(name, "") for name in VARIABLES}
    if not any(named.values()):
        return None
    missing = [name for name, path in named.items() if not path]
    if missing:
        raise InvalidInput("BAD_TLS", f"{missing[0]} is not set; expected all of {', '.join(VARIABLES)} or none")
    return Files(*(_read(name, path) for name, path in named.items()))


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput("BAD_TLS", f"{name} is {path!r}: {error.strerror}", field=name) from None


def applies(address: str) -> bool:
    """Whether calls to `address` could be overheard."""
    return not address.startswith("unix:")


def server_credentials(found: Files) -> grpc.ServerCredentials:
    """What a server shows, asking the caller for a certificate, too."""
    return grpc.ssl_server_credentials([(found.key, found.certificate)], found.authority, require_client_auth=True)


def channel_credentials(found: Files) -> grpc.ChannelCredentials:
    """What a caller shows, and whom it trusts."""
    return grpc.ssl_channel_credentials(found.authority, found.key, found.certificate)
