"""Where a run's questions went: planned cells counted by benchmark, stratum, decision, model and outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srbench_accounting.columns import UNKNOWN, CallColumns, CallEnd, CellEnd, Ints, Labels, OutcomeColumns, Role
from srbench_accounting.routing import RoutingColumns

OUTCOMES = ("right", "wrong", "ungraded", "failed", "cancelled", "sent_unknown", "pending")
_ENDS = {CellEnd.FAILED: "failed", CellEnd.CANCELLED: "cancelled", CellEnd.INTERRUPTED: "sent_unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCells:
    """The planned cells, a row each.

    Attributes:
        case, target: positions in the plan.
        benchmark, stratum: of the cell's case.
    """

    case: Ints
    target: Ints
    benchmark: Labels
    stratum: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """Cells that went the same way; fields as in `srbench.v1.RoutingFlowRow`, `target` is a position in the plan."""

    target: int
    benchmark: str
    stratum: str
    decision: str
    model: str
    outcome: str
    cell_count: int
    known_cost_picodollars: int
    unknown_cost_count: int


def routing_flow(
    cells: PlannedCells, outcomes: OutcomeColumns, calls: CallColumns, routings: RoutingColumns | None = None
) -> list[FlowRow]:
    """The counts, which add up to the planned cells, ordered by target and then by name.

    A cell's decision and model are those of its last subject call that was accepted, or may have been; in a preview, which
    makes no calls, those of its routing.
    """
    accepted = calls.where((calls.role == Role.SUBJECT) & (calls.end != CallEnd.NOT_ACCEPTED))
    width = _width(cells, outcomes, accepted)
    routed: CallColumns | RoutingColumns = accepted if routings is None else routings
    ended, last = (_last_rows(table.case * width + table.target) for table in (outcomes, routed))
    keys = cells.case * width + cells.target
    outcome = _at(_outcome_codes(outcomes), ended, keys, missing=OUTCOMES.index("pending"))
    model = accepted.observed_model() if routings is None else routings.model
    decision = routed.decision
    ways = np.stack(
        [
            cells.target,
            cells.benchmark.codes,
            cells.stratum.codes,
            _at(decision.codes, last, keys, missing=UNKNOWN),
            _at(model.codes, last, keys, missing=UNKNOWN),
            outcome,
        ]
    )
    kinds, kind_of, counts = np.unique(ways, axis=1, return_inverse=True, return_counts=True)
    known, unknown = _costs(accepted, width, keys, kind_of.reshape(-1), len(counts))
    vocabularies = (cells.benchmark.vocabulary, cells.stratum.vocabulary, decision.vocabulary, model.vocabulary)
    rows = []
    for number, (target, *codes, end) in enumerate(kinds.T.tolist()):
        names = [words[code] if code >= 0 else "" for words, code in zip(vocabularies, codes, strict=True)]
        rows.append(
            FlowRow(
                target=target,
                benchmark=names[0],
                stratum=names[1],
                decision=names[2],
                model=names[3],
                outcome=OUTCOMES[end],
                cell_count=int(counts[number]),
                known_cost_picodollars=known[number],
                unknown_cost_count=unknown[number],
            )
        )
    return sorted(rows, key=lambda r: (r.target, r.benchmark, r.stratum, r.decision, r.model, OUTCOMES.index(r.outcome)))


def _width(cells: PlannedCells, *tables: OutcomeColumns | CallColumns) -> int:
    """One more than the greatest target, so that case and target make one number."""
    return 1 + max(int(table.target.max(initial=0)) for table in (cells, *tables))


def _last_rows(keys: Ints) -> tuple[Ints, Ints]:
    """The keys that occur, ascending, and the last row of each."""
    found, first_from_the_end = np.unique(keys[::-1], return_index=True)
    return found, len(keys) - 1 - first_from_the_end


def _at(values: Ints, rows: tuple[Ints, Ints], keys: Ints, *, missing: int) -> Ints:
    """For each of `keys` the value in its row; `missing` where it has none."""
    found, row_of = rows
    if not len(found):
        return np.full(len(keys), missing, dtype=np.int64)
    places = np.minimum(np.searchsorted(found, keys), len(found) - 1)
    return np.where(found[places] == keys, values[row_of[places]], missing)


def _outcome_codes(outcomes: OutcomeColumns) -> Ints:
    graded = np.where(outcomes.correct == 1, 0, np.where(outcomes.correct == 0, 1, 2))
    codes = np.where(outcomes.end == CellEnd.DONE, graded, OUTCOMES.index("failed"))
    for end, word in _ENDS.items():
        codes = np.where(outcomes.end == end, OUTCOMES.index(word), codes)
    return codes.astype(np.int64)


def _costs(calls: CallColumns, width: int, keys: Ints, kind_of: Ints, kind_count: int) -> tuple[list[int], list[int]]:
    """By kind the known cost of all calls, and how many calls have an unknown one."""
    order = np.argsort(keys, kind="stable")
    ordered, call_keys = keys[order], calls.case * width + calls.target
    places = np.minimum(np.searchsorted(ordered, call_keys), len(keys) - 1)
    planned = ordered[places] == call_keys
    kinds, cost = kind_of[order][places][planned], calls.cost[planned]
    known = np.zeros(kind_count, dtype=np.int64)
    np.add.at(known, kinds, np.maximum(cost, 0))
    return known.tolist(), np.bincount(kinds[cost < 0], minlength=kind_count).tolist()
