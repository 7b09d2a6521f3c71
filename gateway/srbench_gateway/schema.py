"""Pieces of JSON Schema for answers that are more than one message."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

# Documents of a foreign shape: nothing in them is ours to type.
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
ANYTHING: Schema = {"type": "object"}
# Planning never asks a model; released clients check it.
NO_MODEL_REQUESTS: Schema = {"type": "integer", "const": 0}


def ref(message: type[Message] | str) -> Schema:
    """The component of a message, or of a view by its name."""
    name = message if isinstance(message, str) else message.DESCRIPTOR.name
    return {"$ref": f"#/components/schemas/{name}"}


def listed(item: Schema) -> Schema:
    """An array of `item`."""
    return {"type": "array", "items": item}


def mapped(item: Schema) -> Schema:
    """An object with free keys and values of `item`."""
    return {"type": "object", "additionalProperties": item}


def nullable(schema: Schema) -> Schema:
    """`schema` or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return schema if not schema else {"anyOf": [schema, {"type": "null"}]}


def record(**properties: Any) -> Schema:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
