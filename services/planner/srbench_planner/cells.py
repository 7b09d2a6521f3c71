"""Cells: one (case, target) pair each, numbered in dispatch order, and the states they pass through."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import IntEnum

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks


class CellState(IntEnum):
    """Where a cell stands; the numbers are those of the contract."""

    QUEUED = 1
    LEASED = 2
    DONE = 3
    FAILED = 4
    CANCELLED = 5
    INTERRUPTED = 6


TERMINAL = frozenset({CellState.DONE, CellState.FAILED, CellState.CANCELLED, CellState.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class CellMatrix:
    """The planned cells in case-major order: all targets of the first case, then of the second.

    Attributes:
        case_count: cases of the plan.
        target_count: targets of the plan.
        picked: for a part of the matrix, `case * target_count + target` of each cell, rising; `None` for the whole.
    """

    case_count: int
    target_count: int
    picked: array[int] | None = None

    def __len__(self) -> int:
        return self.case_count * self.target_count if self.picked is None else len(self.picked)

    def pair(self, cell: int) -> tuple[int, int]:
        """The positions of the cell's case and target in the plan."""
        return divmod(cell if self.picked is None else self.picked[cell], self.target_count)

    def target(self, cell: int) -> int:
        """The position of the cell's target alone."""
        return (cell if self.picked is None else self.picked[cell]) % self.target_count


def pick_cells(value: Json, case_ids: list[str], target_ids: list[str]) -> CellMatrix:
    """The cells that `execution_cells` names; absent or complete, the whole matrix.

    Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`, `DUPLICATE_CELL`, `TARGET_WITHOUT_CELLS`).
    """
    whole = CellMatrix(len(case_ids), len(target_ids))
    if value is None:
        return whole
    entries = checks.items(value, "execution_cells")
    if not entries:
        raise checks.bad("execution_cells", entries, "at least one cell")
    case_at = {name: index for index, name in enumerate(case_ids)}
    target_at = {name: index for index, name in enumerate(target_ids)}
    found: set[int] = set()
    for index, entry in enumerate(entries):
        path = f"execution_cells[{index}]"
        pair = checks.obj(entry, path)
        checks.known_keys(pair, ("case_id", "target_id"), path)
        case = _position(pair.get("case_id"), case_at, f"{path}.case_id", "a case of this plan")
        target = _position(pair.get("target_id"), target_at, f"{path}.target_id", "a target of this plan")
        number = case * len(target_ids) + target
        if number in found:
            raise InvalidInput("DUPLICATE_CELL", f"{path} repeats a cell; expected each pair once", field=path)
        found.add(number)
    idle = set(target_at.values()) - {number % len(target_ids) for number in found}
    if idle:
        name = target_ids[min(idle)]
        raise InvalidInput(
            "TARGET_WITHOUT_CELLS", f"execution_cells has no cell of target {name!r}; expected one at least", value=name
        )
    return whole if len(found) == len(whole) else CellMatrix(len(case_ids), len(target_ids), array("q", sorted(found)))


def _position(value: Json, positions: dict[str, int], path: str, expected: str) -> int:
    if not isinstance(value, str) or value not in positions:
        raise checks.bad(path, value, expected)
    return positions[value]
