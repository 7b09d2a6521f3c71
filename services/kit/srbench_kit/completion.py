"""What a chat completion says, from the bytes that came over the wire. Pure; nothing here raises on any input.

Live reading and reading again from saved evidence go through the same `AnswerReader`, so both give the same `Completion`.
The shapes it reads, and why, are listed in `docs/decisions/2026-11-30-transport.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from srbench_kit.answer_signs import (
    FAILED_REASONS,
    FILTER_REASONS,
    KEEPALIVE_EVENTS,
    LENGTH_REASONS,
    may_have_been_passed_on,
    prompt_is_withheld,
    quota_is_spent,
)
from srbench_kit.chatparts import (
    error_sentence,
    kind_of,
    refusal_reason,
    refused_parameter,
    split_thinking,
    well_formed,
)
from srbench_kit.gathering import RECEIPT_FIELD, Gathered, ToolCall
from srbench_kit.outside_json import dump_json, load_json
from srbench_kit.sse import BOM, SseEvent, SseParser
from srbench_kit.values import Json

__all__ = [
    "CODINGS",
    "RECEIPT_FIELD",
    "RECEIPT_HEADER",
    "AnswerReader",
    "Completion",
    "Headers",
    "ToolCall",
    "codings",
    "content_type",
    "dump_json",
    "header",
    "load_json",
    "read_answer",
]

Headers = Sequence[tuple[str, str]]

RECEIPT_HEADER = "x-vsr-model-usage"
# Content codings that are undone as a body comes; evidence holds it undone.
CODINGS = frozenset({"gzip", "x-gzip", "deflate"})


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
        generation_seen: whether it holds an answer or usage: something was generated, whatever the status says.
        passed_on: whether it is a gateway's refusal that may have come after the request was passed on.
        quota_spent: whether it refuses for want of money or allowance.
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
    generation_seen: bool
    passed_on: bool = False
    quota_spent: bool = False

    @property
    def usage_json(self) -> bytes:
        """`usage` as JSON; empty when there is none."""
        return b"" if self.usage is None else dump_json(self.usage)


def content_type(headers: Headers) -> str:
    """The media type of an answer in lower case, without its parameters; empty when none is named."""
    value = header(headers, "content-type")
    # A proxy that joins two headers of the name puts a comma between them.
    return value.partition(";")[0].partition(",")[0].strip().lower()


def codings(value: str) -> list[str]:
    """What a `content-encoding` names, less what changes nothing."""
    names = (name.strip().lower() for name in value.split(","))
    return [name for name in names if name not in ("", "identity")]


def header(headers: Headers, name: str) -> str:
    """The last value of a header; empty when there is none. Names are in lower case."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return ""


