"""Reference answers in the form that graders can use. Pure: planners refuse others before anything is paid."""

from __future__ import annotations

from typing import TypeAlias

from srbench_kit.values import Json

# Options of a case that does not say how many it has, and the most that have letters.
DEFAULT_OPTIONS = 10
MAX_OPTIONS = 26
MAX_SIDE = 30

Grid: TypeAlias = list[list[int]]


def letter(value: Json, options: int) -> str | None:
    """The letter of the right option, of `options` (0 when the case is silent); `None` when `value` is none of them."""
    found = value.strip().upper() if isinstance(value, str) else ""
    last = min(options or DEFAULT_OPTIONS, MAX_OPTIONS)
    return found if len(found) == 1 and 0 <= ord(found) - ord("A") < last else None


def grid(value: Json) -> Grid | None:
    """`value` as a grid: 1 to 30 rows of the same 1 to 30 whole numbers from 0 to 9; `None` when it is anything else."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SIDE:
        return None
    rows: Grid = []
    for row in value:
        if not isinstance(row, list) or not 1 <= len(row) <= MAX_SIDE:
            return None
        cells = [cell for cell in row if type(cell) is int and 0 <= cell <= 9]
        if len(cells) != len(row) or len(cells) != len(value[0] if isinstance(value[0], list) else ()):
            return None
        rows.append(cells)
    return rows


def grids(value: Json) -> list[Grid] | None:
    """`value` as a list of at least one grid; `None` when it is anything else."""
    found = [grid(item) for item in value] if isinstance(value, list) else []
    made = [item for item in found if item is not None]
    return made if made and len(made) == len(found) else None


def text(value: Json) -> str | None:
    """`value` when it is a text that says something."""
    return value if isinstance(value, str) and value.strip() else None
