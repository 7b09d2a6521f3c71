"""JSON objects to request messages, by the rules of `srbench_kit.jsonview` the other way round; nothing is guessed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.message import Message
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, fill_value

from srbench_gateway.bodies import kind_of

_Message = TypeVar("_Message", bound=Message)
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def unknown(given: Iterable[str], known: Iterable[str], what: str, reason: str = "UNKNOWN_FIELD") -> None:
    """Raises: `InvalidInput` (`reason`) when `given` has a name that is not `known`, with the nearest one."""
    names = sorted(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names) or 'none'}"
            raise InvalidInput(reason, f"there is no {what} named {name[:100]!r}; {hint}", field=name[:100])


def fill(message: _Message, body: dict[str, Json]) -> _Message:
    """Writes `body` into the empty `message` and returns it. A null leaves an optional field out.

    Raises: `InvalidInput` (`UNKNOWN_FIELD`, `BAD_TYPE`, `OUT_OF_RANGE`, `TOO_DEEP`).
    """
    by_name = message.DESCRIPTOR.fields_by_name
    unknown(body, by_name, "field")
    for name, value in body.items():
        _write(message, by_name[name], value)
    return message


def _write(message: Message, field: Any, value: Json) -> None:
    if field.message_type is not None and field.message_type.full_name == "srbench.v1.Value":
        fill_value(getattr(message, field.name), value)
        return
    if value is None and field.has_presence:
        return
    if field.is_repeated:
        if not isinstance(value, list):
            raise _bad_type(field.name, value, "a list")
        getattr(message, field.name).extend(_scalar(field, item, f"{field.name}[{i}]") for i, item in enumerate(value))
        return
    setattr(message, field.name, _scalar(field, value, field.name))


def _scalar(field: Any, value: Json, name: str) -> str | int | float:
    kind = {
        field.TYPE_STRING: "text",
        field.TYPE_INT32: "int32",
        field.TYPE_INT64: "int64",
        field.TYPE_DOUBLE: "number",
        field.TYPE_BOOL: "bool",
    }[field.type]
    if kind == "text":
        if not isinstance(value, str):
            raise _bad_type(name, value, "text")
        if "\0" in value or (not value.isascii() and value.encode("utf-8", "replace").decode() != value):
            raise InvalidInput("BAD_TEXT", f"{name} holds a NUL or half a surrogate pair; expected text", field=name)
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise _bad_type(name, value, "true or false")
        return value
    if kind == "number":
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _bad_type(name, value, "a number")
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise _bad_type(name, value, "a whole number")
    low, high = _RANGES[kind]
    if not low <= value <= high:
        raise InvalidInput("OUT_OF_RANGE", f"{name} is beyond {low} to {high}", field=name)
    return value


def _bad_type(name: str, value: Json, wanted: str) -> InvalidInput:
    return InvalidInput("BAD_TYPE", f"{name} is {kind_of(value)}; expected {wanted}", field=name)
