"""Many rows of integers as one array: read by ranges of ids, so that no number becomes an object of its own. PostgreSQL
gives them in its binary form, which is an array already; SQLite gives a column as one text of decimals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting.statements import Statement

Table = NDArray[np.int64]
# Rows of one range.
RANGE = 10_000
# PostgreSQL's binary array of two dimensions: seven numbers, then each element behind its length.
_HEADER = 28
_ELEMENT = np.dtype([("length", ">i4"), ("value", ">i8")])


class RowTable:
    """A select of integer columns, none of them NULL, of the rows whose `key` lies between two ids, in order."""

    def __init__(
        self,
        columns: Sequence[sa.ColumnElement[int]],
        key: sa.Column[int],
        dialect: Dialect,
        *,
        beside: sa.Column[int] | None = None,
    ) -> None:
        """`beside` is the key of a second table, whose row of the same id, if there is one, has some of the columns."""
        self._binary = dialect.name == "postgresql"
        self._names = [f"c{number}" for number in range(len(columns))]
        labelled = [
            (sa.cast(column, sa.BigInteger) if self._binary else column).label(name)
            for column, name in zip(columns, self._names, strict=True)
        ]
        source: sa.FromClause = key.table
        if beside is not None:
            # The bounds again: PostgreSQL does not conclude them, and would read the whole second table for each range.
            source = source.outerjoin(beside.table, (key == beside) & _between(beside, "beside"))
        rows = sa.select(*labelled).select_from(source).where(_between(key, "own")).order_by(key)
        if not self._binary:
            ordered = rows.subquery()
            rows = sa.select(*[sa.func.group_concat(ordered.c[name]) for name in self._names])
        self._rows = Statement(rows, dialect)
        self._bounds = 1 if beside is None else 2

    def read(self, connection: Connection, first: int, last: int) -> Table:
        """The rows with ids from `first` to `last`, a line a column."""
        table = np.empty((len(self._names), max(last + 1 - first, 0)), dtype=np.int64)
        have = 0
        for start in range(first, last + 1, RANGE):
            columns = self._columns(connection, start, min(start + RANGE, last + 1) - 1)
            count = len(columns[0])
            np.stack(columns, out=table[:, have : have + count])
            have += count
        return table[:, :have]

    def _columns(self, connection: Connection, first: int, last: int) -> list[NDArray[np.int64]]:
        """The columns of one range. SQLite leaves out a NULL: that column is shorter, and `stack` refuses it."""
        bounds = (first, last) * self._bounds
        if self._binary:
            return [*_decode(self._rows.array(connection, self._names, *bounds), len(self._names))]
        (texts,) = self._rows.rows(connection, *bounds)
        return [_parse(text) for text in texts]


def _between(key: sa.Column[int], name: str) -> sa.ColumnElement[bool]:
    return key.between(sa.bindparam(f"{name}_first"), sa.bindparam(f"{name}_last"))


def _parse(decimals: str | None) -> NDArray[np.int64]:
    """A column from SQLite."""
    # `fromstring` would take the empty text for a zero.
    return np.fromstring(decimals, dtype=np.int64, sep=",") if decimals else np.empty(0, dtype=np.int64)


def _decode(data: bytes | None, width: int) -> NDArray[np.int64]:
    """The columns from PostgreSQL."""
    if data is None:
        return np.empty((width, 0), dtype=np.int64)
    # A NULL has no value behind its length: whatever follows is then no array of such elements, or one of other lengths.
    elements = np.frombuffer(data, _ELEMENT, offset=_HEADER).reshape(-1, width)
    assert (elements["length"] == _ELEMENT["value"].itemsize).all(), "a column of a table of integers is NULL"
    return elements["value"].T
