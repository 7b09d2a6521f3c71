"""JSON values between Python and `srbench.v1.Value`, without loss."""

from __future__ import annotations

import re
from typing import TypeAlias

from srbench.v1 import value_pb2 as pb

from srbench_kit.errors import InvalidInput

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_HALF = re.compile("[\ud800-\udfff]")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# Protobuf parsers refuse messages nested deeper than 100. An array is two messages, an object three; ten are left
# for the messages around the value.
_MAX_WIRE_DEPTH = 90


def to_value(json: Json) -> pb.Value:
    """The message that holds `json`.

    Raises: `InvalidInput` (`TOO_DEEP`) when it is nested deeper than messages may be: 30 objects or 45 arrays;
    `TypeError` for anything that is not JSON.
    """
    value = pb.Value()
    fill_value(value, json)
    return value


def fill_value(value: pb.Value, json: Json, depth: int = 0) -> None:
    """Writes `json` into an empty message in place. `depth` counts the messages around it."""
    if depth > _MAX_WIRE_DEPTH:
        raise InvalidInput("TOO_DEEP", "a JSON value is nested deeper than 30 objects or 45 arrays")
    # The commonest first: whole plans and pages go through here.
    if isinstance(json, str):
        value.string_value = json if json.isascii() else _without_halves(json)
    elif isinstance(json, bool):
        value.bool_value = json
    elif isinstance(json, int):
        if _INT64_MIN <= json <= _INT64_MAX:
            value.int_value = json
        else:
            value.big_int_value = str(json)
    elif isinstance(json, dict):
        members = value.object_value.members
        if not json:
            value.object_value.SetInParent()
        for key, item in json.items():
            fill_value(members.add(key=key if key.isascii() else _without_halves(key)).value, item, depth + 3)
    elif isinstance(json, float):
        value.float_value = json
    elif isinstance(json, list | tuple):
        items = value.list_value.items
        if not json:
            value.list_value.SetInParent()
        for item in json:
            fill_value(items.add(), item, depth + 2)
    elif json is not None:
        raise TypeError(f"not a JSON value: {type(json).__name__}")


def _without_halves(text: str) -> str:
    # Half a surrogate pair is valid JSON and invalid UTF-8; it becomes U+FFFD on the wire.
    return _HALF.sub("\ufffd", text)


def from_value(value: pb.Value, *, unique: bool = False) -> Json:
    """The JSON that `value` holds. With `unique` no object may have a key twice; otherwise the last one counts.

    Raises: `InvalidInput` (`BAD_NUMBER`, `DUPLICATE_KEY`).
    """
    kind = value.WhichOneof("kind")
    match kind:
        case None:
            return None
        case "list_value":
            return [from_value(item, unique=unique) for item in value.list_value.items]
        case "object_value":
            members = value.object_value.members
            found = {member.key: from_value(member.value, unique=unique) for member in members}
            if unique and len(found) < len(members):
                raise InvalidInput("DUPLICATE_KEY", f"an object with the keys {', '.join(found)} has one of them twice")
            return found
        case "big_int_value":
            return _big_int(value.big_int_value)
        case _:
            result: bool | int | float | str = getattr(value, kind)
            return result


def _big_int(digits: str) -> int:
    # 4300 digits are the most that Python reads, and that a JSON document of ours may have.
    if not re.fullmatch(r"-?[0-9]{1,4300}", digits, re.ASCII):
        raise InvalidInput("BAD_NUMBER", "big_int_value holds no integer of 1 to 4300 decimal digits")
    return int(digits)


def object_of(value: pb.Value) -> dict[str, Json]:
    """The object that `value` holds; an empty one when it is null."""
    json = from_value(value)
    return json if isinstance(json, dict) else {}
