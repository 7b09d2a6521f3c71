"""Columns of integers come out of a database as they went in, whatever their size and number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_accounting import row_tables
from srbench_accounting.row_tables import RowTable

EXTREMES = [0, -1, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 10**18 + 7]
numbers = sa.Table(
    "numbers",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("a", sa.BigInteger),
    sa.Column("b", sa.BigInteger),
)

later = sa.Table("later", numbers.metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("c", sa.BigInteger))


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = sa.create_engine("sqlite://")
    numbers.metadata.create_all(engine)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def table(connection: Connection, first: int, last: int) -> list[list[int]]:
    """Both columns of the rows between two ids."""
    found = RowTable([numbers.c.a, numbers.c.b], numbers.c.id, connection.dialect).read(connection, first, last)
    assert found.dtype == np.int64
    return [column.tolist() for column in found]


@pytest.mark.parametrize("rows_of_a_range", [1, 3, 100])
def test_every_number_is_exact_and_in_the_order_of_ids(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, rows_of_a_range: int
) -> None:
    monkeypatch.setattr(row_tables, "RANGE", rows_of_a_range)
    rows = [{"id": place + 1, "a": value, "b": place} for place, value in enumerate(EXTREMES)]
    connection.execute(sa.insert(numbers), rows[::-1])
    assert table(connection, 1, len(rows)) == [EXTREMES, list(range(len(rows)))]
    assert table(connection, 2, 4) == [EXTREMES[1:4], [1, 2, 3]]


def test_ids_without_rows_give_none(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_tables, "RANGE", 2)
    assert table(connection, 1, 9) == [[], []]
    assert table(connection, 1, 0) == [[], []]
    connection.execute(sa.insert(numbers), [{"id": 2, "a": 20, "b": 21}, {"id": 7, "a": 70, "b": 71}])
    assert table(connection, 1, 9) == [[20, 70], [21, 71]]


def test_a_second_table_lends_its_rows_of_the_same_ids(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_tables, "RANGE", 2)
    connection.execute(sa.insert(numbers), [{"id": place, "a": place, "b": 0} for place in range(1, 8)])
    connection.execute(sa.insert(later), [{"id": place, "c": place * 10} for place in (2, 3, 6, 9)])
    columns = [numbers.c.a, sa.func.coalesce(later.c.c, sa.literal_column("-1"))]
    rows = RowTable(columns, numbers.c.id, connection.dialect, beside=later.c.id)
    assert rows.read(connection, 2, 7).tolist() == [[2, 3, 4, 5, 6, 7], [20, 30, -1, -1, 60, -1]]


@pytest.mark.parametrize("column", ["a", "b"])
def test_a_null_never_moves_a_column_up(connection: Connection, column: str) -> None:
    rows: list[dict[str, int | None]] = [{"id": place, "a": place, "b": place} for place in (1, 2, 3)]
    rows[1][column] = None
    connection.execute(sa.insert(numbers), rows)
    with pytest.raises(ValueError, match="same shape"):
        table(connection, 1, 3)
