"""Canonical JSON text and digests, as published in the sr-bench 1.0 protocol.

Keys are sorted by code point, separators carry no spaces, non-ASCII is written raw, floats in shortest round-trip form.
Not RFC 8785: that writes `1.0` as `1` and sorts keys by UTF-16 unit, which would change every published digest.
"""

from __future__ import annotations

import hashlib
import json

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json


def canonical(value: Json) -> str:
    """The canonical text of `value`. Raises `InvalidInput` for numbers that are not finite."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise InvalidInput("NOT_CANONICAL", "a number is not finite; JSON has no NaN and no infinity") from error


def canonical_bytes(value: Json) -> bytes:
    """The canonical text in UTF-8. Raises `InvalidInput` for lone surrogates."""
    try:
        return canonical(value).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("NOT_CANONICAL", "a text holds half of a surrogate pair, which UTF-8 cannot write") from error


def digest(value: Json) -> str:
    """Lower-case hex SHA-256 of the canonical text."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def fold_numbers(value: Json) -> Json:
    """`value` with every integral float as an integer, so that a trip through a browser keeps a plan's hash."""
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case list():
            return [fold_numbers(item) for item in value]
        case dict():
            return {key: fold_numbers(item) for key, item in value.items()}
        case _:
            return value


def folded_digest(value: Json) -> str:
    """The digest of `value` with its numbers folded; plans are named by it."""
    return digest(fold_numbers(value))
