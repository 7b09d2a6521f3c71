"""The columns that lists are filtered by, kept in memory by run: rows are only ever added, so a copy is never wrong."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting.column_cache import as_table
from srbench_accounting.listing import Filter
from srbench_accounting.schema import row_id
from srbench_accounting.statements import Statement

MAX_INDEXES = 64


@dataclass(slots=True)
class _Index:
    """The filter columns of one table's rows of one run, a line a column."""

    table: NDArray[np.int64]
    lock: Lock = field(default_factory=Lock)


class NarrowIndex:
    """Filter columns by run, kept up to date by reading what was added."""

    def __init__(self, table: sa.Table, names: Sequence[str], dialect: Dialect) -> None:
        (key,) = table.primary_key.columns
        unknown: sa.ColumnClause[int] = sa.literal_column("-1")
        self._width = len(names)
        self._added = Statement(
            sa.select(*[sa.func.coalesce(table.c[name], unknown) for name in names])
            .where(key.between(sa.bindparam("first"), sa.bindparam("last")))
            .order_by(key),
            dialect,
        )
        self._runs: OrderedDict[int, _Index] = OrderedDict()
        self._lock = Lock()

    def sequences(self, connection: Connection, run_no: int, wanted: Filter) -> Sequence[int]:
        """The places, from 1, of the rows that fit, in order."""
        index = self._index(run_no)
        with index.lock:
            have = index.table.shape[1]
            rows = self._added.rows(connection, row_id(run_no, have + 1), row_id(run_no + 1, 0) - 1)
            if rows:
                added = as_table(rows, self._width)
                index.table = np.concatenate([index.table, added], axis=1)
            table = index.table
        places: Sequence[int] = np.flatnonzero(fits(wanted, table)) + 1  # type: ignore[assignment]
        return places

    def _index(self, run_no: int) -> _Index:
        with self._lock:
            index = self._runs.setdefault(run_no, _Index(np.empty((self._width, 0), dtype=np.int64)))
            self._runs.move_to_end(run_no)
            while len(self._runs) > MAX_INDEXES:
                self._runs.popitem(last=False)
            return index


def fits(wanted: Filter, table: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows fit; lines are case, target and, for outcomes, state and correct."""
    mask = np.ones(table.shape[1], dtype=np.bool_)
    for line, value in ((1, wanted.target), (2, wanted.state), (3, wanted.correct)):
        if value is not None:
            mask &= table[line] == value
    if wanted.cases is not None:
        mask &= np.isin(table[0], np.fromiter(wanted.cases, dtype=np.int64, count=len(wanted.cases)))
    return mask
