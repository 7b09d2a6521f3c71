"""Text that comes from models, providers and strangers, made harmless for a terminal; and data made into lines."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srbench_kit.values import Json

# C0 and C1 controls (escape sequences), separators that break lines, marks that reorder text, halves of surrogate pairs.
_UNSAFE = "\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"[{_UNSAFE}]")
_IN_JSON = re.compile(f"[{_UNSAFE.removeprefix(chr(0) + '-' + chr(0x1F))}]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _NAMES:
        return _NAMES[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str, limit: int = 0) -> str:
    """`text` on one line with every control character shown as an escape; cut to `limit` characters when above 0."""
    if limit and len(text) > limit:
        text = text[: limit - 1] + "…"
    return _CONTROLS.sub(_escape, text)


def many_lines(text: str) -> str:
    """`text` with its lines kept and every other control character shown as an escape."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(one_line(line.replace("\t", "    ")) for line in lines)


def json_text(value: Json, *, indent: int | None = 2) -> str:
    """`value` as JSON, on one line without `indent`, whose strings hold no control character a terminal would obey."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # Outside strings JSON has none of these, so each one found is inside a string and may be escaped.
    return _IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def json_ascii(text: str) -> str:
    """The JSON `text` with every character beyond ASCII as an escape of its string."""
    return _BEYOND_ASCII.sub(lambda match: json.dumps(match.group())[1:-1], text)
