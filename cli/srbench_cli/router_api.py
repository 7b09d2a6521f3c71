"""A router's management API, spoken as it asks to be: no redirects, a token from the environment, bounded answers."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from srbench_kit.documents import load_json
from srbench_kit.errors import Conflict, InvalidInput, NotFound, SrBenchError, Unauthenticated, Unreachable
from srbench_kit.redact import Redactor
from srbench_kit.values import Json

TOKEN_VARIABLE = "VSR_MGMT_TOKEN"
DEFAULT_PORT = 8080
TIMEOUT_S = 15.0
MAX_BODY_BYTES = 8 * 1024 * 1024
# What the router calls its refusals, and what they are to us.
_BY_STATUS: dict[int, tuple[type[SrBenchError], str]] = {
    400: (InvalidInput, "CONFIG_REFUSED"),
    401: (Unauthenticated, "BAD_TOKEN"),
    403: (Unauthenticated, "BAD_TOKEN"),
    404: (NotFound, "NOT_OFFERED"),
    405: (NotFound, "NOT_OFFERED"),
    409: (Conflict, "ROUTER_CONFLICT"),
    412: (Conflict, "CONFIG_CHANGED"),
    422: (InvalidInput, "CONFIG_REFUSED"),
    428: (Conflict, "CONFIG_CHANGED"),
    501: (NotFound, "NOT_OFFERED"),
    503: (Unreachable, "ACTIVATION_FAILED"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A router's answer: its status, its ETag (empty for none), its JSON object."""

    status: int
    etag: str
    body: dict[str, Json]


class RouterApi:
    """One router's management API."""

    def __init__(self, endpoint: str, environment: Mapping[str, str] = os.environ) -> None:
        """`endpoint`: an origin without a path."""
        self.endpoint = endpoint
        self._token = environment.get(TOKEN_VARIABLE, "")

    def get(self, path: str) -> Answer:
        """Reads. Raises: as `send`."""
        return self.send("GET", path, None, "")

    def send(self, method: str, path: str, body: dict[str, Json] | None, if_match: str) -> Answer:
        """Sends one request, once.

        Raises: `Unreachable` (`ROUTER_AWAY`, `ACTIVATION_FAILED`), `InvalidInput` (`CONFIG_REFUSED`), `Conflict`
        (`RESTART_REQUIRED`, `CONFIG_CHANGED`, the router's own code), `NotFound` (`NOT_OFFERED`), `Unauthenticated`.
        """
        headers = {"accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if if_match:
            headers["if-match"] = if_match
        try:
            status, etag, raw = self._exchange(method, path, data, headers)
        except (OSError, http.client.HTTPException) as error:
            said = getattr(error, "strerror", None) or type(error).__name__
            raise Unreachable("ROUTER_AWAY", f"the router at {self.endpoint} does not answer: {said}") from None
        if status >= 300:
            raise self._refusal(status, method, path, raw)
        found = load_json(raw, f"the router's answer to {method} {path}")
        if not isinstance(found, dict):
            raise Conflict("NOT_A_ROUTER", f"what answers at {self.endpoint}{path} is no router's management API")
        return Answer(status, etag, found)

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, str, bytes]:
        parts = urlsplit(self.endpoint)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers.get("etag", ""), response.read(MAX_BODY_BYTES)
        finally:
            connection.close()

    def _refusal(self, status: int, method: str, path: str, raw: bytes) -> SrBenchError:
        code, sentence = _said(raw)
        kind, reason = _BY_STATUS.get(status, (Unreachable, "ROUTER_FAILED"))
        if kind is Conflict and code:
            reason = code if status == 409 else reason
        what = f": {sentence}" if sentence else ("; redirects are not followed" if status < 400 else "")
        message = f"the router at {self.endpoint} answered HTTP {status} to {method} {path}{what}"
        return kind(reason, Redactor([self._token] if self._token else []).text(message), http_status=status)


def _said(raw: bytes) -> tuple[str, str]:
    """The code and the sentence of a router's error; both may be empty."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return "", ""
    error = found.get("error", found) if isinstance(found, dict) else {}
    if isinstance(error, str):
        return "", error
    code, message = (error.get(key) if isinstance(error, dict) else None for key in ("code", "message"))
    return (code if isinstance(code, str) else ""), (message if isinstance(message, str) else "")
