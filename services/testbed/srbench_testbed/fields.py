"""Reading documents that people wrote, member by member: unknown members and wrong types get one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json


class Fields:
    """The members of one JSON object. `name` is what messages call it; `finish` refuses what nobody asked for."""

    def __init__(self, value: Json, name: str) -> None:
        if not isinstance(value, dict):
            raise InvalidInput("BAD_FIELD", f"{name} is {_shown(value)}; expected an object", field=name)
        self._members, self._name = value, name
        self._known: list[str] = []

    def _take(self, key: str) -> Json:
        self._known.append(key)
        return self._members.get(key)

    def has(self, key: str) -> bool:
        """Whether the member is there and not null."""
        return self._members.get(key) is not None

    def _bad(self, key: str, value: Json, expected: str) -> InvalidInput:
        name = f"{self._name}.{key}"
        return InvalidInput("BAD_FIELD", f"{name} is {_shown(value)}; expected {expected}", field=name)

    def text(self, key: str, default: str | None = None, allowed: Sequence[str] = ()) -> str:
        """A text, one of `allowed` when given."""
        value = self._take(key)
        value = default if value is None else value
        if not isinstance(value, str) or (default is None and not value):
            raise self._bad(key, value, "a text")
        if allowed and value not in allowed:
            raise self._bad(key, value, "one of " + ", ".join(allowed))
        return value

    def number(self, key: str, default: float, low: float = 0.0, high: float = float("inf")) -> float:
        """A number from `low` to `high`."""
        value = self._take(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._bad(key, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, key: str, default: int, low: int = 0, high: int = 2**53) -> int:
        """A whole number from `low` to `high`."""
        value = self._take(key)
        value = default if value is None else value
        if type(value) is not int or not low <= value <= high:
            raise self._bad(key, value, f"a whole number from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._bad(key, value, "true or false")
        return value

    def items(self, key: str) -> list[Json]:
        """A list, empty when absent."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._bad(key, value, "a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when absent."""
        found: list[str] = []
        for item in self.items(key):
            if not isinstance(item, str) or not item:
                raise self._bad(key, item, "a list of texts")
            found.append(item)
        return tuple(found)

    def any(self, key: str) -> Json:
        """Whatever is there; None when absent."""
        return self._take(key)

    def inner(self, key: str) -> Fields:
        """The object under `key`, an empty one when absent."""
        value = self._take(key)
        return Fields({} if value is None else value, f"{self._name}.{key}")

    def finish(self) -> None:
        """Raises: `InvalidInput` (`UNKNOWN_FIELD`) for a member that nobody asked for, with the nearest known name."""
        for key in self._members:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "; known are " + ", ".join(self._known)
                raise InvalidInput(
                    "UNKNOWN_FIELD", f"{self._name} has no member {key!r}{hint}", field=f"{self._name}.{key}"
                )

    @property
    def members(self) -> dict[str, Json]:
        """All members as they are; counts as asking for each."""
        self._known.extend(self._members)
        return self._members


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
