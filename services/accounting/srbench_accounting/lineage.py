"""A run and its recoveries as one evaluation. Pure.

The rule, fixed: in each cell the first attempt that ended with an answer counts; where none did, the last that ended. The
calls of every attempt stay, so that the spend of all of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from srbench_accounting.columns import CallColumns, CellEnd, Ints, Labels, OutcomeColumns, PlanColumns
from srbench_accounting.report import RunFacts

RULE = "in each cell the first attempt with an answer counts, else the last that ended; the spend of all attempts counts"
TERMINAL = frozenset({"completed", "failed", "cancelled", "interrupted"})
_Columns = TypeVar("_Columns", OutcomeColumns, CallColumns)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a lineage.

    Attributes:
        facts: the run and its plan.
        target_ids: its targets in plan order.
        outcomes, calls: its facts; cases stand where they stand in the first run's plan.
    """

    facts: RunFacts
    target_ids: Sequence[str]
    outcomes: OutcomeColumns
    calls: CallColumns


@dataclass(frozen=True, slots=True)
class Merged:
    """A lineage as one run: what `make_report` and a comparison take."""

    facts: RunFacts
    outcomes: OutcomeColumns
    calls: CallColumns


def merge(attempts: Sequence[Attempt], plan: PlanColumns) -> Merged:
    """The lineage as one evaluation of `plan`, the plan of its first run.

    Args:
        attempts: the run, then its recoveries in the order of creation.
    """
    outcomes, made_by = _together([_on_plan(one.outcomes, one.target_ids, plan) for one in attempts])
    calls, called_by = _together([_on_plan(one.calls, one.target_ids, plan) for one in attempts])
    chosen = _chosen(outcomes, made_by, plan, len(attempts))
    winners = np.full(len(plan.target_ids) * len(plan.case_ids), -1, dtype=np.int64)
    winners[_cells(outcomes, plan)[chosen]] = made_by[chosen]
    winner = winners[_cells(calls, plan)]
    superseded = ((winner >= 0) & (called_by != winner)).astype(np.int64)
    outcomes = outcomes.take(chosen)
    answers = np.bincount(made_by[chosen][outcomes.end == CellEnd.DONE], minlength=len(attempts))
    complete = int(answers.sum()) == len(plan.cell_case)
    facts = _facts([one.facts for one in attempts], answers.tolist(), complete=complete)
    return Merged(facts, outcomes, replace(calls, superseded=superseded))


def _facts(attempts: Sequence[RunFacts], answers: Sequence[int], *, complete: bool) -> RunFacts:
    first = attempts[0]
    open_runs = [one for one in attempts if one.status not in TERMINAL]
    status = "completed" if complete else "running" if open_runs else first.status
    own = first.recovery if isinstance(first.recovery, dict) else {}
    return replace(
        first,
        status=status,
        reason="" if complete else first.reason,
        updated_s=max(one.updated_s for one in attempts),
        merged=True,
        recovery={
            **own,
            "merged": True,
            "rule": RULE,
            "complete": complete,
            "attempts": [
                {"run_id": one.run_id, "status": one.status, "answers_that_count": count}
                for one, count in zip(attempts, answers, strict=True)
            ],
        },
    )


def _chosen(outcomes: OutcomeColumns, made_by: Ints, plan: PlanColumns, attempt_count: int) -> Ints:
    """The rows that count, in the order of recording."""
    # An answer beats none; among answers the earliest attempt, among failures the latest.
    rank = np.where(outcomes.end == CellEnd.DONE, made_by, 2 * attempt_count - made_by)
    cells = _cells(outcomes, plan)
    order = np.lexsort((rank, cells))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = cells[order][1:] != cells[order][:-1]
    return np.sort(order[first])


def _cells(columns: OutcomeColumns | CallColumns, plan: PlanColumns) -> Ints:
    return columns.target * len(plan.case_ids) + columns.case


def _on_plan(columns: _Columns, target_ids: Sequence[str], plan: PlanColumns) -> _Columns:
    """The columns with targets where they stand in `plan`: a recovery leaves out those that it has no cells of."""
    places = np.array([list(plan.target_ids).index(target) for target in target_ids], dtype=np.int64)
    return replace(columns, target=places[columns.target])


def _together(parts: Sequence[_Columns]) -> tuple[_Columns, Ints]:
    """All rows one after the other, and the number of the part of each."""
    joined: dict[str, Any] = {}
    names: tuple[str, ...] = type(parts[0]).__slots__
    for name in names:
        columns = [getattr(part, name) for part in parts]
        if columns[0] is not None:
            joined[name] = _labels(columns) if isinstance(columns[0], Labels) else np.concatenate(columns)
    numbers = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])
    return type(parts[0])(**joined), numbers


def _labels(columns: Sequence[Labels]) -> Labels:
    index: dict[str, int] = {}
    codes: list[Ints] = []
    for column in columns:
        moved = np.array([index.setdefault(text, len(index)) for text in column.vocabulary] + [-1], dtype=np.int64)
        codes.append(moved[column.codes])
    return Labels(np.concatenate(codes), tuple(index))
