"""The request of one call: its parameters, body and headers. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from srbench.v1 import target_pb2
from srbench_kit.chat_request import chat_messages, parameters, request_fields
from srbench_kit.completion import dump_json
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_executor.exchange import Origin, Outgoing

USER_AGENT = "sr-bench"
_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
__all__ = [
    "Endpoint",
    "address",
    "chat_messages",
    "endpoint",
    "headers",
    "outgoing",
    "output_token_limit",
    "parameters",
    "request_fields",
    "session_id",
    "usable_key",
]


def output_token_limit(body: dict[str, Json], default: int) -> int:
    """The output tokens that a request with these fields may use."""
    for name in _OUTPUT_LIMITS:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return default


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a target's requests go."""

    origin: Origin
    path: str
    host_header: str


def endpoint(base_url: str) -> Endpoint:
    """Where `{base_url}/chat/completions` lies. Raises: `InvalidInput` (`BAD_BASE_URL`)."""
    base = address(base_url, "base_url")
    return Endpoint(origin=base.origin, path=f"{base.path.rstrip('/')}/chat/completions", host_header=base.host_header)


def address(url: str, name: str) -> Endpoint:
    """Where `url` lies; `name` is what messages call it. Raises: `InvalidInput` (`BAD_BASE_URL`)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput("BAD_BASE_URL", f"{name} is {url!r}: {error}", field=name) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"{name} is {url!r}; expected http:// or https:// and a host"
        raise InvalidInput("BAD_BASE_URL", message, field=name)
    default = 443 if parts.scheme == "https" else 80
    shown = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Endpoint(
        origin=Origin(scheme=parts.scheme, host=parts.hostname, port=port or default),
        path=parts.path or "/",
        host_header=shown if port in (None, default) else f"{shown}:{port}",
    )


def session_id(run_id: str, target_id: str, case_id: str) -> str:
    """The session of one case at one target in one run: the same for all its calls, unlike any other's."""
    return hashlib.sha256(f"{run_id}\n{target_id}\n{case_id}".encode()).hexdigest()[:32]


def headers(target: target_pb2.Target, host: str, key: str, session: str) -> tuple[tuple[str, str], ...]:
    """The headers of a request but for its length. `key` and `session` may be empty."""
    streamed = target.response_mode != target_pb2.RESPONSE_MODE_JSON
    found = [
        ("host", host),
        ("user-agent", USER_AGENT),
        ("content-type", "application/json"),
        ("accept", "text/event-stream" if streamed else "application/json"),
        ("accept-encoding", "identity"),
    ]
    if key:
        found.append(("authorization", f"Bearer {key}"))
    if target.config_hash:
        found.append(("x-sr-bench-expected-config-hash", target.config_hash))
    if target.HasField("max_inference_calls"):
        found.append(("x-sr-bench-max-inference-calls", str(target.max_inference_calls)))
    if target.kind == target_pb2.TARGET_KIND_MOM:
        found.append(("x-vsr-debug", "true"))
    if session:
        found.append(("x-session-id", session))
    return tuple(found)


def usable_key(key: str) -> bool:
    """Whether `key` can stand in a header."""
    return bool(key) and key.isascii() and key.isprintable() and key == key.strip()


def outgoing(where: Endpoint, fields: dict[str, Json], head: tuple[tuple[str, str], ...]) -> Outgoing:
    """The request as a transport takes it."""
    return Outgoing(origin=where.origin, path=where.path, headers=head, body=dump_json(fields))
