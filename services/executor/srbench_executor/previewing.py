"""The request of a routing preview, and what its answer means. Pure."""

from __future__ import annotations

from srbench.v1 import target_pb2
from srbench_kit import documents
from srbench_kit.chatparts import error_sentence, refusal_reason
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_executor.request import USER_AGENT, Endpoint

_CAPS = ("max_tokens", "max_completion_tokens")


class BadPreview(Exception):
    """The router's answer is no preview; `reason` is stable."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def preview_fields(
    target: target_pb2.Target,
    params: dict[str, Json],
    messages: list[Json],
    fields: dict[str, Json],
    context: dict[str, Json],
) -> dict[str, Json]:
    """The body of a preview: what the router would be asked, as far as it decides by it, and never a generation."""
    caps = {name: params[name] for name in _CAPS if name in params}
    return {
        **fields,
        **caps,
        "model": target.model,
        "messages": messages,
        "options": {"trace": True},
        "preview_context": context,
    }


def preview_headers(target: target_pb2.Target, where: Endpoint, key: str) -> tuple[tuple[str, str], ...]:
    """The headers of a preview but for its length. `key` may be empty."""
    found = [
        ("host", where.host_header),
        ("user-agent", USER_AGENT),
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
    ]
    if key:
        found.append(("authorization", f"Bearer {key}"))
    if target.config_hash:
        found.append(("x-sr-bench-expected-config-hash", target.config_hash))
    return tuple(found)


def routing_document(target: target_pb2.Target, status: int, body: bytes) -> dict[str, Json]:
    """The routing document in an answer. Raises: `BadPreview`."""
    if status != 200:
        raise BadPreview(refusal_reason(status), f"the router answered HTTP {status} to the preview{_said(body, status)}")
    try:
        document = documents.load_json(body, "the preview")
    except InvalidInput as error:
        raise BadPreview("protocol_error", error.message) from None
    if not isinstance(document, dict):
        raise BadPreview("protocol_error", "the preview is no JSON object")
    found = document.get("config_hash")
    if target.config_hash and found != target.config_hash:
        got = f"the configuration {found!r}" if isinstance(found, str) else "no configuration"
        raise BadPreview("config_hash_mismatch", f"the preview acknowledges {got}; expected {target.config_hash!r}")
    return document


def _said(body: bytes, status: int) -> str:
    if 300 <= status < 400:
        return "; redirects are not followed"
    try:
        sentence = error_sentence(documents.load_json(body, "the body"))
    except InvalidInput:
        return ""
    return f": {sentence}" if sentence else ""
