"""Pages of outcomes and calls.

Rows of a run are numbered without a gap, so a page without a filter is a range of ids, and the run's counters are the
totals. Pages with a filter or of another order come from `ranked_lists`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.rows import OUTCOME_COLUMNS, RECEIPT_COLUMNS, CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.settled import applies, known_values, undone
from srbench_accounting.statements import InStatement, Row, Statement

_SUBJECT, _NOT_ACCEPTED = int(pb.CALL_ROLE_SUBJECT), int(pb.CALL_STATUS_NOT_ACCEPTED)
CallWithEnd = tuple[CallRow, ReceiptRow | None]
_RECEIPTS_FROM = len(schema.calls.c)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list is narrowed to; `None` is everything. Cases and targets are positions in the plan."""

    target: int | None = None
    cases: frozenset[int] | None = None
    state: int | None = None
    correct: int | None = None
    cell: int | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Filter()


class SubjectEnd(NamedTuple):
    """What one call of a cell's subject came to; `None` is unknown. Money in picodollars."""

    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    cost: int | None
    latency_ns: int | None
    ttft_ns: int | None


class Answered(NamedTuple):
    """Who answered a call, as numbers of the vocabulary; `None` is unknown."""

    model: int | None
    selected_model: int | None
    decision: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """The ids of one page, how many rows fit in all, and whether more come after it.

    Attributes:
        position: rows before the page's end, for lists in another order than that of recording.
    """

    ids: list[int]
    total: int
    more: bool
    position: int | None = None

    @property
    def last(self) -> int:
        """Where the next page begins: after the place of this one's last row, or after so many rows."""
        return self.position if self.position is not None else sequence_of(self.ids[-1])


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page begins.

    Attributes:
        after: the place after which, in the order of recording.
        offset: rows that fit to skip from there.
    """

    after: int = 0
    offset: int = 0


class Lists:
    """Reads pages. Safe in any thread."""

    def __init__(self, dialect: Dialect) -> None:
        runs, calls, receipts, outcomes, opened = (
            *(schema.runs, schema.calls, schema.receipts, schema.outcomes),
            schema.open_calls,
        )
        bind = sa.bindparam
        self._counts = Statement(
            sa.select(runs.c.outcome_count, runs.c.call_count).where(runs.c.run_no == bind("run_no_")), dialect
        )
        self._outcome_of_cell = Statement(
            sa.select(outcomes.c.outcome_id).where(outcomes.c.run_no == bind("run_no_"), outcomes.c.cell == bind("cell_")),
            dialect,
        )
        self._outcomes = InStatement(
            lambda items: (
                sa.select(outcomes.c.outcome_id, *[outcomes.c[name] for name in OUTCOME_COLUMNS])
                .where(outcomes.c.outcome_id.in_(items))
                .order_by(outcomes.c.outcome_id)
            ),
            dialect,
        )
        joined = calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id)
        whole = sa.select(*calls.c, *[receipts.c[name] for name in RECEIPT_COLUMNS]).select_from(joined)
        self._calls = InStatement(lambda items: whole.where(calls.c.call_id.in_(items)).order_by(calls.c.call_id), dialect)

        def in_cells(chosen: sa.Select[Any]) -> InStatement:
            in_order = chosen.order_by(calls.c.cell, calls.c.ordinal, calls.c.offer)
            return InStatement(
                lambda items: in_order.where(calls.c.run_no == bind("run_no_"), calls.c.cell.in_(items)), dialect
            )

        ends = sa.select(
            *(calls.c.call_id, calls.c.cell, calls.c.role, receipts.c.status),
            *[receipts.c[name] for name in SubjectEnd._fields],
        )
        self._cell_ends = in_cells(ends.select_from(joined))
        answered = sa.select(
            calls.c.cell, calls.c.role, receipts.c.status, *[receipts.c[name] for name in Answered._fields]
        )
        self._cell_answered = in_cells(answered.select_from(joined))
        self._cell_calls = in_cells(whole)
        self._open = Statement(
            sa.select(calls.c.call_id, calls.c.case_index, calls.c.target_index)
            .select_from(opened.join(calls, calls.c.call_id == opened.c.call_id))
            .where(opened.c.call_id.between(bind("first"), bind("last")))
            .order_by(opened.c.call_id),
            dialect,
        )
        self._one = Statement(
            whole.where(
                calls.c.run_no == bind("run_no_"),
                calls.c.cell == bind("cell_"),
                calls.c.ordinal == bind("ordinal_"),
                calls.c.offer == bind("offer_"),
            ),
            dialect,
        )

    def outcome_page(self, connection: Connection, run_no: int, start: Start, size: int) -> Page:
        """The page of outcomes that begins at `start`."""
        return _range(run_no, self._counts.rows(connection, run_no)[0][0], start, size)

    def cell_page(self, connection: Connection, run_no: int, cell: int, start: Start) -> Page:
        """The page with the outcome of one cell."""
        found = [identifier for (identifier,) in self._outcome_of_cell.rows(connection, run_no, cell)]
        return Page(found[start.after + start.offset :], len(found), False)

    def call_page(self, connection: Connection, run_no: int, start: Start, size: int) -> Page:
        """The page of calls that begins at `start`."""
        return _range(run_no, self._counts.rows(connection, run_no)[0][1], start, size)

    def open_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of calls without an end; they are few, so all are looked at."""
        rows = self._open.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
        fitting = [
            sequence_of(identifier)
            for identifier, case, target in rows
            if (wanted.target is None or target == wanted.target) and (wanted.cases is None or case in wanted.cases)
        ]
        return chosen(run_no, fitting, start, size)

    def outcomes(self, connection: Connection, ids: Sequence[int]) -> list[tuple[int, OutcomeRow]]:
        """The outcomes of `ids`, in their order."""
        found = {identifier: OutcomeRow(*row) for identifier, *row in self._outcomes.rows(connection, ids)}
        return [(identifier, found[identifier]) for identifier in ids if identifier in found]

    def calls(self, connection: Connection, ids: Sequence[int]) -> list[CallWithEnd]:
        """The calls of `ids`, in their order, each with its receipt in force."""
        found = {row[0]: _with_end(row) for row in self._calls.rows(connection, ids)}
        return [found[identifier] for identifier in ids if identifier in found]

    def subject_ends(
        self, connection: Connection, run_no: int, cells: Sequence[int], settled: Mapping[int, pb.CallSettlement]
    ) -> dict[int, list[SubjectEnd | None]]:
        """What the subject's calls came to by cell, in order; `None` for one without an end. What was provably not accepted
        was no call, nor is what by its settlement did not happen. `settled`: settlements in force by place of the call."""
        found: dict[int, list[SubjectEnd | None]] = {}
        for call_id, cell, role, status, *columns in self._cell_ends.rows(connection, cells, run_no):
            if role != _SUBJECT or status == _NOT_ACCEPTED:
                continue
            end, settlement = SubjectEnd(*columns) if status is not None else None, settled.get(sequence_of(call_id))
            if end is not None and settlement is not None and applies(settlement, status, end.cost):
                if undone(settlement, status):
                    continue
                end = settled_end(end, settlement)
            found.setdefault(cell, []).append(end)
        return found

    def answered(self, connection: Connection, run_no: int, cells: Sequence[int]) -> dict[int, Answered]:
        """Who answered the last subject call of each cell; cells whose last call has no end are left out."""
        found: dict[int, Answered] = {}
        for cell, role, status, *numbers in self._cell_answered.rows(connection, cells, run_no):
            if role == _SUBJECT and status != _NOT_ACCEPTED:
                found.pop(cell, None)
                if status is not None:
                    found[cell] = Answered(*numbers)
        return found

    def subject_receipts(
        self, connection: Connection, run_no: int, cells: Sequence[int]
    ) -> dict[int, list[ReceiptRow | None]]:
        """As `subject_ends`, with everything that is known of each call: for those who go on to its evidence."""
        found: dict[int, list[ReceiptRow | None]] = {}
        for call, end in (_with_end(row) for row in self._cell_calls.rows(connection, cells, run_no)):
            if call.role == _SUBJECT and (end is None or end.status != _NOT_ACCEPTED):
                found.setdefault(call.cell, []).append(end)
        return found

    def cell_calls(self, connection: Connection, run_no: int, cells: Sequence[int]) -> dict[int, list[CallWithEnd]]:
        """All calls of `cells` with their receipts in force, by cell, in order."""
        found: dict[int, list[CallWithEnd]] = {}
        for row in self._cell_calls.rows(connection, cells, run_no):
            call, end = _with_end(row)
            found.setdefault(call.cell, []).append((call, end))
        return found

    def call(self, connection: Connection, run_no: int, cell: int, ordinal: int, offer: int) -> CallWithEnd | None:
        """One call with its receipt in force."""
        rows = self._one.rows(connection, run_no, cell, ordinal, offer)
        return _with_end(rows[0]) if rows else None


def settled_end(end: SubjectEnd, settlement: pb.CallSettlement) -> SubjectEnd:
    """What a call came to when what its settlement knows is laid over its receipt, as the report has it."""
    if settlement.verdict != pb.SETTLEMENT_VERDICT_HAPPENED:
        return end
    known = known_values(settlement)
    return end._replace(**{name: known[name] for name in SubjectEnd._fields if name in known})


def _with_end(row: Row) -> CallWithEnd:
    end = row[_RECEIPTS_FROM:]
    return CallRow(*row[:_RECEIPTS_FROM]), ReceiptRow(*end) if end[0] is not None else None


def _range(run_no: int, total: int, start: Start, size: int) -> Page:
    after = start.after + start.offset
    last = min(after + size, total)
    return Page([row_id(run_no, place) for place in range(after + 1, last + 1)], total, last < total)


def chosen(run_no: int, places: Sequence[int], start: Start, size: int) -> Page:
    """A page of the rows at `places`, counted from 1, in the order of recording."""
    first = bisect_right(places, start.after) + start.offset
    shown = places[first : first + size]
    return Page([row_id(run_no, int(place)) for place in shown], len(places), first + size < len(places))
