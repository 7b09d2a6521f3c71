"""The request of one call: its parameters, body and headers. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from srbench.v1 import plan_pb2, target_pb2
from srbench_kit.completion import dump_json
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, from_value, object_of

from srbench_executor.exchange import Origin, Outgoing

USER_AGENT = "sr-bench"
_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")


def parameters(sampling: dict[str, Json], request_params: dict[str, Json]) -> dict[str, Json]:
    """The plan's sampling overlaid by the target's parameters, key by key; a null there removes a parameter."""
    merged = sampling | request_params
    return {key: value for key, value in merged.items() if value is not None or key not in request_params}


def output_token_limit(body: dict[str, Json], default: int) -> int:
    """The output tokens that a request with these fields may use."""
    for name in _OUTPUT_LIMITS:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return default


def chat_messages(messages: Sequence[plan_pb2.ChatMessage]) -> list[Json]:
    """The messages as they are sent."""
    return [
        {"role": message.role, "content": from_value(message.content), **object_of(message.extra)} for message in messages
    ]


def request_fields(
    target: target_pb2.Target, params: dict[str, Json], messages: list[Json], extra: dict[str, Json]
) -> dict[str, Json]:
    """All fields of the request. `extra`: the case's own fields; none of them can displace what is forced."""
    forced: dict[str, Json] = {"model": target.model, "messages": messages}
    if target.response_mode == target_pb2.RESPONSE_MODE_JSON:
        forced["stream"] = False
    else:
        forced |= {"stream": True, "stream_options": {"include_usage": True}}
    return params | extra | forced


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a target's requests go."""

    origin: Origin
    path: str
    host_header: str


def endpoint(base_url: str) -> Endpoint:
    """Where `{base_url}/chat/completions` lies. Raises: `InvalidInput` (`BAD_BASE_URL`)."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput("BAD_BASE_URL", f"base_url is {base_url!r}: {error}", field="base_url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"base_url is {base_url!r}; expected http:// or https:// and a host"
        raise InvalidInput("BAD_BASE_URL", message, field="base_url")
    default = 443 if parts.scheme == "https" else 80
    shown = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Endpoint(
        origin=Origin(scheme=parts.scheme, host=parts.hostname, port=port or default),
        path=f"{parts.path.rstrip('/')}/chat/completions",
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
