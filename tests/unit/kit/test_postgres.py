"""PostgreSQL under the group writer: a schema a service, one migration at a time, lost connections."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.engine import Connection
from srbench_accounting import schema
from srbench_kit import db, lock_watch, postgres
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_planner import store

from tests.postgres import Database
from tests.waiting import PATIENCE_S

meta = sa.MetaData()
items = sa.Table("items", meta, sa.Column("id", sa.Integer, primary_key=True), sa.Column("word", sa.Text))
SERVICES = [
    ("planner", "srbench_planner", store.HEAD, store.metadata),
    ("accounting", "srbench_accounting", schema.HEAD, schema.metadata),
]


@pytest.fixture
def url(postgres_server: Database) -> str:
    return postgres_server.new()


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    made = db.create_engine(url, "public")
    with made.begin() as connection:
        meta.create_all(connection)
    yield made
    made.dispose()


def add(number: int) -> db.Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        connection.execute(items.insert().values(id=number))
        return number

    return work


def stored(engine: sa.Engine) -> list[int]:
    return db.Reader(engine).run_now(lambda c: list(c.execute(sa.select(items.c.id).order_by(items.c.id)).scalars()))


def end_connections(url: str, pid: int | None = None) -> int:
    """Ends the connections of sr-bench, or the one of `pid`; how many there were."""
    mine = sa.create_engine(postgres.connect_url(url), isolation_level="AUTOCOMMIT")
    which = "pid = :pid" if pid else "application_name LIKE 'sr-bench%' AND datname = current_database()"
    with mine.connect() as connection:
        query = sa.text(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {which}")
        ended = int(connection.execute(query, {"pid": pid} if pid else {}).scalar_one())
    mine.dispose()
    return ended


@pytest.mark.parametrize(("name", "package", "head", "metadata"), SERVICES)
def test_the_scripts_make_exactly_the_tables_of_a_new_store_in_the_services_schema(
    url: str, postgres_server: Database, name: str, package: str, head: str, metadata: sa.MetaData
) -> None:
    scripted, new = db.create_engine(url, name), db.create_engine(postgres_server.new(), name)
    db.upgrade(scripted, package, head)
    db.upgrade(new, package, head, metadata)
    db.upgrade(new, package, head, metadata)
    for engine in (scripted, new):
        engine.dispose()
        found = db.create_engine(engine.url.render_as_string(False), name)
        with found.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
            inspector = sa.inspect(connection)
            assert set(inspector.get_table_names(name)) == {*metadata.tables, "alembic_version"}
            assert inspector.get_table_names("public") == []
        found.dispose()


@pytest.mark.parametrize("scripts", [True, False])
def test_many_processes_that_start_together_migrate_once(url: str, scripts: bool) -> None:
    failures: list[BaseException] = []

    def begin() -> None:
        engine = db.create_engine(url, "planner")
        try:
            db.upgrade(engine, "srbench_planner", store.HEAD, None if scripts else store.metadata)
        except BaseException as error:
            failures.append(error)
        finally:
            engine.dispose()

    threads = [threading.Thread(target=begin) for _ in range(1 if scripts else 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


async def test_a_connection_that_is_cut_costs_no_job(engine: sa.Engine, url: str) -> None:
    writer = db.GroupWriter(engine)
    await writer.run(add(0))
    for round_ in range(1, 6):
        assert end_connections(url) >= 1
        results = await asyncio.gather(*[writer.run(add(round_ * 10 + n)) for n in range(5)])
        assert results == [round_ * 10 + n for n in range(5)]

    def cut_midway(connection: Connection) -> int:
        connection.execute(items.insert().values(id=100))
        if not cut:
            cut.append(end_connections(url, connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()))
        return int(connection.execute(sa.select(sa.func.count()).select_from(items)).scalar_one())

    cut: list[int] = []
    assert await writer.run(cut_midway) == 27
    writer.close()
    assert cut == [1]
    assert stored(engine)[-1] == 100


async def test_a_server_that_is_away_for_good_is_told_after_the_patience(engine: sa.Engine) -> None:
    gone = db.create_engine("postgresql://nobody@127.0.0.1:1/none", "public")
    writer = db.GroupWriter(gone, patience_s=0.5)
    began = time.monotonic()
    with pytest.raises(Unreachable) as raised:
        await writer.run(add(1))
    writer.close()
    assert raised.value.reason == "STORAGE_UNAVAILABLE"
    assert 0.4 < time.monotonic() - began < PATIENCE_S


async def test_a_text_with_a_nul_is_refused_alone_with_a_sentence(engine: sa.Engine) -> None:
    writer = db.GroupWriter(engine)
    bad = writer.run(lambda c: c.execute(items.insert().values(id=2, word="a\0b")).rowcount)
    results = await asyncio.gather(writer.run(add(1)), bad, writer.run(add(3)), return_exceptions=True)
    writer.close()
    assert isinstance(results[1], InvalidInput)
    assert results[1].reason == "BAD_TEXT"
    assert stored(engine) == [1, 3]


async def test_all_that_one_reading_looks_at_is_of_one_moment(engine: sa.Engine) -> None:
    writer = db.GroupWriter(engine)
    await writer.run(add(1))

    def look(connection: Connection) -> tuple[int, int]:
        count = sa.select(sa.func.count()).select_from(items)
        before = connection.execute(count).scalar_one()
        asyncio.run_coroutine_threadsafe(writer.run(add(2)), loop).result(PATIENCE_S)
        return int(before), int(connection.execute(count).scalar_one())

    loop = asyncio.get_running_loop()
    assert await db.Reader(engine).run(look) == (1, 1)
    assert stored(engine) == [1, 2]
    writer.close()


@pytest.mark.parametrize(
    "address", ["mysql://u:secret@h/d", "postgresql://u:secret@h", "postgresql://u:secret@h:port/d", "secret"]
)
def test_a_bad_address_is_told_without_its_password(address: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        db.create_engine(address, "planner")
    assert raised.value.reason == "BAD_DATABASE_URL"
    assert "secret" not in raised.value.message


@pytest.mark.parametrize("where", ["after many rows", "between many rows"])
def test_a_process_that_was_stopped_with_a_lock_holds_up_the_others_for_a_moment_only(
    url: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL's limit for idle transactions knows nothing of either place; a reader who takes long is left alone."""
    monkeypatch.setattr(postgres, "IDLE_IN_TRANSACTION_S", 1)
    monkeypatch.setattr(lock_watch, "LOOK_S", 0.1)
    engine = db.create_engine(url, "public")
    with engine.begin() as connection:
        meta.create_all(connection)
        connection.execute(items.insert(), [{"id": number} for number in range(3)])
    writer = db.GroupWriter(engine)

    async def change() -> None:
        await asyncio.wait_for(writer.run(lambda c: c.execute(items.update().values(word="changed"))), 30)

    with engine.connect() as stopped, engine.connect() as reading:
        postgres.begin_reading(reading)
        reading.execute(sa.select(items)).all()
        driver = stopped.connection.driver_connection
        assert driver is not None
        rows = [("stopped", number) for number in range(3)]
        if where == "after many rows":
            driver.cursor().executemany("UPDATE items SET word = %s WHERE id = %s", rows)
        else:
            driver.execute("SELECT 1")
            driver.pgconn.enter_pipeline_mode()
            driver.pgconn.send_query_params(b"UPDATE items SET word = 'stopped'", [])
            driver.pgconn.send_flush_request()
            driver.pgconn.flush()
        asyncio.run(change())
        assert reading.execute(sa.select(items.c.word)).scalars().all() == ["changed"] * 3
        stopped.invalidate()
    writer.close()
    engine.dispose()


def test_a_server_whose_machine_is_gone_is_noticed(engine: sa.Engine) -> None:
    """No data and no word for 20 s end a connection, whatever the kernel's own patience is."""
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as found:
            assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
            assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            assert [found.getsockopt(socket.IPPROTO_TCP, name) for name in names] == [10, 5, 2]


def test_a_reader_may_compute_for_longer_than_a_writer_may_hold_its_locks(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of a large run took longer than that on a busy machine, and its transaction was ended under it."""

    def limit(connection: Connection) -> str:
        return str(connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one())

    assert db.Reader(engine).run_now(limit) == "10min"
    with engine.connect() as connection:
        assert limit(connection) == "10s", "the same connection is a writer's again"
