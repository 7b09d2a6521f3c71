"""Protobuf messages as the HTTP API's JSON, by rules alone, so that documents and types can be derived from them, too.

Field names are the proto's. `*_picodollars` becomes `*_usd` (a number), `create_time` becomes `created_at` (seconds since
1970), other `*_time` fields `*_at`, durations seconds. Enums lose their prefix and case. Integers stay numbers. An absent
`optional` or message field is null: unknown is shown, never left out.
"""

from __future__ import annotations

from decimal import Decimal
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
}


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
    return {json_name(field): _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Message, field: Any) -> Json:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name["value"]
        return {str(key): _single(item, entry) for key, item in sorted(value.items())}
    if field.is_repeated:
        return [_single(item, field) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(value, field)


def _single(value: Any, field: Any) -> Json:
    if field.message_type is not None:
        match field.message_type.full_name:
            case "srbench.v1.Value":
                return from_value(value)
            case "google.protobuf.Timestamp":
                return float(value.seconds + value.nanos / 1e9)
            case "google.protobuf.Duration":
                return float(value.seconds + value.nanos / 1e9)
            case _:
                return to_json(value)
    if field.enum_type is not None:
        return enum_name(field.enum_type, value)
    if field.name.endswith("_picodollars"):
        return usd(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    result: Json = value
    return result
