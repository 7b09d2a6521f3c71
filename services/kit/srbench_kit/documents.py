"""Reading JSON and YAML that people or strangers wrote: duplicate keys, aliases, bombs and odd numbers are refused."""

from __future__ import annotations

import json
import re

from srbench.v1 import value_pb2 as pb

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, from_value

MAX_DEPTH = 200
_HALF = re.compile("[\ud800-\udfff]")


def load_json(text: str | bytes, name: str) -> Json:
    """The JSON document `text`. `name` is what messages call it.

    Raises: `InvalidInput` (`BAD_JSON`, `DUPLICATE_KEY`, `BAD_NUMBER`, `BAD_ENCODING`, `BAD_TEXT`, `TOO_DEEP`).
    """
    if isinstance(text, bytes):
        text = decode_utf8(text, name)

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key, value in pairs:
            if key in found:
                raise InvalidInput("DUPLICATE_KEY", f"{name} has the key {key!r} twice in one object", field=key)
            found[key] = value
        return found

    def constant(word: str) -> Json:
        raise InvalidInput("BAD_NUMBER", f"{name} holds {word}, which is not a JSON number", value=word)

    try:
        value: Json = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput("BAD_JSON", f"{name} is not JSON: {error.msg.lower()} at {where}", line=error.lineno) from None
    except RecursionError:
        raise InvalidInput("TOO_DEEP", f"{name} is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:
        raise InvalidInput("BAD_NUMBER", f"{name} holds an integer with more than 4300 digits") from None
    check_values(value, name)
    return value


def check_values(value: Json, name: str, depth: int = 0) -> None:
    """Refuses numbers that overflowed to infinity, halves of surrogate pairs, and nesting beyond `MAX_DEPTH`."""
    if depth > MAX_DEPTH:
        raise InvalidInput("TOO_DEEP", f"{name} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        _check_text(value, name)
    elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise InvalidInput("BAD_NUMBER", f"{name} holds a number that is not finite")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, name)
            check_values(item, name, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_values(item, name, depth + 1)


def _check_text(text: str, name: str) -> None:
    # It cannot be stored or sent, and a question that was mended in silence would not be the one that was given.
    half = None if text.isascii() else _HALF.search(text)
    if half:
        raise InvalidInput("BAD_TEXT", f"{name} holds \\u{ord(half[0]):04x}, half a surrogate pair; expected whole ones")


def received(value: pb.Value, name: str) -> Json:
    """The JSON that a caller put into `value`, a field called `name`.

    Raises: `InvalidInput` (`BAD_NUMBER`, `DUPLICATE_KEY`, `TOO_DEEP`).
    """
    json = from_value(value, unique=True)
    check_values(json, name)
    return json


def decode_utf8(data: bytes, name: str) -> str:
    """`data` as UTF-8 text, a byte order mark dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("BAD_ENCODING", f"{name} is not UTF-8: bad byte at offset {error.start}") from None


def load_yaml(text: str | bytes, name: str) -> Json:
    """The YAML document `text`, limited to what JSON can say.

    Raises: `InvalidInput` (`BAD_YAML`, `DUPLICATE_KEY`, `YAML_ALIAS`, `BAD_KEY`, `BAD_NUMBER`, `BAD_TEXT`, `TOO_DEEP`).
    """
    # Most processes never read YAML, and its parser takes longer to import than all the rest of this file.
    from srbench_kit import yaml_documents

    if isinstance(text, bytes):
        text = decode_utf8(text, name)
    value = yaml_documents.load(text, name, MAX_DEPTH)
    check_values(value, name)
    return value
