"""Columns of runs kept in memory and brought up to date by reading what was added, so that a report of a run that was
reported before reads only what is new.

Outcomes are only ever added. So are calls, and a call's end changes only while it has none or an unknown one: such rows are
read again each time. What is handed out is never written to afterwards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import InStatement, Row, Statement

Table = NDArray[np.int64]
# Rows of all runs together; the run that was asked for last is kept whatever its size.
MAX_ROWS = 500_000


def as_table(rows: Sequence[Row], width: int) -> Table:
    """Rows of integers as an array with one line a column."""
    flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width)
    return np.ascontiguousarray(flat.reshape(-1, width).T)


@dataclass(slots=True)
class _Kept:
    """The rows of one run's table, from its first, and the places of those that may still change."""

    table: Table
    open: list[int] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)


class ColumnCache:
    """One table's columns by run. Safe in any thread."""

    def __init__(
        self,
        added: Statement,
        width: int,
        *,
        again: InStatement | None = None,
        changing: tuple[int, frozenset[int]] = (0, frozenset()),
    ) -> None:
        """`added` selects the `width` columns of the rows between two ids, in order; `again` those of a list of ids, after
        the id itself. A row may change as long as the column `changing[0]` holds one of `changing[1]`."""
        self._added, self._again, self._width = added, again, width
        self._state, self._states = changing[0], np.array(sorted(changing[1]), dtype=np.int64)
        self._runs: OrderedDict[int, _Kept] = OrderedDict()
        self._lock = Lock()

    def load(self, connection: Connection, run_no: int, count: int) -> Table:
        """The columns of the first `count` rows of a run, which must be what the connection's transaction sees."""
        kept = self._kept(run_no)
        with kept.lock:
            self._refresh(connection, run_no, kept)
            have = kept.table.shape[1]
            if have < count:
                rows = self._added.rows(connection, row_id(run_no, have + 1), row_id(run_no, count))
                added = as_table(rows, self._width)
                kept.open += (self._changing(added) + have).tolist()
                kept.table = np.concatenate([kept.table, added], axis=1) if have else added
            table = kept.table[:, :count]
        self._forget()
        table.setflags(write=False)
        return table

    def _refresh(self, connection: Connection, run_no: int, kept: _Kept) -> None:
        """Reads the rows that may have changed. They are few: calls in flight, and calls whose end nobody saw."""
        if not kept.open or self._again is None:
            return
        table = kept.table.copy()
        for start in range(0, len(kept.open), 512):
            ids = [row_id(run_no, place + 1) for place in kept.open[start : start + 512]]
            for identifier, *values in self._again.rows(connection, ids):
                table[:, sequence_of(identifier) - 1] = values
        places = np.array(kept.open, dtype=np.int64)
        kept.open = places[np.isin(table[self._state, places], self._states)].tolist()
        kept.table = table

    def _changing(self, table: Table) -> NDArray[np.int64]:
        return (
            np.flatnonzero(np.isin(table[self._state], self._states)) if len(self._states) else np.empty(0, dtype=np.int64)
        )

    def _kept(self, run_no: int) -> _Kept:
        with self._lock:
            kept = self._runs.setdefault(run_no, _Kept(np.empty((self._width, 0), dtype=np.int64)))
            self._runs.move_to_end(run_no)
            return kept

    def _forget(self) -> None:
        with self._lock:
            rows = sum(kept.table.shape[1] for kept in self._runs.values())
            while rows > MAX_ROWS and len(self._runs) > 1:
                rows -= self._runs.popitem(last=False)[1].table.shape[1]
