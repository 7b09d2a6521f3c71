"""Statements that are compiled once and run on plain tuples by the driver itself: the ledger's hot path has no time for
building SQL, nor for result objects around each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

Row: TypeAlias = tuple[Any, ...]


def insert_once(table: sa.Table, dialect: Dialect) -> Any:
    """An insert that leaves a row as it is that another process made meanwhile."""
    # Each is loaded with its own database alone.
    dialects = import_module(f"sqlalchemy.dialects.{dialect.name}")
    return dialects.insert(table).on_conflict_do_nothing()


def upsert(table: sa.Table, dialect: Dialect, more: Mapping[str, sa.ColumnElement[Any]]) -> Any:
    """An insert that replaces the row of the same key; `more` gives the values that are not bound."""
    dialects = import_module(f"sqlalchemy.dialects.{dialect.name}")
    bound: dict[str, Any] = {column.name: sa.bindparam(column.name) for column in table.columns if column.name not in more}
    insert = dialects.insert(table).values(**bound, **more)
    keys = [column.name for column in table.primary_key.columns]
    changed = {column.name: insert.excluded[column.name] for column in table.columns if column.name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)


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

    def array(self, connection: Connection, names: Sequence[str], *values: object) -> bytes | None:
        """The columns `names` of all rows as one array of two dimensions, rows first, in PostgreSQL's binary form; `None`
        for no rows."""
        text = f"SELECT array_agg(ARRAY[{', '.join(f'selected.{name}' for name in names)}]) FROM ({self._text}) selected"
        cursor = self._cursor(connection, binary=True)
        self._guarded(lambda: cursor.execute(text, self._parameters(values)))
        found: bytes | None = cursor.pgresult.get_value(0, 0)
        return found

    def _cursor(self, connection: Connection, **options: bool) -> Any:
        if not connection.in_transaction():
            connection.begin()
        return connection.connection.cursor(**options)

    def _execute(self, connection: Connection, method: str, parameters: Any) -> Any:
        cursor = self._cursor(connection)
        self._guarded(lambda: getattr(cursor, method)(self._text, parameters))
        return cursor

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            base = self._dialect.loaded_dbapi.Error
            if not isinstance(error, base):
                raise
            raise sa.exc.DBAPIError.instance(self._text, None, error, base, dialect=self._dialect) from error

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
