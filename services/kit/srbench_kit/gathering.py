"""What the objects of a chat completion say, chunk by chunk. Pure; nothing here raises on any JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from srbench_kit.answer_signs import error_of, finish_reason, reasoning_pieces, usage_of
from srbench_kit.chatparts import content_pieces, kind_of, merge_usage, well_formed
from srbench_kit.outside_json import dump_json, dump_shallow
from srbench_kit.values import Json

RECEIPT_FIELD, RECEIPT_FIELD_SHORT = "x_vsr_model_usage", "vsr_model_usage"


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """One tool call, its arguments as sent: never repaired, perhaps not valid JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_another(self, id: Any) -> bool:
        """Whether a piece with `id` belongs to another call."""
        return bool(self.id and id and isinstance(id, str) and id != self.id)

    def well_formed(self) -> ToolCall:
        """The same call as text that UTF-8 can write."""
        return ToolCall(id=well_formed(self.id), name=well_formed(self.name), arguments=well_formed(self.arguments))


@dataclass(slots=True)
class Gathered:
    """What the chunks of one answer, or its document, have said so far."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    tool_calls: dict[int, ToolCall] = field(default_factory=dict)
    # By the index in the stream: where pieces with it go now, when that is elsewhere.
    tool_slots: dict[int, int] = field(default_factory=dict)
    finish_reason: str = ""
    # Whether it came in deltas so far, and not as a whole message.
    by_deltas: bool = False
    model: str = ""
    usage: dict[str, Json] | None = None
    receipt: bytes = b""
    done: bool = False
    # Refused by its status, with a generation in its body.
    refused_after_all: bool = False
    passed_on: bool = False
    quota_spent: bool = False
    reason: str = ""
    message: str = ""

    @property
    def says_nothing(self) -> bool:
        """Whether no choice said anything at all, not even that it is over: a server that dropped the request does so."""
        return not (self.finish_reason or self.content or self.reasoning or self.refusal or self.tool_calls)

    def fail_if(self, error: str) -> None:
        """Keeps what the endpoint reported, when it reported an error."""
        if error:
            self.fail("upstream_error", error)

    def fail(self, reason: str, message: str) -> None:
        """Keeps the first failure."""
        if not self.reason:
            self.reason, self.message = reason, message

    def read_object(self, value: dict[str, Any]) -> None:
        """Reads a chunk, or a whole document."""
        choices = value.get("choices")
        # Most objects are chunks of text: what they do not hold is not looked for in them.
        if not choices or value.get("error"):
            self.fail_if(error_of(value))
        model = value.get("model")
        if model and model != self.model and isinstance(model, str):
            self.model = model
        if value.get("usage") or "x_groq" in value:
            self._read_usage(value)
        if RECEIPT_FIELD in value or RECEIPT_FIELD_SHORT in value:
            receipt = value.get(RECEIPT_FIELD) or value.get(RECEIPT_FIELD_SHORT)
            self.receipt = dump_shallow(receipt) if receipt is not None else self.receipt
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and (not (index := choice.get("index")) or index == "0"):
                    self._read_choice(choice)
        elif choices is not None:
            self.fail("protocol_error", f"choices is {kind_of(choices)}, not a list")

    def _read_choice(self, choice: dict[str, Any]) -> None:
        finish = choice.get("finish_reason")
        if finish:
            self.finish_reason = finish_reason(finish) or self.finish_reason
        if "usage" in choice:
            self._read_usage(choice)
        if choice.get("error"):
            self.fail_if(error_of(choice))
        delta = self._said_in(choice)
        if delta is None:
            return
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self.content.append(content)
            if len(delta) == 1:
                return
        elif isinstance(content, list):
            text, thinking, refused = content_pieces(content)
            self.content += text
            self.reasoning += thinking
            self.refusal += refused
        elif content is not None:
            self.fail("protocol_error", f"content is {kind_of(content)}, not a text or a list of parts")
        self._read_side_channels(delta)

    def _said_in(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """The delta or the message of a choice; `None` when there is neither."""
        delta = choice.get("delta")
        if delta and isinstance(delta, dict):
            if not self.by_deltas:
                self.by_deltas = any(value for name, value in delta.items() if name != "role")
            return delta
        # A whole message beside or after its deltas (Perplexity) says them again.
        message = None if self.by_deltas else choice.get("message")
        if message is None and isinstance(choice.get("text"), str):
            # The shape of a plain completion.
            message = {"content": choice["text"]}
        return message if isinstance(message, dict) else None

    def _read_usage(self, holder: dict[str, Any]) -> None:
        usage = usage_of(holder)
        if usage is not None:
            self.usage = merge_usage(self.usage or {}, usage)

    def _read_side_channels(self, delta: dict[str, Any]) -> None:
        self.reasoning += reasoning_pieces(delta)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self.refusal.append(refusal)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._read_tool_call(position, call)

    def _read_tool_call(self, position: int, call: dict[str, Any]) -> None:
        calls, given = self.tool_calls, call.get("index")
        index = given if isinstance(given, int) else position
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        key = self.tool_slots.get(index, index)
        if key in calls and name and calls[key].is_another(call.get("id")):
            # Gemini gives all parallel calls one index; each has its own id, and comes with its name.
            key = self.tool_slots[index] = max(calls) + 1
        found = calls.setdefault(key, ToolCall())
        if isinstance(call.get("id"), str):
            found.id = call["id"] or found.id
        if isinstance(function, dict):
            # Some repeat the whole name in every piece.
            if isinstance(name, str) and name != found.name:
                found.name += name
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                found.arguments += arguments
            elif isinstance(arguments, dict):
                found.arguments += dump_json(arguments).decode()
