"""Pages of outcomes and calls.

Rows of a run are numbered without a gap, so a page without a filter is a range of ids, and the run's counters are the
totals. With a filter, a narrow copy of the columns that filters look at is kept in memory: rows are only ever added, so it
grows with the table and is never wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.rows import OUTCOME_COLUMNS, RECEIPT_COLUMNS, CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import InStatement, Row, Statement

if TYPE_CHECKING:
    from srbench_accounting.narrow_index import NarrowIndex

_SUBJECT, _NOT_ACCEPTED = int(pb.CALL_ROLE_SUBJECT), int(pb.CALL_STATUS_NOT_ACCEPTED)
CallWithEnd = tuple[CallRow, ReceiptRow | None]
_CALL_FILTERS = ("case_index", "target_index")
_OUTCOME_FILTERS = (*_CALL_FILTERS, "state", "correct")
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
        self._dialect = dialect
        self._indexes: dict[str, NarrowIndex] = {}
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
        ends = sa.select(calls.c.cell, calls.c.role, receipts.c.status, *[receipts.c[name] for name in SubjectEnd._fields])
        self._cell_ends = InStatement(
            lambda items: (
                ends.select_from(joined)
                .where(calls.c.run_no == bind("run_no_"), calls.c.cell.in_(items))
                .order_by(calls.c.cell, calls.c.ordinal, calls.c.offer)
            ),
            dialect,
        )
        answered = sa.select(
            calls.c.cell, calls.c.role, receipts.c.status, *[receipts.c[name] for name in Answered._fields]
        )
        self._cell_answered = InStatement(
            lambda items: (
                answered.select_from(joined)
                .where(calls.c.run_no == bind("run_no_"), calls.c.cell.in_(items))
                .order_by(calls.c.cell, calls.c.ordinal, calls.c.offer)
            ),
            dialect,
        )
        self._cell_calls = InStatement(
            lambda items: whole.where(calls.c.run_no == bind("run_no_"), calls.c.cell.in_(items)).order_by(
                calls.c.cell, calls.c.ordinal, calls.c.offer
            ),
            dialect,
        )
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

    def outcome_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of outcomes that begins at `start`."""
        if wanted.cell is not None:
            found = [identifier for (identifier,) in self._outcome_of_cell.rows(connection, run_no, wanted.cell)]
            return Page(found[start.after + start.offset :], len(found), False)
        if wanted.everything:
            return _range(run_no, self._counts.rows(connection, run_no)[0][0], start, size)
        return _chosen(
            run_no, self._index(schema.outcomes, _OUTCOME_FILTERS).sequences(connection, run_no, wanted), start, size
        )

    def call_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of calls that begins at `start`."""
        if wanted.everything:
            return _range(run_no, self._counts.rows(connection, run_no)[0][1], start, size)
        index = self._index(schema.calls, _CALL_FILTERS)
        return _chosen(run_no, index.sequences(connection, run_no, wanted), start, size)

    def open_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of calls without an end; they are few, so all are looked at."""
        rows = self._open.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
        fitting = [
            sequence_of(identifier)
            for identifier, case, target in rows
            if (wanted.target is None or target == wanted.target) and (wanted.cases is None or case in wanted.cases)
        ]
        return _chosen(run_no, fitting, start, size)

    def _index(self, table: sa.Table, names: tuple[str, ...]) -> NarrowIndex:
        found = self._indexes.get(table.name)
        if found is None:
            # Not before it is needed: NumPy takes longer to import than the service may take to start.
            from srbench_accounting.narrow_index import NarrowIndex

            found = self._indexes.setdefault(table.name, NarrowIndex(table, names, self._dialect))
        return found

    def outcomes(self, connection: Connection, ids: Sequence[int]) -> list[tuple[int, OutcomeRow]]:
        """The outcomes of `ids`, in their order."""
        found = {identifier: OutcomeRow(*row) for identifier, *row in self._outcomes.rows(connection, ids)}
        return [(identifier, found[identifier]) for identifier in ids if identifier in found]

    def calls(self, connection: Connection, ids: Sequence[int]) -> list[CallWithEnd]:
        """The calls of `ids`, in their order, each with its receipt in force."""
        found = {row[0]: _with_end(row) for row in self._calls.rows(connection, ids)}
        return [found[identifier] for identifier in ids if identifier in found]

    def subject_ends(self, connection: Connection, run_no: int, cells: Sequence[int]) -> dict[int, list[SubjectEnd | None]]:
        """What the subject's calls came to by cell, in order; `None` for one without an end. What was provably not accepted
        was no call."""
        found: dict[int, list[SubjectEnd | None]] = {}
        for cell, role, status, *end in self._cell_ends.rows(connection, cells, run_no):
            if role == _SUBJECT and status != _NOT_ACCEPTED:
                found.setdefault(cell, []).append(SubjectEnd(*end) if status is not None else None)
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


def _with_end(row: Row) -> CallWithEnd:
    end = row[_RECEIPTS_FROM:]
    return CallRow(*row[:_RECEIPTS_FROM]), ReceiptRow(*end) if end[0] is not None else None


def _range(run_no: int, total: int, start: Start, size: int) -> Page:
    after = start.after + start.offset
    last = min(after + size, total)
    return Page([row_id(run_no, place) for place in range(after + 1, last + 1)], total, last < total)


def _chosen(run_no: int, places: Sequence[int], start: Start, size: int) -> Page:
    first = bisect_right(places, start.after) + start.offset
    chosen = places[first : first + size]
    return Page([row_id(run_no, int(place)) for place in chosen], len(places), first + size < len(places))
