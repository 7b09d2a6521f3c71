"""How the loopback endpoint answers: OpenAI's chat completion, whole or as events, and OpenAI's error objects. Pure."""

from __future__ import annotations

from srbench_kit.completion import Completion, dump_json
from srbench_kit.values import Json

_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")


def message_of(completion: Completion) -> dict[str, Json]:
    """The assistant's message: text, reasoning and tool calls as they came."""
    calls = completion.tool_calls
    message: dict[str, Json] = {"role": "assistant", "content": completion.text or (None if calls else "")}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.refusal:
        message["refusal"] = completion.refusal
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return message


def finish_of(completion: Completion, quality_failure: str) -> str:
    """The finish reason; `length` for an answer that a guard of the plan ended."""
    if quality_failure:
        return "length"
    return completion.finish_reason or ("tool_calls" if completion.tool_calls else "stop")


def usage_of(completion: Completion) -> dict[str, Json] | None:
    """The usage in OpenAI's fields, as far as the endpoint reported it; `None` when it reported none."""
    found = completion.usage
    if found is None:
        return None
    usage: dict[str, Json] = {}
    for name in _USAGE:
        if isinstance(value := found.get(name), int):
            usage[name] = value
    for name in _DETAILS:
        if isinstance(nested := found.get(name), dict):
            usage[name] = nested
    return usage or None


def document(completion: Completion, *, name: str, model: str, created: int, quality_failure: str) -> bytes:
    """The whole answer as one JSON document."""
    found: dict[str, Json] = {
        "id": name,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {"index": 0, "message": message_of(completion), "finish_reason": finish_of(completion, quality_failure)}
        ],
        "usage": usage_of(completion),
    }
    return dump_json(found)


def events(
    completion: Completion, *, name: str, model: str, created: int, quality_failure: str, usage: bool
) -> list[bytes]:
    """The answer as server-sent events: the message, the finish reason, the usage if asked for, the end marker."""
    head: dict[str, Json] = {"id": name, "object": "chat.completion.chunk", "created": created, "model": model}
    delta = message_of(completion)
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls) if isinstance(call, dict)]
    finish = finish_of(completion, quality_failure)
    chunks: list[dict[str, Json]] = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]
    if usage:
        chunks.append(head | {"choices": [], "usage": usage_of(completion)})
    return [*(b"data: " + dump_json(chunk) + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


def error(code: str, message: str, kind: str, param: str | None = None) -> bytes:
    """An error as OpenAI clients read it. `kind` goes into `type`."""
    return dump_json({"error": {"message": message, "type": kind, "code": code, "param": param}})
