"""What goes back: JSON with its headers, and every error as one sentence with a reason and the right status."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import orjson
from srbench_kit.errors import HTTP_STATUS, SrBenchError
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json
from starlette.responses import Response

# Where the status does not follow from the kind alone. The first four are conflicts that released clients know as 400.
STATUS_BY_REASON: dict[str, int] = {
    "IDEMPOTENCY_CONFLICT": 400,
    "REVIEWED_PLAN_CHANGED": 400,
    "REPLAY_INELIGIBLE": 400,
    "RECOVERY_PLAN_REQUIRED": 400,
    "METHOD_NOT_ALLOWED": 405,
    "SLOW_BODY": 408,
    "BODY_TOO_LARGE": 413,
    "NOT_JSON": 415,
    "DEADLINE_EXCEEDED": 504,
}
# Released clients ask these of a refused start, to know that nothing was dispatched.
_NOTHING_DISPATCHED: dict[str, Json] = {"dispatch_started": False, "model_requests": 0}
_SAYS_NOTHING_DISPATCHED = frozenset({"REVIEWED_PLAN_CHANGED", "IDEMPOTENCY_CONFLICT", "RECOVERY_PLAN_REQUIRED"})

API_HEADERS: dict[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_log = logging.getLogger(__name__)


def encode(body: Json) -> bytes:
    """`body` as UTF-8 JSON. Integers beyond 64 bits take the slower encoder; a number that is not finite is null."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body, ensure_ascii=False, default=_plain).encode("utf-8", "replace")


def _plain(value: object) -> object:
    """Ready JSON as values again, for the encoder that cannot take it as it is."""
    if isinstance(value, orjson.Fragment):
        return json.loads(orjson.dumps(value))
    raise TypeError(f"not JSON: {type(value).__name__}")


def answer(body: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    merged = API_HEADERS | {"content-type": "application/json; charset=utf-8"} | dict(headers or {})
    return Response(encode(body), status_code=status, headers=merged)


def status_of(error: SrBenchError) -> int:
    """The HTTP status of an error."""
    return STATUS_BY_REASON.get(error.reason) or HTTP_STATUS.get(error.kind, 500)


def refusal(error: SrBenchError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that failed with `error`; released clients show its `error` and read its `code`."""
    status = status_of(error)
    body: dict[str, Json] = {"error": error.message, "code": error.reason.lower(), "reason": error.reason}
    if error.facts:
        body["facts"] = dict(error.facts)
    if error.reason in _SAYS_NOTHING_DISPATCHED:
        body |= _NOTHING_DISPATCHED
    extra = dict(headers or {})
    if status == 401:
        extra["www-authenticate"] = 'Bearer realm="sr-bench"'
    if status == 503:
        extra["retry-after"] = "1"
    if status == 500:
        body["error_id"] = error_id = uuid7_hex()
        _log.error("answered 500 (%s): %s", error_id, error.message, extra={"facts": error.facts})
    return answer(body, status, extra)


def bug(error: BaseException, where: str) -> Response:
    """The answer to a request that met a bug: an id that stands in the log, and nothing of the inside."""
    error_id = uuid7_hex()
    _log.error("bug in %s (%s)", where, error_id, exc_info=error)
    sentence = f"internal error; the gateway's log has the details under {error_id}"
    return answer({"error": sentence, "code": "internal", "reason": "INTERNAL", "error_id": error_id}, 500)
