"""How often the model changed between the calls of one case."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srbench_accounting.columns import CallColumns, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """Switches within cases that made several subject calls. Fields as in `srbench.v1.Continuity`."""

    multi_inference_tasks: int
    multi_request_tasks: int
    unknown_model_requests: int
    switched_tasks: int
    switched_accuracy: float | None
    unswitched_tasks: int
    unswitched_accuracy: float | None
    model_switches: int
    mean_switches_per_task: float | None
    max_switches_per_task: int | None
    decision_changed_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSwitches:
    """Cells with at least two subject calls, a row each.

    Attributes:
        cell: the cell's number.
        several_inferences: whether one of its calls made several model calls; then nothing else of it counts.
        unknown_models: calls with no observed model.
        switches: adjacent calls, those with no model left out, whose models differ.
        decision_changed: whether the router's decision changed.
        right: whether its answer is right.
    """

    cell: Ints
    several_inferences: NDArray[np.bool_]
    unknown_models: Ints
    switches: Ints
    decision_changed: NDArray[np.bool_]
    right: NDArray[np.bool_]

    def take(self, rows: slice) -> CellSwitches:
        """The same for some rows."""
        return CellSwitches(
            cell=self.cell[rows],
            several_inferences=self.several_inferences[rows],
            unknown_models=self.unknown_models[rows],
            switches=self.switches[rows],
            decision_changed=self.decision_changed[rows],
            right=self.right[rows],
        )


def cell_switches(subject: CallColumns, call_cell: Ints, right_cells: Ints) -> CellSwitches:
    """What happened between the calls of each cell with several.

    Args:
        subject: subject calls in the order of dispatch.
        call_cell: the cell number of each.
        right_cells: numbers of the cells whose answer is right.
    """
    cells, rows, counts = np.unique(call_cell, return_inverse=True, return_counts=True)
    multi = counts >= 2
    picked = np.flatnonzero(multi[rows])
    order = picked[np.argsort(call_cell[picked], kind="stable")]
    cell = cells[multi]
    row = np.searchsorted(cell, call_cell[order])
    models, decisions = subject.observed_model().codes[order], subject.decision.codes[order]
    size = len(cell)
    return CellSwitches(
        cell=cell,
        several_inferences=np.bincount(row, weights=subject.inference_calls[order] > 1, minlength=size) > 0,
        unknown_models=np.bincount(row[models < 0], minlength=size),
        switches=_changes(row, models, size),
        decision_changed=_changes(row, decisions, size) > 0,
        right=np.isin(cell, right_cells),
    )


def _changes(row: Ints, codes: Ints, size: int) -> Ints:
    """For each cell, how many adjacent known codes differ."""
    known = codes >= 0
    row, codes = row[known], codes[known]
    differ = (row[1:] == row[:-1]) & (codes[1:] != codes[:-1])
    return np.bincount(row[1:][differ], minlength=size)


def continuity(cells: CellSwitches) -> Continuity:
    """The figures of one scope."""
    single = ~cells.several_inferences
    switches, right = cells.switches[single], cells.right[single]
    switched = switches > 0
    tasks, total = len(switches), int(switches.sum())
    return Continuity(
        multi_inference_tasks=int(cells.several_inferences.sum()),
        multi_request_tasks=tasks,
        unknown_model_requests=int(cells.unknown_models[single].sum()),
        switched_tasks=int(switched.sum()),
        switched_accuracy=_share(right[switched]),
        unswitched_tasks=int((~switched).sum()),
        unswitched_accuracy=_share(right[~switched]),
        model_switches=total,
        mean_switches_per_task=total / tasks if tasks else None,
        max_switches_per_task=int(switches.max()) if tasks else None,
        decision_changed_tasks=int(cells.decision_changed[single].sum()),
    )


def _share(right: NDArray[np.bool_]) -> float | None:
    return int(right.sum()) / len(right) if len(right) else None
