"""What a chat completion says, from the bytes that came over the wire. Pure; nothing here raises on any input.

Live reading and reading again from saved evidence go through the same `AnswerReader`, so both give the same `Completion`.
The shapes it reads, and why, are listed in `docs/decisions/0003-transport.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from srbench_kit.chatparts import (
    content_pieces,
    error_sentence,
    kind_of,
    merge_usage,
    refusal_reason,
    refused_parameter,
    split_thinking,
    well_formed,
)
from srbench_kit.sse import SseEvent, SseParser
from srbench_kit.values import Json

Headers = Sequence[tuple[str, str]]

LENGTH_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
FILTER_REASONS = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content"})
RECEIPT_HEADER = "x-vsr-model-usage"
RECEIPT_FIELD, RECEIPT_FIELD_SHORT = "x_vsr_model_usage", "vsr_model_usage"


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """One tool call, its arguments as sent: never repaired, perhaps not valid JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def well_formed(self) -> ToolCall:
        """The same call as text that UTF-8 can write."""
        return ToolCall(id=well_formed(self.id), name=well_formed(self.name), arguments=well_formed(self.arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back from one call.

    Attributes:
        reason: stable reason when there is no answer to grade; empty for an answer, one cut by `length` included.
        message: a sentence for people about `reason`; may quote the provider, secrets not removed.
        text: the final channel: content without reasoning.
        finish_reason: the last one that is not empty; empty when none came.
        output_complete: whether the answer ended by itself.
        usage: per field the last value that is not null; `None` when no usage object came.
        usage_final: whether the answer reached its own end, so that `usage` is the last one.
        router_receipt: the router's usage receipt, JSON from outside; empty when none came.
        content_chars: characters of content as sent and of reasoning together.
        reasoning_chars: characters of reasoning, `<think>` spans included.
    """

    reason: str
    message: str
    http_status: int
    text: str
    reasoning: str
    refusal: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    output_complete: bool
    model: str
    usage: dict[str, Json] | None
    usage_final: bool
    router_receipt: bytes
    selected_model: str
    decision: str
    config_hash: str
    inference_call_count: int | None
    content_chars: int
    reasoning_chars: int

    @property
    def usage_json(self) -> bytes:
        """`usage` as JSON; empty when there is none."""
        return b"" if self.usage is None else dump_json(self.usage)


def load_json(data: bytes) -> Any:
    """The JSON in `data`, as leniently as it can be read without guessing. Raises `ValueError`, `RecursionError`."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Halves of surrogate pairs, NaN, and bytes that are no UTF-8 (which event streams replace) take the slow path.
        return json.loads(data.decode("utf-8", "replace"))


def dump_json(value: Any) -> bytes:
    """`value` as compact JSON in UTF-8."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # Integers beyond 64 bits and halves of surrogate pairs.
        return json.dumps(value, separators=(",", ":")).encode()


def content_type(headers: Headers) -> str:
    """The media type of an answer in lower case, without its parameters; empty when none is named."""
    value = header(headers, "content-type")
    return value.partition(";")[0].strip().lower()


def header(headers: Headers, name: str) -> str:
    """The last value of a header; empty when there is none. Names are in lower case."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return ""


@dataclass(slots=True)
class _Answer:
    """What has been gathered so far."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    tool_calls: dict[int, ToolCall] = field(default_factory=dict)
    finish_reason: str = ""
    model: str = ""
    usage: dict[str, Json] | None = None
    receipt: bytes = b""
    choices_seen: bool = False
    done: bool = False
    reason: str = ""
    message: str = ""

    def fail(self, reason: str, message: str) -> None:
        """Keeps the first failure."""
        if not self.reason:
            self.reason, self.message = reason, message


class AnswerReader:
    """Reads one HTTP answer as it comes.

    `feed` gives the pieces of content and of reasoning that the bytes completed, for guards and time stamps; `finish`
    gives the `Completion`.
    """

    __slots__ = ("_answer", "_body", "_ending", "_event_count", "_headers", "_kind", "_parser", "_status")

    def __init__(self, status: int, headers: Headers) -> None:
        self._status = status
        self._headers = headers
        self._answer = _Answer()
        self._parser = SseParser()
        self._body: list[bytes] = []
        self._event_count = 0
        self._ending = False
        kind = content_type(headers)
        if not 200 <= status < 300:
            self._kind = "error"
        elif kind == "text/event-stream":
            self._kind = "sse"
        elif kind == "application/json" or kind.endswith("+json"):
            self._kind = "json"
        else:
            self._kind = "other"

    @property
    def done(self) -> bool:
        """Whether the end marker has come."""
        return self._answer.done

    @property
    def terminal(self) -> bool:
        """Whether there is evidence that the answer has ended: the end marker or a finish reason."""
        return self._answer.done or bool(self._answer.finish_reason)

    @property
    def inside_event(self) -> bool:
        """Whether bytes of an unfinished event are held."""
        return self._parser.inside_event

    @property
    def event_count(self) -> int:
        """Events with data so far."""
        return self._event_count

    def feed(self, data: bytes) -> tuple[list[str], list[str]]:
        """Reads `data`; gives the new pieces of content and of reasoning."""
        if self._kind != "sse":
            self._body.append(data)
            return [], []
        events = self._parser.feed(data)
        return self._read(events) if events else ([], [])

    def finish(self, *, clean_end: bool, trailers: Headers = ()) -> Completion:
        """What the answer says, now that no more of it will come. `clean_end`: the body ended by itself."""
        answer = self._answer
        if self._kind == "sse":
            self._ending = True
            self._read(self._parser.finish())
            self._judge_stream(clean_end)
        elif self._kind == "json":
            self._read_document(clean_end)
        elif self._kind == "error":
            self._read_refusal()
        else:
            kind = content_type(self._headers) or "no content type"
            answer.fail("protocol_error", f"the endpoint answered with {kind}; expected text/event-stream or JSON")
        return self._completion(clean_end, trailers)

    def _read(self, events: Iterable[SseEvent]) -> tuple[list[str], list[str]]:
        answer = self._answer
        content_from, reasoning_from = len(answer.content), len(answer.reasoning)
        for name, data in events:
            if answer.done:
                break
            self._event_count += 1
            if name or data[:1] != b"{":
                self._read_event(name, data)
                continue
            try:
                value = orjson.loads(data)
            except orjson.JSONDecodeError:
                self._read_event(name, data)
            else:
                self._read_object(value)
        return answer.content[content_from:], answer.reasoning[reasoning_from:]

    def _read_event(self, name: str, data: bytes) -> None:
        """Reads an event that is not simply a chunk."""
        answer = self._answer
        if data.strip() == b"[DONE]":
            answer.done = True
            return
        where = f"event {self._event_count} of the stream"
        try:
            value = load_json(data)
        except (ValueError, RecursionError):
            if name == "error":
                answer.fail("upstream_error", error_sentence(data.decode("utf-8", "replace")))
            elif data.strip() and not self._ending:
                # A last event without its blank line that is no JSON is just where the stream was cut.
                answer.fail("protocol_error", f"{where} is not JSON")
            return
        if isinstance(value, dict):
            if name == "error" and not value.get("error"):
                answer.fail("upstream_error", error_sentence(value))
            self._read_object(value)
        elif name == "error":
            answer.fail("upstream_error", error_sentence(value))
        else:
            answer.fail("protocol_error", f"{where} is {kind_of(value)}, not a JSON object")

    def _read_object(self, value: dict[str, Any]) -> None:
        answer = self._answer
        if value.get("error"):
            answer.fail("upstream_error", error_sentence(value["error"]) or "the endpoint reported an error without words")
        model = value.get("model")
        if model and model != answer.model and isinstance(model, str):
            answer.model = model
        usage = value.get("usage")
        if usage and isinstance(usage, dict):
            answer.usage = merge_usage(answer.usage or {}, usage)
        if RECEIPT_FIELD in value or RECEIPT_FIELD_SHORT in value:
            receipt = value.get(RECEIPT_FIELD) or value.get(RECEIPT_FIELD_SHORT)
            answer.receipt = _dump_outside(receipt) if receipt is not None else answer.receipt
        choices = value.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._read_choice(choice)
        elif choices is not None:
            answer.fail("protocol_error", f"choices is {kind_of(choices)}, not a list")

    def _read_choice(self, choice: dict[str, Any]) -> None:
        answer = self._answer
        answer.choices_seen = True
        finish = choice.get("finish_reason")
        if finish and isinstance(finish, str):
            answer.finish_reason = finish
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                answer.content.append(content)
            if len(delta) == 1:
                return
        elif isinstance(content, list):
            text, thinking, refused = content_pieces(content)
            answer.content += text
            answer.reasoning += thinking
            answer.refusal += refused
        elif content is not None:
            answer.fail("protocol_error", f"content is {kind_of(content)}, not a text or a list of parts")
        self._read_side_channels(delta)

    def _read_side_channels(self, delta: dict[str, Any]) -> None:
        answer = self._answer
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            answer.reasoning.append(reasoning)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            answer.refusal.append(refusal)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._read_tool_call(position, call)

    def _read_tool_call(self, position: int, call: dict[str, Any]) -> None:
        index = call.get("index")
        found = self._answer.tool_calls.setdefault(index if isinstance(index, int) else position, ToolCall())
        if isinstance(call.get("id"), str):
            found.id = call["id"] or found.id
        function = call.get("function")
        if isinstance(function, dict):
            if isinstance(function.get("name"), str):
                found.name += function["name"]
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                found.arguments += arguments
            elif isinstance(arguments, dict):
                found.arguments += dump_json(arguments).decode()

    def _judge_stream(self, clean_end: bool) -> None:
        answer = self._answer
        if answer.done and not (answer.choices_seen or answer.reason):
            answer.fail("protocol_error", "the stream held nothing but its end marker")
        elif not self.terminal:
            how = "ended" if clean_end else "was cut"
            answer.fail(
                "stream_cut", f"the stream {how} after {self._event_count} events with no sign that the answer was over"
            )
        self._judge_finish_reason()

    def _judge_finish_reason(self) -> None:
        answer = self._answer
        finish = answer.finish_reason.lower()
        if finish in FILTER_REASONS:
            answer.fail("content_filter", f"the endpoint withheld the answer: finish reason {answer.finish_reason}")
        elif finish == "error":
            answer.fail("upstream_error", "the endpoint ended the answer with finish reason error")

    def _read_document(self, clean_end: bool) -> None:
        answer = self._answer
        try:
            value = load_json(b"".join(self._body))
        except (ValueError, RecursionError):
            if clean_end:
                answer.fail("protocol_error", "the endpoint's JSON document cannot be read")
            else:
                answer.fail("stream_cut", "the connection was lost inside the endpoint's JSON document")
            return
        if not isinstance(value, dict):
            answer.fail("protocol_error", f"the endpoint's JSON document is {kind_of(value)}, not an object")
            return
        self._read_object(value)
        answer.done = True
        if not answer.choices_seen:
            said = "" if answer.reason else error_sentence(value)
            answer.fail("protocol_error", "the endpoint's JSON document holds no answer" + (f": {said}" if said else ""))
        self._judge_finish_reason()

    def _read_refusal(self) -> None:
        status, body = self._status, b"".join(self._body)
        try:
            document = load_json(body)
        except (ValueError, RecursionError):
            plain = content_type(self._headers) in ("text/plain", "")
            document = body[:4096].decode("utf-8", "replace") if plain else None
        said = error_sentence(document)
        reason = refusal_reason(status)
        if status in (400, 422) and refused_parameter(document, said):
            reason = "parameter_refused"
        kind = content_type(self._headers)
        what = f": {said}" if said else (f" with a body of {kind}" if kind else "")
        if 300 <= status < 400:
            what = "; redirects are not followed"
        self._answer.fail(reason, f"HTTP {status}{what}")

    def _completion(self, clean_end: bool, trailers: Headers) -> Completion:
        answer = self._answer
        content = well_formed("".join(answer.content))
        text, thinking = split_thinking(content)
        reasoning = well_formed("".join(answer.reasoning))
        every = dict(self._headers) | dict(trailers)
        receipt = header(trailers, RECEIPT_HEADER).encode("latin-1", "replace") or answer.receipt
        receipt = receipt or every.get(RECEIPT_HEADER, "").encode("latin-1", "replace")
        ended = self._kind in ("sse", "json") and (answer.done or (clean_end and self.terminal))
        return Completion(
            reason=answer.reason,
            message=answer.message,
            http_status=self._status,
            text=text,
            reasoning=reasoning + thinking,
            refusal=well_formed("".join(answer.refusal)),
            tool_calls=tuple(answer.tool_calls[index].well_formed() for index in sorted(answer.tool_calls)),
            finish_reason=well_formed(answer.finish_reason),
            output_complete=not answer.reason and answer.finish_reason.lower() not in LENGTH_REASONS,
            model=well_formed(answer.model),
            usage=answer.usage,
            usage_final=ended and answer.reason in ("", "content_filter"),
            router_receipt=receipt,
            selected_model=every.get("x-vsr-selected-model", ""),
            decision=every.get("x-vsr-selected-decision", ""),
            config_hash=every.get("x-sr-bench-config-hash") or every.get("x-vsr-config-hash", ""),
            inference_call_count=_count(every.get("x-vsr-inference-call-count", "")),
            content_chars=len(content) + len(reasoning),
            reasoning_chars=len(reasoning) + len(thinking),
        )


def _dump_outside(value: Any) -> bytes:
    """`value` as JSON; empty when it is nested too deep to be anything that we know."""
    try:
        return dump_json(value)
    except RecursionError:
        return b""


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def read_answer(status: int, headers: Headers, body: bytes, *, clean_end: bool, trailers: Headers = ()) -> Completion:
    """What a saved answer says: the same as was read live."""
    reader = AnswerReader(status, headers)
    if body:
        reader.feed(body)
    return reader.finish(clean_end=clean_end, trailers=trailers)
