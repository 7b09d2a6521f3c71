"""Durable tables: an engine per service, and a writer that commits many jobs in one transaction."""

from __future__ import annotations

import asyncio
import errno
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from srbench_kit import postgres
from srbench_kit.ballast import Ballast
from srbench_kit.errors import Conflict, DataLoss, Exhausted, InvalidInput, SrBenchError, Unreachable
from srbench_kit.lock_watch import LockWatch
from srbench_kit.metrics import Counter, Histogram

T = TypeVar("T")
Item = TypeVar("Item")
MAX_BATCH = 256
# A writer whose server is away asks again for so long before its jobs fail.
PATIENCE_S = 20.0
LOST_PAUSE_S = 0.1
_COMMIT_S = Histogram("srbench_commit_duration_seconds", "From the first job of a transaction to its durable commit.")
_JOBS = Counter("srbench_commit_jobs", "Jobs that were committed together in transactions.")
_log = logging.getLogger(__name__)


def create_engine(url: str, schema: str = "") -> Engine:
    """An engine for `url`: `sqlite:///` and a path as it is, or a PostgreSQL's.

    SQLite gets WAL, `synchronous=FULL`, and transactions that begin when we say so; PostgreSQL its tables in `schema`.

    Raises: `InvalidInput` (`BAD_DATABASE_URL`, `NO_DATABASE_DRIVER`).
    """
    if not url.startswith("sqlite"):
        return postgres.engine(url, schema).execution_options(srbench_schema=schema)
    path = url.removeprefix("sqlite:///")
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Not `url`: a `?` in the path would end it and begin options, so that two services could share one file.
    database = sa.URL.create("sqlite", database=path)
    engine = sa.create_engine(database, connect_args={"check_same_thread": False, "timeout": 30})

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
    """The taxonomy's error for a full or failing disk and for a text that no table takes; `None` for anything else."""
    if isinstance(error, sa.exc.DataError) and "NUL (0x00)" in str(error):
        return InvalidInput("BAD_TEXT", "a text holds the character NUL; expected texts without it")
    text = str(error).lower()
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or "database or disk is full" in text or "no space left" in text or "disk full" in text:
        return Exhausted("STORAGE_FULL", "the store has no space left; nothing was recorded")
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or (
        isinstance(error, OSError) and error.errno == errno.EIO
    ):
        return Unreachable("STORAGE_UNAVAILABLE", "the store does not answer; nothing was recorded")
    return None


def _is_full(error: BaseException) -> bool:
    return isinstance(error, Exhausted) and error.reason == "STORAGE_FULL"


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

    def __init__(
        self,
        engine: Engine,
        before_commit: Callable[[], None] | None = None,
        guard: Callable[[Connection], None] | None = None,
        patience_s: float = PATIENCE_S,
        ballast: Ballast | None = None,
    ) -> None:
        """
        Args:
            before_commit: runs once a transaction, after its jobs: for syncing files that the rows point at.
            guard: runs once a transaction, before its jobs; what it raises fails all of them.
            patience_s: how long a transaction is tried again while the server is away.
            ballast: given up for a transaction that finds the volume full, which is then tried once more.
        """
        self._engine = engine
        self._before_commit = before_commit
        self._guard = guard
        self._patience_s = patience_s
        self._ballast = ballast
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group-writer", daemon=True)
        self._thread.start()
        self._locks = LockWatch(engine) if engine.dialect.name == "postgresql" else None

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
        if self._locks is not None:
            self._locks.close()

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
                began = time.perf_counter()
                self._commit(batch)
                _COMMIT_S.observe(time.perf_counter() - began)
                _JOBS.add(amount=len(batch))
                _deliver(batch)

    def _commit(self, batch: list[_Job[Any]]) -> None:
        until = time.monotonic() + self._patience_s
        while True:
            failure = self._failure(batch)
            if failure is None:
                if self._ballast is not None:
                    self._ballast.take()
                return
            if postgres.is_lost(failure) and time.monotonic() < until:
                time.sleep(LOST_PAUSE_S)
                continue
            # A full disk ends SQLite's whole transaction; what its savepoints say afterwards is not the cause.
            full = next((job.error for job in batch if isinstance(job.error, Exhausted)), None)
            reported = full or storage_error(failure) or failure
            if _is_full(reported) and self._ballast is not None and self._ballast.drop():
                for job in batch:
                    job.error = None
                continue
            _log.error("a transaction of %d jobs failed: %s", len(batch), reported)
            for job in batch:
                job.error = job.error or reported
            return

    def _failure(self, batch: list[_Job[Any]]) -> Exception | None:
        """Commits; what the whole transaction failed with, if it did."""
        try:
            self._commit_once(batch)
        except Exception as error:
            return error
        return None

    def _commit_once(self, batch: list[_Job[Any]]) -> None:
        try:
            self._attempt(batch, savepoints=False)
        except Exception as error:
            if postgres.is_lost(error):
                raise
            # One job's failure must not fail its neighbours: again, each behind a savepoint.
            self._attempt(batch, savepoints=True)

    def _attempt(self, batch: list[_Job[Any]], *, savepoints: bool) -> None:
        with self._engine.connect() as opened:
            connection = opened.execution_options(srbench_write=True)
            with connection.begin():
                if self._guard is not None:
                    self._guard(connection)
                for jobs in _groups(batch, apart=savepoints):
                    if not savepoints:
                        _run(connection, jobs)
                        continue
                    point = connection.begin_nested()
                    try:
                        _run(connection, jobs)
                        point.commit()
                    except Exception as error:
                        if postgres.is_lost(error):
                            raise
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
        # All that one reading looks at is of one moment, as in SQLite.
        one_view = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._engine = engine if engine.dialect.name == "sqlite" else engine.execution_options(**one_view)

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a connection of its own in a thread."""
        return await asyncio.to_thread(self.run_now, work)

    def run_now(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in this thread; for reads of a few rows."""
        try:
            with self._engine.connect() as connection:
                if self._engine.dialect.name == "postgresql":
                    postgres.begin_reading(connection)
                return work(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.DataError) as error:
            raise storage_error(error) or error from error


