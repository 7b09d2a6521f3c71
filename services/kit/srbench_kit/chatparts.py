"""The odd shapes inside a chat completion: content parts, `<think>` spans, usage objects, error bodies.

Pure, and nothing here raises: every function bounds how deep it follows what strangers nested.
"""

from __future__ import annotations

from typing import Any

OPEN, CLOSE = "<think>", "</think>"
SENTENCE_CHARS = 500
# Request fields that a provider may refuse by name; `messages` and `model` are not among them.
PARAMETERS = frozenset(
    [
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "max_tokens",
        "max_completion_tokens",
        "min_tokens",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "length_penalty",
        "stop",
        "seed",
        "n",
        "reasoning_effort",
        "reasoning",
        "chat_template_kwargs",
        "ignore_eos",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stream",
        "stream_options",
        "include_usage",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "functions",
        "function_call",
        "metadata",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "service_tier",
        "verbosity",
        "store",
    ]
)
MAX_DEPTH = 8
_CHAT_PARAMETERS = ("messages", "input", "model")


def kind_of(value: object) -> str:
    """What `value` is called in JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def content_pieces(content: Any) -> tuple[list[str], list[str], list[str]]:
    """Text, reasoning and refusal of a list of content parts; parts of unknown types give nothing."""
    text: list[str] = []
    thinking: list[str] = []
    refusal: list[str] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            match part.get("type"):
                case "text" | "output_text" | None:
                    text += texts_of(part.get("text"))
                case "thinking" | "reasoning":
                    thinking += texts_of(part.get("thinking") or part.get("reasoning") or part.get("text"))
                case "refusal":
                    refusal += texts_of(part.get("refusal"))
    return [piece for piece in text if piece], [piece for piece in thinking if piece], [piece for piece in refusal if piece]


def texts_of(value: Any, depth: int = 0) -> list[str]:
    """The text in `value`: itself, or that of a list of texts and of objects with `text`."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and depth < MAX_DEPTH:
        return [
            text for item in value for text in texts_of(item.get("text") if isinstance(item, dict) else item, depth + 1)
        ]
    return []


def split_thinking(content: str) -> tuple[str, str]:
    """The final channel of `content` and the reasoning inside it.

    `<think>` to `</think>` is reasoning, and so is all before a `</think>` that nothing opened. While a span is open there
    is no final channel. White space after the last span belongs to the tags, not to the answer.
    """
    if OPEN not in content and CLOSE not in content:
        return content, ""
    final: list[str] = []
    thinking: list[str] = []
    at, opened, closed = 0, content.find(OPEN), content.find(CLOSE)
    while at < len(content):
        # A tag is looked for again only when it was passed: models can write a hundred thousand of them.
        opened = content.find(OPEN, at) if 0 <= opened < at else opened
        closed = content.find(CLOSE, at) if 0 <= closed < at else closed
        end = closed + len(CLOSE) if closed >= 0 else len(content)
        if closed >= 0 and (opened < 0 or closed < opened):
            # Nothing opened it here: what looked final so far was reasoning, too.
            thinking += [*final, content[at:closed]]
            final = []
        elif opened < 0:
            final.append(content[at:])
        elif closed < 0:
            thinking.append(content[opened + len(OPEN) :])
            final = []
        else:
            final.append(content[at:opened])
            thinking.append(content[opened + len(OPEN) : closed])
        at = end
    return "".join(final).lstrip(), "".join(thinking)


def merge_usage(old: dict[str, Any], new: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """`old` with the fields of `new` that are not null, objects merged field by field. Nothing is ever summed."""
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.setdefault(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            if depth < MAX_DEPTH:
                merged[key] = merge_usage(before if isinstance(before, dict) else {}, value, depth + 1)
        else:
            merged[key] = value
    return merged


def well_formed(text: str) -> str:
    """`text` with halves of surrogate pairs joined, or replaced where the other half is missing."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def error_sentence(error: Any, depth: int = 0) -> str:
    """What an error from outside says, on one line and shortened."""
    text = ""
    if isinstance(error, str):
        text = error
    elif depth >= MAX_DEPTH:
        return ""
    elif isinstance(error, list) and error:
        return error_sentence(error[0], depth + 1)
    elif isinstance(error, dict):
        for key in ("message", "msg", "detail", "error", "error_description", "title"):
            if error.get(key):
                text = error_sentence(error[key], depth + 1)
                break
        if text:
            text = _place(error.get("loc")) + text
        code = error.get("code")
        if not text and isinstance(code, int | str):
            text = f"code {code}"
    text = " ".join(well_formed(text).split())
    return text if len(text) <= SENTENCE_CHARS else text[: SENTENCE_CHARS - 1] + "…"


def _place(loc: Any) -> str:
    """Where in the request an error of FastAPI lies, in quotes; empty when it does not say."""
    names = [str(name) for name in loc if name != "body"] if isinstance(loc, list) else []
    return f"'{'.'.join(names)}': " if names else ""


def refused_parameter(error: Any, sentence: str) -> str:
    """The request parameter that an error from outside names; empty when it names none."""
    inner = error.get("error", error) if isinstance(error, dict) else None
    if isinstance(inner, dict):
        if inner.get("code") == "context_length_exceeded":
            return ""
        named = inner.get("param")
        if isinstance(named, str) and named and not named.startswith(_CHAT_PARAMETERS):
            return named
    words = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in sentence).split()
    # A short word such as `stop` or `n` is a parameter only where it is quoted; plain prose uses them, too.
    for word in words:
        if word in PARAMETERS and (
            "_" in word or word == "temperature" or any(f"{q}{word}{q}" in sentence for q in "'\"`")
        ):
            return word
    return ""


def refusal_reason(status: int) -> str:
    """The reason for an HTTP status that is not a success; any number has one."""
    match status:
        case 401 | 403:
            return "auth_refused"
        case 429:
            return "rate_limited"
        case 503 | 529:
            return "overloaded"
        case _:
            return "http_error"