class AnswerReader:
    """Reads one HTTP answer as it comes.

    `feed` gives the pieces of content and of reasoning that the bytes completed, for guards and time stamps; `finish`
    gives the `Completion`.
    """

    __slots__ = ("_answer", "_begun", "_body", "_ending", "_event_count", "_headers", "_kind", "_parser", "_status")

    def __init__(self, status: int, headers: Headers) -> None:
        self._status = status
        self._headers = headers
        self._answer = Gathered()
        self._parser = SseParser()
        self._body: list[bytes] = []
        self._event_count = 0
        self._ending = False
        self._begun = False
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
        if not self._begun and self._kind in ("sse", "json"):
            self._begin(data)
        if self._kind != "sse":
            self._body.append(data)
            return [], []
        events = self._parser.feed(data)
        return self._read(events) if events else ([], [])

    def _begin(self, data: bytes) -> None:
        """Corrects the kind by the first byte that is no white space: no event stream begins with a bracket, and no JSON
        with the first letter of a field or with a colon. Gateways put one type on all that they pass on."""
        first = data.removeprefix(BOM).lstrip()[:1]
        if first:
            self._begun = True
            wrong = first in b"{[" if self._kind == "sse" else first in b":dei"
            if wrong:
                self._kind = "json" if self._kind == "sse" else "sse"

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
                self._answer.read_object(value)
        return answer.content[content_from:], answer.reasoning[reasoning_from:]

    def _read_event(self, name: str, data: bytes) -> None:
        """Reads an event that is not simply a chunk."""
        answer = self._answer
        if data.strip(b' \t\r\n"') == b"[DONE]":
            # In quotes, too, where a framework writes whatever it is given as JSON.
            answer.done = True
        if answer.done or name.lower() in KEEPALIVE_EVENTS:
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
            self._answer.read_object(value)
        elif name == "error":
            answer.fail("upstream_error", error_sentence(value))
        else:
            answer.fail("protocol_error", f"{where} is {kind_of(value)}, not a JSON object")

    def _judge_stream(self, clean_end: bool) -> None:
        answer = self._answer
        if answer.done and answer.says_nothing:
            answer.fail("protocol_error", "the stream held no text and no finish reason, only its end marker")
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
        elif finish in FAILED_REASONS:
            answer.fail("upstream_error", f"the endpoint ended the answer with finish reason {answer.finish_reason}")

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
        self._answer.read_object(value)
        answer.done = True
        if answer.says_nothing:
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
        inside = read_answer(200, self._headers, body, clean_end=True)
        # The words of an error may come as an event.
        said = error_sentence(document) or (inside.message if inside.reason == "upstream_error" else "")
        reason = refusal_reason(status)
        if status in (400, 422) and not prompt_is_withheld(document) and refused_parameter(document, said):
            reason = "parameter_refused"
        kind = content_type(self._headers)
        what = f": {said}" if said else (f" with a body of {kind}" if kind else "")
        if 300 <= status < 400 and status != 304:
            what = "; redirects are not followed"
        self._answer.refused_after_all = inside.generation_seen
        self._answer.passed_on = may_have_been_passed_on(said)
        self._answer.quota_spent = quota_is_spent(document)
        self._answer.fail(reason, f"HTTP {status}{what}")

    def _completion(self, clean_end: bool, trailers: Headers) -> Completion:
        answer = self._answer
        content = well_formed("".join(answer.content))
        text, thinking = split_thinking(content)
        reasoning = well_formed("".join(answer.reasoning))
        late = _combined(trailers)
        every = _combined(self._headers) | late
        receipt = late.get(RECEIPT_HEADER, "").encode("latin-1", "replace") or answer.receipt
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
            selected_model=_name(every.get("x-vsr-selected-model", "")),
            decision=_name(every.get("x-vsr-selected-decision", "")),
            config_hash=_name(every.get("x-sr-bench-config-hash") or every.get("x-vsr-config-hash", "")),
            inference_call_count=_count(every.get("x-vsr-inference-call-count", "")),
            content_chars=len(content) + len(reasoning),
            reasoning_chars=len(reasoning) + len(thinking),
            generation_seen=answer.refused_after_all or answer.usage is not None or not answer.says_nothing,
            passed_on=answer.passed_on,
            quota_spent=answer.quota_spent,
        )


def _combined(headers: Headers) -> dict[str, str]:
    """The value of each header. One that came with several values is all of them, by comma (RFC 9110, section 5.3): no
    router's receipt, count, model or hash is such a list, so what contradicts itself is never taken at its last word."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if found.get(name, value) != value else value
    return found


def _name(value: str) -> str:
    """A header's value as its sender meant it: bytes that are read as Latin-1 are UTF-8 where they can be."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def read_answer(status: int, headers: Headers, body: bytes, *, clean_end: bool, trailers: Headers = ()) -> Completion:
    """What a saved answer says: the same as was read live."""
    reader = AnswerReader(status, headers)
    found = codings(header(headers, "content-encoding"))
    # A body that nobody could decode is kept as it came, and says nothing.
    if body and (not found or (found[0] in CODINGS and len(found) == 1)):
        reader.feed(body)
    return reader.finish(clean_end=clean_end, trailers=trailers)
