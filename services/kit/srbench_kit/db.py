"""Durable tables: an engine per service, and a writer that commits many jobs in one transaction."""

from __future__ import annotations

import asyncio
import errno
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from srbench_kit.errors import Exhausted, SrBenchError, Unreachable

T = TypeVar("T")
Item = TypeVar("Item")
MAX_BATCH = 256
_log = logging.getLogger(__name__)


def create_engine(url: str) -> Engine:
    """An engine for `url`. SQLite gets WAL, `synchronous=FULL`, and transactions that begin when we say so."""
    if not url.startswith("sqlite"):
        return sa.create_engine(url, pool_pre_ping=True)
    path = url.removeprefix("sqlite:///")
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = sa.create_engine(url, connect_args={"check_same_thread": False, "timeout": 30})

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own implicit transactions are off; `begin` below starts them.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A read stays a read; a writer says so at once, since SQLite cannot upgrade under contention.
        write = connection.get_execution_options().get("srbench_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def storage_error(error: BaseException) -> SrBenchError | None:
    """The taxonomy's error for a full or failing disk; `None` for anything else."""
    text = str(error).lower()
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or "database or disk is full" in text or "no space left" in text or "disk full" in text:
        return Exhausted("STORAGE_FULL", "the store has no space left; nothing was recorded")
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or (
        isinstance(error, OSError) and error.errno == errno.EIO
    ):
        return Unreachable("STORAGE_UNAVAILABLE", "the store does not answer; nothing was recorded")
    return None


@dataclass(slots=True)
class _Job(Generic[T]):
    # A function of the connection alone, or one that takes the items of all jobs that share it.
    work: Callable[..., Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    shared: bool = False
    item: Any = None
    result: Any = None
    error: BaseException | None = field(default=None)


class GroupWriter:
    """The one writer of a service's tables: jobs that wait together are committed together.

    A job is a function of the connection. It may be run twice (the first time its transaction may be rolled back with
    another job's failure), so it changes nothing but tables. Its result is handed out after the commit is durable.
    """

    def __init__(self, engine: Engine, before_commit: Callable[[], None] | None = None) -> None:
        """`before_commit` runs once a transaction, after its jobs: for syncing files that the rows point at."""
        self._engine = engine
        self._before_commit = before_commit
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` inside a transaction and returns its result once that is durable.

        Raises: what `work` raised; `Exhausted` (`STORAGE_FULL`); `Unreachable` (`STORAGE_UNAVAILABLE`).
        """
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, loop, loop.create_future())
        self._queue.put(job)
        return await job.future

    async def run_shared(self, work: Callable[[Connection, list[Item]], Sequence[T]], item: Item) -> T:
        """As `run`, but `work` is run once for all items that wait for it side by side; it gives a result for each.

        When that fails, it is run again for each item by itself, so that one item's failure spoils no other.
        """
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, loop, loop.create_future(), shared=True, item=item)
        self._queue.put(job)
        return await job.future

    def close(self) -> None:
        """Commits what waits and ends the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        closing = False
        while not closing:
            first = self._queue.get()
            batch: list[_Job[Any]] = []
            while first is not None:
                batch.append(first)
                if len(batch) >= MAX_BATCH:
                    break
                try:
                    first = self._queue.get_nowait()
                except queue.Empty:
                    break
            else:
                closing = True
            if batch:
                self._commit(batch)
                _deliver(batch)

    def _commit(self, batch: list[_Job[Any]]) -> None:
        try:
            self._attempt(batch, savepoints=False)
        except Exception:
            # One job's failure must not fail its neighbours: again, each behind a savepoint.
            try:
                self._attempt(batch, savepoints=True)
            except Exception as error:
                # A full disk ends SQLite's whole transaction; what its savepoints say afterwards is not the cause.
                full = next((job.error for job in batch if isinstance(job.error, Exhausted)), None)
                reported = full or storage_error(error) or error
                _log.error("a transaction of %d jobs failed: %s", len(batch), reported)
                for job in batch:
                    job.error = job.error or reported

    def _attempt(self, batch: list[_Job[Any]], *, savepoints: bool) -> None:
        with self._engine.connect() as opened:
            connection = opened.execution_options(srbench_write=True)
            with connection.begin():
                for jobs in _groups(batch, apart=savepoints):
                    if not savepoints:
                        _run(connection, jobs)
                        continue
                    point = connection.begin_nested()
                    try:
                        _run(connection, jobs)
                        point.commit()
                    except Exception as error:
                        jobs[0].error = storage_error(error) or error
                        point.rollback()
                if self._before_commit is not None:
                    self._before_commit()


def _groups(batch: list[_Job[Any]], *, apart: bool) -> Iterator[list[_Job[Any]]]:
    """The jobs in order, those of one shared work that stand side by side together unless they are to be kept `apart`."""
    group: list[_Job[Any]] = []
    for job in batch:
        if group and (apart or not job.shared or job.work != group[0].work):
            yield group
            group = []
        group.append(job)
    if group:
        yield group


def _run(connection: Connection, jobs: list[_Job[Any]]) -> None:
    first = jobs[0]
    results = first.work(connection, [job.item for job in jobs]) if first.shared else [first.work(connection)]
    for job, result in zip(jobs, results, strict=True):
        job.result, job.error = result, None


def _deliver(batch: list[_Job[Any]]) -> None:
    """Resolves futures on their own loops, one wake-up a loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in batch:
        loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, jobs)
        except RuntimeError:
            _log.warning("a loop closed before %d results could be handed out", len(jobs))


def _resolve(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


class Reader:
    """Read-only access from a few threads, so that a long read never blocks the loop or the writer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a connection of its own in a thread."""
        return await asyncio.to_thread(self.run_now, work)

    def run_now(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in this thread; for reads of a few rows."""
        try:
            with self._engine.connect() as connection:
                return work(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            raise storage_error(error) or error from error


def upgrade(engine: Engine, package: str, head: str, metadata: sa.MetaData | None = None) -> None:
    """Brings the tables to revision `head` with the Alembic scripts in `{package}/migrations`.

    Alembic is imported only when there are tables and they are not at `head`, to keep the start short: an empty database
    gets the tables of `metadata`, which a test of each service holds against what its scripts make.
    """
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        if _VERSION.name in tables and connection.execute(sa.select(_VERSION.c.version_num)).scalar() == head:
            return
    if metadata is not None and not tables:
        _create(engine, head, metadata)
        return
    from importlib.resources import files

    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files(package) / "migrations"))
    with engine.connect() as opened:
        connection = opened.execution_options(srbench_write=True)
        with connection.begin():
            config.attributes["connection"] = connection
            command.upgrade(config, head)


# Alembic's own table.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def _create(engine: Engine, head: str, metadata: sa.MetaData) -> None:
    with engine.connect() as opened:
        connection = opened.execution_options(srbench_write=True)
        with connection.begin():
            _VERSION.create(connection, checkfirst=True)
            metadata.create_all(connection)
            connection.execute(sa.insert(_VERSION).values(version_num=head))
