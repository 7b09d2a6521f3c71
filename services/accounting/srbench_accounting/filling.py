"""Core values into messages whose fields have the same names. Pure."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from google.protobuf.message import Message

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def fill(message: Message, value: DataclassInstance, skip: frozenset[str] = frozenset()) -> None:
    """Copies fields that have the same name on both sides; a value without its field is a bug and raises."""
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name in skip or item is None:
            continue
        if isinstance(item, tuple):
            getattr(message, field.name).extend(item)
        else:
            setattr(message, field.name, item)
