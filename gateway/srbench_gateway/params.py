"""Query parameters: declared by each route, each at most once, unknown ones refused with the nearest name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes

from srbench_kit.errors import InvalidInput

from srbench_gateway.fields import unknown

MAX_FIELDS = 20
MAX_TEXT_CHARS = 2048


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter that a route takes.

    Attributes:
        name: as in the query.
        kind: `int`, `bool` (`true` or `false`) or `text`.
        about: one sentence for the API document.
        low, high: bounds of an `int`; longest `text` in characters is `high`.
        default: the value when it is absent; `None` leaves it out.
        choices: allowed texts; empty for any.
        required: whether it must be there.
    """

    name: str
    kind: Literal["int", "bool", "text"]
    about: str
    low: int = 0
    high: int = 2**53 - 1
    default: int | bool | str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False


Found = dict[str, "int | bool | str"]


def parse(query: bytes, declared: tuple[Param, ...]) -> Found:
    """The parameters in `query`, checked, with defaults.

    Raises: `InvalidInput` (`UNKNOWN_PARAMETER`, `REPEATED_PARAMETER`, `BAD_PARAMETER`, `MISSING_PARAMETER`).
    """
    given = _pairs(query)
    unknown(given, (param.name for param in declared), "parameter", "UNKNOWN_PARAMETER")
    found: Found = {}
    for param in declared:
        if param.name in given:
            found[param.name] = _value(param, given[param.name])
        elif param.required:
            raise InvalidInput("MISSING_PARAMETER", f"the parameter {param.name} is missing", field=param.name)
        elif param.default is not None:
            found[param.name] = param.default
    return found


def _pairs(query: bytes) -> dict[str, str]:
    parts = query.split(b"&") if query else []
    if len(parts) > MAX_FIELDS:
        raise InvalidInput("BAD_PARAMETER", f"there are {len(parts)} parameters; expected at most {MAX_FIELDS}")
    given: dict[str, str] = {}
    for part in parts:
        raw_name, _, raw_value = part.partition(b"=")
        name, value = _text(raw_name), _text(raw_value)
        if name in given:
            raise InvalidInput("REPEATED_PARAMETER", f"the parameter {name[:100]} came more than once", field=name[:100])
        given[name] = value
    return given


def _text(raw: bytes) -> str:
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise InvalidInput("BAD_PARAMETER", "the query is not percent-encoded UTF-8") from None
    if "\0" in text:
        raise InvalidInput("BAD_PARAMETER", "the query holds a NUL; expected text")
    return text


def _value(param: Param, text: str) -> int | bool | str:
    match param.kind:
        case "int":
            digits = text.isascii() and text.isdecimal() and len(text) <= 18
            if not digits or not param.low <= int(text) <= param.high:
                raise _bad(param, text, f"a whole number from {param.low} to {param.high}")
            return int(text)
        case "bool":
            if text not in ("true", "false"):
                raise _bad(param, text, "true or false")
            return text == "true"
        case "text":
            if param.choices and text not in param.choices:
                raise _bad(param, text, f"one of {', '.join(param.choices)}")
            if len(text) > min(param.high, MAX_TEXT_CHARS):
                raise _bad(param, text[:20] + "...", f"at most {min(param.high, MAX_TEXT_CHARS)} characters")
            return text


def _bad(param: Param, text: str, wanted: str) -> InvalidInput:
    return InvalidInput("BAD_PARAMETER", f"{param.name} is {text[:100]!r}; expected {wanted}", field=param.name)
