"""Checks of single values from outside. Each raises one sentence that names the field, its value and what was expected."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection, Mapping
from typing import TypeGuard

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

MAX_INT = 2**53 - 1
MAX_SHOWN = 80


def join(path: str, key: str) -> str:
    """The path of `key` below `path`."""
    return f"{path}.{key}" if path else key


def show(value: Json) -> str:
    """`value` as a message shows it: JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def bad(path: str, value: Json, expected: str, reason: str = "BAD_FIELD") -> InvalidInput:
    """The error for a value that is not what was expected."""
    return InvalidInput(
        reason, f"{path} is {show(value)}; expected {expected}", field=path, value=show(value), expected=expected
    )


def missing(path: str, expected: str) -> InvalidInput:
    """The error for a field that has to be there."""
    return InvalidInput("MISSING_FIELD", f"{path} is missing; expected {expected}", field=path, expected=expected)


def known_keys(found: Mapping[str, Json], known: Collection[str], path: str) -> None:
    """Refuses keys other than `known` and says which known name is meant, or which there are."""
    for key in found:
        if key not in known:
            names = sorted(known)
            near = difflib.get_close_matches(key, names, 1, 0.0)
            # A name that is like none of them was hardly meant to be the nearest.
            meant = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean {join(path, meant[0])}?" if meant else f"known are {', '.join(names) or 'none'}"
            name = join(path, key)
            raise InvalidInput("UNKNOWN_FIELD", f"{name} is not known; {hint}", field=name, nearest=near[0] if near else "")


def obj(value: Json, path: str) -> dict[str, Json]:
    """An object."""
    if not isinstance(value, dict):
        raise bad(path, value, "an object")
    return value


def items(value: Json, path: str) -> list[Json]:
    """A list."""
    if not isinstance(value, list):
        raise bad(path, value, "a list")
    return value


def text(value: Json, path: str, *, most: int = 4096) -> str:
    """A text of 1 to `most` characters."""
    if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
        raise bad(path, value, f"a text of 1 to {most} characters" + (", none of them NUL" if "\0" in str(value) else ""))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad(path, value.encode("utf-8", "replace").decode(), "a text without half surrogate pairs") from None
    return value


def sha256(value: Json, path: str) -> str:
    """`value` when it is a SHA-256 in lower-case hex."""
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise bad(path, value, "64 lower-case hex digits")
    return value


def boolean(value: Json, path: str) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise bad(path, value, "true or false")
    return value


def one_of(value: Json, path: str, allowed: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise bad(path, value, _words(allowed))
    return value


def is_int(value: Json) -> TypeGuard[int]:
    """Whether `value` is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def integer(value: Json, path: str, least: int, most: int = MAX_INT) -> int:
    """An integer from `least` to `most`; `true` and `1.0` are none."""
    if not is_int(value) or not least <= value <= most:
        upper = f"an integer from {least} to {most}" if most < MAX_INT else f"an integer of at least {least}"
        raise bad(path, value, upper)
    return value


def number(
    value: Json, path: str, expected: str, least: float = -math.inf, most: float = math.inf, *, above: bool = False
) -> float:
    """A finite number from `least` (itself excluded when `above`) to `most`."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if good:
        assert isinstance(value, int | float)
        good = -math.inf < value < math.inf and least <= value <= most and not (above and value == least)
    if not good:
        raise bad(path, value, expected)
    assert isinstance(value, int | float)
    return value


def _words(allowed: Collection[str]) -> str:
    words = list(allowed)
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
