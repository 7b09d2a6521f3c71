"""A chat completion before it becomes bytes, and its two forms: a stream of events and one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
from srbench_kit.values import Json

from srbench_testbed.exchange import chunk

# A fixed time of creation: equal requests get equal bytes.
CREATED = 1_700_000_000
# Stands for the answer's id in rendered events; the real one has the same length, so chunk sizes stay right.
PLACE = b"~" * 12
DONE = b"data: [DONE]\n\n"


@dataclass(slots=True, kw_only=True)
class Reply:
    """What will be said; faults change it.

    Attributes:
        id: 12 hex digits.
        model: name in the answer; None leaves the member out.
        reasoning_field: member that carries `reasoning`.
        calls: tool calls, (name, arguments as JSON text) each; a reply with any ends with `tool_calls`.
        finish_reason: None means that none is sent.
        usage: the usage object; None when none is due.
        usage_events: `final` in a chunk of its own, `every` chunk, `null` in every chunk, or `zeros` first.
        extra: raw events before the end marker.
        cut_after: stop after so many pieces: no finish, no usage, no marker; `extra` still comes.
        done: whether the end marker is sent.
    """

    id: bytes
    model: str | None
    pieces: Sequence[str]
    reasoning: Sequence[str] = ()
    reasoning_field: str = "reasoning_content"
    calls: Sequence[tuple[str, str]] = ()
    finish_reason: str | None = "stop"
    usage: Json = None
    usage_events: str = "final"
    extra: list[bytes] = field(default_factory=list)
    cut_after: int | None = None
    done: bool = True


@dataclass(frozen=True, slots=True)
class Template:
    """Events of an answer without its id and usage: one a piece, then the finish; and all of them chunk-coded together."""

    events: tuple[bytes, ...]
    joined: bytes


def event(value: Json) -> bytes:
    """A server-sent event that carries `value`."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def chunk_object(model: str | None, delta: dict[str, Json], finish: str | None = None) -> dict[str, Json]:
    """One `chat.completion.chunk`."""
    value: dict[str, Json] = {
        "id": "chatcmpl-" + PLACE.decode(),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    if model is not None:
        value["model"] = model
    return value


def chunks(reply: Reply) -> list[dict[str, Json]]:
    """The role, every piece of reasoning and content, and the finish."""
    found = [chunk_object(reply.model, {"role": "assistant", "content": ""})]
    found += [chunk_object(reply.model, {reply.reasoning_field: piece}) for piece in reply.reasoning]
    found += [chunk_object(reply.model, {"content": piece}) for piece in reply.pieces]
    for index, (name, arguments) in enumerate(reply.calls):
        # The name first and the arguments in two parts, as providers send them.
        middle = len(arguments) // 2
        begin: Json = {
            "index": index,
            "id": _call_id(index),
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        found.append(chunk_object(reply.model, {"tool_calls": [begin]}))
        for part in (arguments[:middle], arguments[middle:]):
            found.append(chunk_object(reply.model, {"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
    if reply.cut_after is not None:
        return found[: 1 + reply.cut_after]
    if reply.finish_reason is not None:
        found.append(chunk_object(reply.model, {}, reply.finish_reason))
    return found


def _call_id(index: int) -> str:
    return f"call_{PLACE.decode()}_{index}"


def template(reply: Reply) -> Template:
    """The reply's events, to be kept and used again for other ids."""
    events = tuple(event(value) for value in chunks(reply))
    return Template(events, b"".join(chunk(data) for data in events))


def usage_event(reply: Reply) -> bytes:
    """The chunk that carries usage alone; empty when none is due."""
    if reply.usage is None or reply.usage_events != "final":
        return b""
    value: Json = {
        "id": "chatcmpl-" + PLACE.decode(),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": reply.model or "",
        "choices": [],
        "usage": reply.usage,
    }
    return event(value)


def stream_events(reply: Reply) -> list[bytes]:
    """All events of a reply in order, its id filled in."""
    values = chunks(reply)
    match reply.usage_events:
        case "every":
            values = [value | {"usage": reply.usage} for value in values]
        case "null":
            values = [value | {"usage": None} for value in values]
        case "zeros":
            zeros: Json = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
            values = (
                [value | {"usage": zeros} for value in values[:1]] + values[1:-1] + [values[-1] | {"usage": reply.usage}]
            )
    events = [event(value) for value in values]
    if reply.cut_after is None:
        last = usage_event(reply)
        events += [last] if last else []
    events += reply.extra
    if reply.done and reply.cut_after is None:
        events.append(DONE)
    return [data.replace(PLACE, reply.id) for data in events]


def whole(reply: Reply) -> dict[str, Json]:
    """The reply as one `chat.completion` document."""
    message: dict[str, Json] = {"role": "assistant", "content": "".join(reply.pieces)}
    if reply.reasoning:
        message[reply.reasoning_field] = "".join(reply.reasoning)
    if reply.calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = [
            {"id": f"call_{reply.id.decode()}_{index}", "type": "function", "function": {"name": name, "arguments": text}}
            for index, (name, text) in enumerate(reply.calls)
        ]
    value: dict[str, Json] = {
        "id": "chatcmpl-" + reply.id.decode(),
        "object": "chat.completion",
        "created": CREATED,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
    }
    if reply.model is not None:
        value["model"] = reply.model
    if reply.usage_events == "null":
        value["usage"] = None
    elif reply.usage is not None:
        value["usage"] = reply.usage
    return value
