"""Statements that are compiled once and run on plain tuples by the driver itself: the ledger's hot path has no time for
building SQL, nor for result objects around each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

Row: TypeAlias = tuple[Any, ...]


class Statement:
    """One statement, written for one dialect. Its parameters are given in the order of its bound names.

    Raises, from every method: what SQLAlchemy raises for the driver's errors.
    """

    def __init__(self, statement: sa.sql.expression.ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, sa.sql.compiler.SQLCompiler)
        assert all(bind.required for bind in compiled.binds.values()), f"a value is hidden in {compiled}"
        self._text = str(compiled)
        self._dialect = dialect
        self._names: Sequence[str] | None = None if compiled.positional else tuple(compiled.binds)

    def rows(self, connection: Connection, *values: object) -> Sequence[Row]:
        """All rows that it selects."""
        found: Sequence[Row] = self._execute(connection, "execute", self._parameters(values)).fetchall()
        return found

    def run(self, connection: Connection, *values: object) -> None:
        """Runs it once."""
        self._execute(connection, "execute", self._parameters(values))

    def run_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Runs it for each of `rows`, in one call of the driver; no rows, no call."""
        if rows:
            many = rows if self._names is None else [self._parameters(row) for row in rows]
            self._execute(connection, "executemany", many)

    def _execute(self, connection: Connection, method: str, parameters: Any) -> Any:
        if not connection.in_transaction():
            connection.begin()
        cursor = connection.connection.cursor()
        try:
            getattr(cursor, method)(self._text, parameters)
        except Exception as error:
            base = self._dialect.loaded_dbapi.Error
            if not isinstance(error, base):
                raise
            raise sa.exc.DBAPIError.instance(self._text, None, error, base, dialect=self._dialect) from error
        return cursor

    def _parameters(self, values: Sequence[object]) -> Any:
        return tuple(values) if self._names is None else dict(zip(self._names, values, strict=True))


class InStatement:
    """A statement with a list in it: one compiled form for each power of two of the list's length."""

    def __init__(self, build: Callable[[list[Any]], Any], dialect: Dialect) -> None:
        """`build` makes the statement from the list of bound parameters that stands for the list."""
        self._build = build
        self._dialect = dialect
        self._forms: dict[int, Statement] = {}

    def rows(self, connection: Connection, items: Sequence[object], *before: object) -> Sequence[Row]:
        """All rows that it selects; the parameters `before` come before the list. An empty list gives no rows."""
        if not items:
            return []
        width = 1 << (len(items) - 1).bit_length()
        form = self._forms.get(width)
        if form is None:
            binds: list[sa.BindParameter[Any]] = [sa.bindparam(f"item_{number}") for number in range(width)]
            form = self._forms[width] = Statement(self._build(binds), self._dialect)
        return form.rows(connection, *before, *items, *[items[-1]] * (width - len(items)))
