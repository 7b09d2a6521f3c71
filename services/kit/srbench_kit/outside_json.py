"""JSON that strangers wrote, read as leniently as it can be without guessing, and JSON to send or keep. Pure."""

from __future__ import annotations

import json
from typing import Any

import orjson

from srbench_kit.sse import BOM


def load_json(data: bytes) -> Any:
    """The JSON in `data`, as leniently as it can be read without guessing. Raises `ValueError`, `RecursionError`."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # Halves of surrogate pairs, NaN, a byte order mark, control characters in texts, and bytes that are no UTF-8 (which
        # event streams replace) take the slow path.
        return json.loads(data.removeprefix(BOM).decode("utf-8", "replace"), strict=False)


def dump_json(value: Any) -> bytes:
    """`value` as compact JSON in UTF-8."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # Integers beyond 64 bits and halves of surrogate pairs.
        return json.dumps(value, separators=(",", ":")).encode()


def dump_shallow(value: Any) -> bytes:
    """`value` as JSON; empty when it is nested too deep to be anything that we know."""
    try:
        return dump_json(value)
    except RecursionError:
        return b""
