"""Protobuf messages as the HTTP API's JSON, by rules alone, so that documents and types can be derived from them, too.

Field names are the proto's. `*_picodollars` becomes `*_usd` (a number), `create_time` becomes `created_at` (seconds since
1970), other `*_time` fields `*_at`, durations seconds. Enums lose their prefix and case. Integers stay numbers. An absent
`optional` or message field is null: unknown is shown, never left out.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from srbench_kit.values import Json, from_value

PICO = Decimal(10) ** 12
_TIMES = {
    "create_time": "created_at",
    "update_time": "updated_at",
    "start_time": "started_at",
    "finish_time": "finished_at",
    "delete_time": "deleted_at",
    "phase_start_time": "phase_started_at",
}
_Read = Callable[[Any], Json]


def json_name(field: Any) -> str:
    """The JSON name of a field."""
    name: str = field.name
    if name.endswith("_picodollars"):
        return name.removesuffix("_picodollars") + "_usd"
    if field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
        return _TIMES.get(name, name.removesuffix("_time") + "_at")
    return name


def usd(picodollars: int) -> float | int:
    """Picodollars as US dollars: the float nearest to the exact decimal, 0 for none."""
    return float(Decimal(picodollars) / PICO) if picodollars else 0


def enum_name(descriptor: EnumDescriptor, number: int) -> str | None:
    """The short lower-case name of an enum value; `None` for the unspecified one."""
    value = descriptor.values_by_number.get(number)
    if value is None or number == 0:
        return None
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return str(value.name.removeprefix(prefix).lower())


def to_json(message: Message) -> dict[str, Json]:
    """The JSON object of `message`."""
    return {name: read(message) for name, read in _readers(message.DESCRIPTOR)}


@cache
def _readers(descriptor: Any) -> tuple[tuple[str, _Read], ...]:
    """What to read of a kind of message, worked out once: asking descriptors again costs ten times the reading."""
    return tuple((json_name(field), _reader(field)) for field in descriptor.fields)


def _reader(field: Any) -> _Read:
    get: Callable[[Any], Any] = attrgetter(field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        single = _converter(field.message_type.fields_by_name["value"]) or _same
        return lambda message: {str(key): single(item) for key, item in sorted(get(message).items())}
    convert = _converter(field)
    if field.is_repeated:
        return lambda message: list(get(message)) if convert is None else [convert(item) for item in get(message)]
    if field.has_presence:
        known, name = convert or _same, field.name
        return lambda message: known(get(message)) if message.HasField(name) else None
    if convert is None:
        return get
    return lambda message: convert(get(message))


def _converter(field: Any) -> _Read | None:
    """How one value of `field` becomes JSON; `None` when it is JSON already."""
    if field.message_type is not None:
        match field.message_type.full_name:
            case "srbench.v1.Value":
                return from_value
            case "google.protobuf.Timestamp" | "google.protobuf.Duration":
                return lambda value: float(value.seconds + value.nanos / 1e9)
            case _:
                return to_json
    if field.enum_type is not None:
        names = {number: enum_name(field.enum_type, number) for number in field.enum_type.values_by_number}
        return names.get
    if field.name.endswith("_picodollars"):
        return usd
    if field.type == field.TYPE_BYTES:
        return lambda value: value.decode("utf-8", "replace")
    return None


def _same(value: Any) -> Json:
    result: Json = value
    return result
