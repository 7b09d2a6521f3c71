"""What the ledger knows of each cell of a run, for whoever plans new attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srbench_accounting.columns import UNKNOWN, CallColumns, CallEnd, OutcomeColumns


@dataclass(slots=True)
class CellLedger:
    """One cell; fields as in `srbench.v1.CellLedger`. `spend_upper` is `None` when a reservation is missing."""

    case: int
    target: int
    outcome: int = 0
    reason: str = ""
    call_count: int = 0
    open_count: int = 0
    ambiguous_count: int = 0
    unknown_cost_count: int = 0
    known_spend: int = 0
    spend_upper: int | None = 0


def cell_ledgers(outcomes: OutcomeColumns, calls: CallColumns) -> Iterator[CellLedger]:
    """The cells that have any fact, by case and target. The calls are as operators settled them."""
    cells: dict[tuple[int, int], CellLedger] = {}
    reasons = outcomes.reason
    ended = zip(
        outcomes.case.tolist(), outcomes.target.tolist(), outcomes.end.tolist(), reasons.codes.tolist(), strict=True
    )
    for case, target, end, code in ended:
        reason = reasons.vocabulary[code] if code != UNKNOWN else ""
        cells[case, target] = CellLedger(case, target, outcome=end, reason=reason)
    columns = (calls.case, calls.target, calls.end, calls.cost, calls.reserved)
    for case, target, end, cost, reserved in zip(*(column.tolist() for column in columns), strict=True):
        cell = cells.setdefault((case, target), CellLedger(case, target))
        if end != CallEnd.NOT_ACCEPTED:
            _count(cell, end, cost, reserved)
    return (cells[key] for key in sorted(cells))


def _count(cell: CellLedger, end: int, cost: int, reserved: int) -> None:
    cell.call_count += 1
    cell.open_count += end == CallEnd.SENT
    cell.ambiguous_count += end == CallEnd.SENT_UNKNOWN
    known = cost != UNKNOWN
    cell.unknown_cost_count += not known and end != CallEnd.SENT
    cell.known_spend += cost if known else 0
    most = cost if known else reserved
    cell.spend_upper = None if cell.spend_upper is None or most == UNKNOWN else cell.spend_upper + most