def upgrade(engine: Engine, package: str, head: str, metadata: sa.MetaData | None = None) -> None:
    """Brings the tables to revision `head` with the Alembic scripts in `{package}/migrations`, in one transaction, while
    every other process that would waits.

    Alembic is imported only when there are tables and they are not at `head`, to keep the start short: an empty database
    gets the tables of `metadata`, which a test of each service holds against what its scripts make.

    Raises: `Exhausted` (`STORAGE_FULL`), `Unreachable` (`STORAGE_UNAVAILABLE`), `Conflict` (`NEWER_STORE`), `DataLoss`
    (`DAMAGED_DATABASE`), and what a script raises.
    """
    where = engine.url.render_as_string(hide_password=True)
    try:
        _upgrade(engine, package, head, metadata)
    except sa.exc.DatabaseError as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise DataLoss("DAMAGED_DATABASE", f"{where} is damaged: {error.orig}; restore it from a backup") from error
        if not postgres.is_lost(error):
            raise
        raise Unreachable("STORAGE_UNAVAILABLE", f"the database {where} cannot be used: {error.orig}".strip()) from error


def _upgrade(engine: Engine, package: str, head: str, metadata: sa.MetaData | None) -> None:
    schema: str | None = engine.get_execution_options().get("srbench_schema")
    with engine.connect() as connection:
        if _revision(connection, schema) == head:
            return
    with engine.connect() as opened:
        connection = opened.execution_options(srbench_write=True)
        with connection.begin():
            if schema:
                postgres.lock_schema(connection, schema)
            if _revision(connection, schema) == head:
                return
            if metadata is not None and not sa.inspect(connection).get_table_names(schema):
                _VERSION.create(connection)
                metadata.create_all(connection)
                connection.execute(sa.insert(_VERSION).values(version_num=head))
                return
            _run_scripts(connection, package, head)


def _revision(connection: Connection, schema: str | None) -> str | None:
    if _VERSION.name not in sa.inspect(connection).get_table_names(schema):
        return None
    found: str | None = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
    return found


def _run_scripts(connection: Connection, package: str, head: str) -> None:
    from importlib.resources import files

    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(files(package) / "migrations"))
    config.attributes["connection"] = connection
    found = _revision(connection, connection.get_execution_options().get("srbench_schema"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        # Never a downgrade: what a newer version keeps there is not known here.
        raise Conflict(
            "NEWER_STORE",
            f"the tables are at {found}, which this version does not know (it makes {head}); use the one that made them",
            found=found,
        )
    command.upgrade(config, head)


# Alembic's own table.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
