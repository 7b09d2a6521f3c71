"""Group commit: jobs share a transaction, a failing job spoils no other, and a result means durable."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit import db
from srbench_kit.errors import Conflict, Exhausted

meta = sa.MetaData()
items = sa.Table("items", meta, sa.Column("id", sa.Integer, primary_key=True))


@pytest.fixture
def engine(tmp_path: Path) -> sa.Engine:
    engine = db.create_engine(f"sqlite:///{tmp_path}/t.sqlite3")
    meta.create_all(engine)
    return engine


def insert(number: int, fail: bool = False) -> db.Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        connection.execute(items.insert().values(id=number))
        if fail:
            raise Conflict("NO", "refused after its insert")
        return number

    return work


async def test_a_failing_job_is_rolled_back_alone(engine: sa.Engine) -> None:
    syncs: list[int] = []
    writer = db.GroupWriter(engine, before_commit=lambda: syncs.append(1))
    results = await asyncio.gather(*[writer.run(insert(n, fail=n == 7)) for n in range(20)], return_exceptions=True)
    writer.close()
    assert [r for r in results if not isinstance(r, Conflict)] == [n for n in range(20) if n != 7]
    assert isinstance(results[7], Conflict)
    stored = db.Reader(engine).run_now(lambda c: [row[0] for row in c.execute(sa.select(items.c.id))])
    assert stored == [n for n in range(20) if n != 7]
    assert 0 < len(syncs) < 20


@pytest.mark.parametrize("folder", ["what?mode=memory", "100%20 é", "a#b&c", "c:\\d", "file:e"])
def test_tables_lie_where_the_path_says_whatever_characters_it_has(tmp_path: Path, folder: str) -> None:
    engine = db.create_engine(f"sqlite:///{tmp_path / folder / 't.sqlite3'}")
    meta.create_all(engine)
    engine.dispose()
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert (tmp_path / folder / "t.sqlite3").stat().st_size > 0


async def test_a_full_disk_inside_one_job_is_told_as_such(tmp_path: Path) -> None:
    engine = db.create_engine(f"sqlite:///{tmp_path / 'full.sqlite3'}")
    writer = db.GroupWriter(engine)
    await writer.run(lambda connection: connection.exec_driver_sql("CREATE TABLE t (x)"))
    await writer.run(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count=3").scalar())
    with pytest.raises(Exhausted):
        await writer.run(lambda connection: connection.exec_driver_sql("INSERT INTO t VALUES (zeroblob(100000))"))
    writer.close()
    engine.dispose()


async def test_shared_work_runs_once_for_all_that_wait_and_a_failing_item_fails_alone(engine: sa.Engine) -> None:
    batches: list[list[int]] = []

    def work(connection: Connection, numbers: list[int]) -> list[int]:
        batches.append(list(numbers))
        for number in numbers:
            connection.execute(items.insert().values(id=number))
        if 7 in numbers:
            raise Conflict("NO", "refused after its insert")
        return [number * 2 for number in numbers]

    writer = db.GroupWriter(engine)
    shared = [writer.run_shared(work, number) for number in range(20)]
    results = await asyncio.gather(*shared[:10], writer.run(insert(100)), *shared[10:], return_exceptions=True)
    more = await asyncio.gather(*[writer.run_shared(work, number) for number in range(20, 40)])
    writer.close()
    assert isinstance(results[7], Conflict)
    assert [one for one in results if not isinstance(one, Conflict)] == [
        *[n * 2 for n in range(10) if n != 7],
        100,
        *[n * 2 for n in range(10, 20)],
    ]
    assert more == [n * 2 for n in range(20, 40)]
    stored = db.Reader(engine).run_now(lambda c: [row[0] for row in c.execute(sa.select(items.c.id).order_by(items.c.id))])
    assert stored == [*[n for n in range(40) if n != 7], 100]
    assert max(len(batch) for batch in batches) > 1
