"""Asking a service's HTTP face whether it is there, which store it serves and where its gRPC front door is."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from srbench_kit.errors import Conflict, Unauthenticated, Unreachable

MAX_BODY_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a service says of itself."""

    version: str
    status: str
    store_id: str
    grpc_port: int

    @property
    def ready(self) -> bool:
        """Whether all of its processes answer."""
        return self.status == "ready"


# Whoever is known to be there may be held up for a moment; who merely has the port is not waited for.
KNOWN_S, UNKNOWN_S = 60.0, 2.0


def probe(url: str, token: str, timeout_s: float = UNKNOWN_S) -> Health | None:
    """The health of the service at `url`; `None` when nothing listens there or nothing answers in time.

    Raises: `Unauthenticated` (`BAD_TOKEN`) when the token is missing or wrong; `Conflict` (`NOT_SR_BENCH`) when
    something else answers; `Unreachable` (`TLS_FAILED`).
    """
    try:
        status, body = _get(url, token, timeout_s)
    except http.client.HTTPException:
        raise _foreign(url) from None
    except OSError as error:
        if type(error).__module__ == "ssl":
            raise Unreachable("TLS_FAILED", f"no secure connection to {url}: {error}", url=url) from None
        return None
    if status in (401, 403):
        hint = "the token is wrong" if token else "it asks for a token; set SR_BENCH_TOKEN"
        raise Unauthenticated("BAD_TOKEN", f"the service at {url} refused the request: {hint}", url=url)
    return _parse(url, body)


def _get(url: str, token: str, timeout_s: float) -> tuple[int, bytes]:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", "/health", headers={"authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read(MAX_BODY_BYTES)
    finally:
        connection.close()


def _parse(url: str, body: bytes) -> Health:
    try:
        found = json.loads(body)
        return Health(
            version=str(found["version"]),
            status=str(found["status"]),
            store_id=str(found["store_id"]),
            grpc_port=int(found["grpc_port"]),
        )
    except (ValueError, KeyError, TypeError):
        raise _foreign(url) from None


def _foreign(url: str) -> Conflict:
    return Conflict(
        "NOT_SR_BENCH", f"what answers at {url} is not this version of sr-bench; choose another --url or --port", url=url
    )
