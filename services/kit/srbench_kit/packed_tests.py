"""Tests of programs as LiveCodeBench packs them, unpacked without ever running a pickle."""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib
from collections.abc import Mapping

import orjson

from srbench_kit.canonical import canonical_bytes
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

# Unpacked tests of one problem; the largest known are a tenth of it.
MAX_BYTES = 1 << 30
# All that a pickled string is made of.
_FRAMING = frozenset({"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP"})
_STRINGS = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})


def hidden_part(row: Mapping[str, Json]) -> bytes:
    """The tests of a row, public before hidden ones, as `{"function": "", "tests": [{"input": "", "output": ""}, ...]}`.

    Raises: `InvalidInput` (`BAD_ROW`) with the field at fault.
    """
    tests = [*_listed(row, "public_test_cases"), *_listed(row, "private_test_cases")]
    kinds = {test.get("testtype") for test in tests}
    function = _function(row)
    expected = "functional" if function else "stdin"
    if not tests or kinds != {expected}:
        shown = ", ".join(sorted(str(kind) for kind in kinds)) or "no test"
        raise _bad("private_test_cases", f"the tests are of the kind {shown}; expected {expected}")
    kept: list[Json] = []
    for place, test in enumerate(tests):
        given, wanted = test.get("input"), test.get("output")
        if not isinstance(given, str) or not isinstance(wanted, str):
            raise _bad("private_test_cases", f"test {place} has no input and output as text")
        kept.append({"input": given, "output": wanted})
    return canonical_bytes({"function": function, "tests": kept})


def unpack(text: str, field: str = "private_test_cases") -> Json:
    """The tests in `text`: JSON, or base64 of zlib of a pickled string of JSON.

    Raises: `InvalidInput` (`BAD_ROW`).
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _json(text.encode(), field)
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_BYTES)
    except (binascii.Error, ValueError, zlib.error):
        raise _bad(field, f"{field} is neither JSON nor base64 of compressed data") from None
    if unpacker.unconsumed_tail:
        raise _bad(field, f"{field} unpacks to more than {MAX_BYTES} bytes")
    return _json(pickled_text(data, field).encode(), field)


def pickled_text(data: bytes, field: str) -> str:
    """The string that `data` is the pickle of, read from its instructions: nothing is looked up, built or called.

    Raises: `InvalidInput` (`BAD_ROW`) for a pickle of anything else.
    """
    found: list[str] = []
    try:
        for code, argument, _ in pickletools.genops(data):
            if code.name in _STRINGS and isinstance(argument, str):
                found.append(argument)
            elif code.name not in _FRAMING:
                raise _bad(field, f"{field}: the pickle may only hold a string; it has {code.name}")
    except (ValueError, IndexError, UnicodeDecodeError):
        raise _bad(field, f"{field} holds a broken pickle") from None
    if len(found) != 1:
        raise _bad(field, f"{field}: the pickle may only hold a string; it has {len(found)} strings")
    return found[0]


def _json(data: bytes, field: str) -> Json:
    try:
        found: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise _bad(field, f"{field} holds no JSON") from None
    return found


def _listed(row: Mapping[str, Json], field: str) -> list[dict[str, Json]]:
    value = row.get(field)
    found = unpack(value, field) if isinstance(value, str) else value
    tests = [test for test in found if isinstance(test, dict)] if isinstance(found, list) else []
    if not isinstance(found, list) or len(tests) != len(found):
        raise _bad(field, f"{field} is no list of tests")
    return tests


def _function(row: Mapping[str, Json]) -> str:
    value = row.get("metadata")
    found = _json(value.encode(), "metadata") if isinstance(value, str) and value else value
    name = found.get("func_name") if isinstance(found, dict) else None
    if name is None:
        return ""
    if not isinstance(name, str) or not name.isidentifier():
        raise _bad("metadata", f"func_name is {name!r}; expected the name of a function")
    return name


def _bad(field: str, message: str) -> InvalidInput:
    return InvalidInput("BAD_ROW", message, field=field)
