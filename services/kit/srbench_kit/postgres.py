"""PostgreSQL: connections into a service's own schema, and which errors mean that the server went away for a moment."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine

from srbench_kit.errors import InvalidInput

# A process's reads, its writer and its owner's renewals; what is above the first number is closed again after use.
POOL_SIZE, POOL_OVERFLOW = 4, 12
CONNECT_TIMEOUT_S = 5
# A process that was stopped in the middle of a transaction must not hold its locks for ever; see `lock_watch`, too.
IDLE_IN_TRANSACTION_S = 10
# A reader holds no lock that anybody waits for, and computes a report of a million cells inside its transaction.
IDLE_READER_S = 600
# A server whose machine is gone says nothing more; after 20 s the connection is, too, and the transaction is run again.
_SILENCE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
# SQLSTATE: connection exceptions, operator intervention, too many connections, idle in transaction for too long; and
# those after which the same transaction is simply run again (a deadlock, a serialization failure).
_LOST = ("08", "57P", "53300", "25P03", "40001", "40P01")


def is_postgres(url: str) -> bool:
    """Whether `url` is that of a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgresql+psycopg://", "postgres://"))


def connect_url(url: str) -> URL:
    """`url` for psycopg 3. Raises: `InvalidInput` (`BAD_DATABASE_URL`); the message holds no password."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise _bad("it is not the address of a database") from None
    if not is_postgres(url):
        raise _bad(f"its scheme is {parsed.drivername!r}")
    if not parsed.database:
        raise _bad("it names no database")
    return parsed.set(drivername="postgresql+psycopg")


def engine(url: str, schema: str) -> Engine:
    """An engine whose connections work in `schema`, with durable commits.

    Raises: `InvalidInput` (`BAD_DATABASE_URL`, `NO_DATABASE_DRIVER`).
    """
    try:
        made = sa.create_engine(
            connect_url(url),
            pool_pre_ping=True,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "application_name": f"sr-bench {schema}".strip(),
                **_SILENCE,
            },
        )
    except ModuleNotFoundError:
        raise InvalidInput(
            "NO_DATABASE_DRIVER",
            "SR_BENCH_DATABASE_URL names a PostgreSQL database, but psycopg is not installed; "
            "run pip install 'sr-bench[postgres]'",
        ) from None

    @event.listens_for(made, "connect")
    def configure(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            if schema:
                cursor.execute(f'SET search_path TO "{schema}"')
            # A database or a role may have another default; an acknowledgement follows a durable commit.
            cursor.execute("SET synchronous_commit TO on")
            cursor.execute(f"SET idle_in_transaction_session_timeout TO '{IDLE_IN_TRANSACTION_S}s'")
        connection.commit()

    return made


def begin_reading(connection: Connection) -> None:
    """Lets a reader's transaction be idle for as long as it takes to compute from what it read."""
    connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout TO '{IDLE_READER_S}s'")


def lock_schema(connection: Connection, schema: str) -> None:
    """Waits until no other process changes the tables of `schema`, and makes the schema. Until the transaction ends."""
    number = int.from_bytes(hashlib.sha256(f"srbench:{schema}".encode()).digest()[:8], signed=True)
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
    connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')


def is_lost(error: BaseException) -> bool:
    """Whether the server was away, or asked for the transaction to be run again: nothing of it was kept, or at most all."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", "")
    if state is None:
        # The library's own word for a connection that cannot be made or was cut.
        return isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return bool(state) and state.startswith(_LOST)


def _bad(why: str) -> InvalidInput:
    return InvalidInput(
        "BAD_DATABASE_URL",
        f"SR_BENCH_DATABASE_URL cannot be used: {why}; expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        field="SR_BENCH_DATABASE_URL",
    )
