"""Pages of outcomes and calls.

Rows of a run are numbered without a gap, so a page without a filter is a range of ids, and the run's counters are the
totals. With a filter, a narrow copy of the columns that filters look at is kept in memory: rows are only ever added, so it
grows with the table and is never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.rows import OUTCOME_COLUMNS, RECEIPT_COLUMNS, CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import InStatement, Row, Statement

MAX_INDEXES = 64
CallWithEnd = tuple[CallRow, ReceiptRow | None]
Mask = NDArray[np.bool_]
_RECEIPTS_FROM = len(schema.calls.c)


@dataclass(slots=True)
class _Index:
    """The filter columns of one table's rows of one run, a line a column."""

    table: NDArray[np.int64]
    lock: Lock = field(default_factory=Lock)


class NarrowIndex:
    """Filter columns by run, kept up to date by reading what was added."""

    def __init__(self, table: sa.Table, key: str, names: Sequence[str], dialect: Dialect) -> None:
        unknown: sa.ColumnClause[int] = sa.literal_column("-1")
        self._width = len(names)
        self._added = Statement(
            sa.select(*[sa.func.coalesce(table.c[name], unknown) for name in names])
            .where(table.c[key].between(sa.bindparam("first"), sa.bindparam("last")))
            .order_by(table.c[key]),
            dialect,
        )
        self._runs: OrderedDict[int, _Index] = OrderedDict()
        self._lock = Lock()

    def sequences(
        self, connection: Connection, run_no: int, fits: Callable[[NDArray[np.int64]], Mask]
    ) -> NDArray[np.int64]:
        """The places, from 1, of the rows that fit, in order."""
        index = self._index(run_no)
        with index.lock:
            have = index.table.shape[1]
            rows = self._added.rows(connection, row_id(run_no, have + 1), row_id(run_no + 1, 0) - 1)
            if rows:
                added = np.array(rows, dtype=np.int64).T
                index.table = np.concatenate([index.table, added], axis=1)
            table = index.table
        return np.flatnonzero(fits(table)) + 1

    def _index(self, run_no: int) -> _Index:
        with self._lock:
            index = self._runs.setdefault(run_no, _Index(np.empty((self._width, 0), dtype=np.int64)))
            self._runs.move_to_end(run_no)
            while len(self._runs) > MAX_INDEXES:
                self._runs.popitem(last=False)
            return index


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

    def fits(self, table: NDArray[np.int64]) -> Mask:
        """Which rows fit; lines are case, target and, for outcomes, state and correct."""
        mask = np.ones(table.shape[1], dtype=np.bool_)
        for line, wanted in ((1, self.target), (2, self.state), (3, self.correct)):
            if wanted is not None:
                mask &= table[line] == wanted
        if self.cases is not None:
            mask &= np.isin(table[0], np.fromiter(self.cases, dtype=np.int64, count=len(self.cases)))
        return mask


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
        self._outcome_index = NarrowIndex(
            outcomes, "outcome_id", ("case_index", "target_index", "state", "correct"), dialect
        )
        self._call_index = NarrowIndex(calls, "call_id", ("case_index", "target_index"), dialect)
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
        return _chosen(run_no, self._outcome_index.sequences(connection, run_no, wanted.fits), start, size)

    def call_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of calls that begins at `start`."""
        if wanted.everything:
            return _range(run_no, self._counts.rows(connection, run_no)[0][1], start, size)
        return _chosen(run_no, self._call_index.sequences(connection, run_no, wanted.fits), start, size)

    def open_page(self, connection: Connection, run_no: int, wanted: Filter, start: Start, size: int) -> Page:
        """The page of calls without an end; they are few, so all are looked at."""
        rows = self._open.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
        fitting = [
            sequence_of(identifier)
            for identifier, case, target in rows
            if (wanted.target is None or target == wanted.target) and (wanted.cases is None or case in wanted.cases)
        ]
        return _chosen(run_no, np.array(fitting, dtype=np.int64), start, size)

    def outcomes(self, connection: Connection, ids: Sequence[int]) -> list[tuple[int, OutcomeRow]]:
        """The outcomes of `ids`, in their order."""
        found = {identifier: OutcomeRow(*row) for identifier, *row in self._outcomes.rows(connection, ids)}
        return [(identifier, found[identifier]) for identifier in ids if identifier in found]

    def calls(self, connection: Connection, ids: Sequence[int]) -> list[CallWithEnd]:
        """The calls of `ids`, in their order, each with its receipt in force."""
        found = {row[0]: _with_end(row) for row in self._calls.rows(connection, ids)}
        return [found[identifier] for identifier in ids if identifier in found]

    def subject_ends(self, connection: Connection, run_no: int, cells: Sequence[int]) -> dict[int, list[ReceiptRow | None]]:
        """The receipts of the subject's calls by cell, in order. What was provably not accepted was no call."""
        found: dict[int, list[ReceiptRow | None]] = {}
        for row in self._cell_calls.rows(connection, cells, run_no):
            call, end = _with_end(row)
            refused = end is not None and end.status == pb.CALL_STATUS_NOT_ACCEPTED
            if call.role == pb.CALL_ROLE_SUBJECT and not refused:
                found.setdefault(call.cell, []).append(end)
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


def _chosen(run_no: int, places: NDArray[np.int64], start: Start, size: int) -> Page:
    first = int(np.searchsorted(places, start.after, side="right")) + start.offset
    chosen = places[first : first + size]
    return Page([row_id(run_no, place) for place in chosen.tolist()], len(places), first + size < len(places))
