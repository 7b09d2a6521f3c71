"""One usage object out of the several that a stream may carry."""

from __future__ import annotations

from collections.abc import Iterable

from srbench_kit.values import Json

# Usage objects of providers are two levels deep; below this nothing is merged, so that a hostile one costs no stack.
_DEPTH = 4


def merge_usage(events: Iterable[Json]) -> dict[str, Json] | None:
    """The usage of a whole answer: per field the last value that is not null, nothing summed, null over nothing.

    Events that are not objects carry no field and change nothing; `None` when no event was an object.
    """
    merged: dict[str, Json] | None = None
    for event in events:
        if isinstance(event, dict):
            merged = _overlay(merged or {}, event, _DEPTH)
    return merged


def _overlay(base: dict[str, Json], over: dict[str, Json], depth: int) -> dict[str, Json]:
    result = dict(base)
    for name, value in over.items():
        before = result.get(name)
        if value is None:
            result.setdefault(name, None)
        elif isinstance(value, dict) and isinstance(before, dict) and depth > 1:
            result[name] = _overlay(before, value, depth - 1)
        else:
            result[name] = value
    return result
