"""Copies a service's tables from SQLite to PostgreSQL: one transaction fills a schema beside the real one, and another puts
those of all services together into their places. Until then the target is as it was."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from srbench_kit import db, postgres
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, Conflict, DataLoss, SrBenchError, Unreachable

INCOMING = "_incoming"
ROWS = 5000


def copy_tables(source: Engine, url: str, service: str, package: str, head: str, metadata: sa.MetaData) -> dict[str, int]:
    """Copies all tables of `service` into its incoming schema of the database `url`; rows by table.

    Raises: `DataLoss` (`COPY_DIFFERS`), `InvalidInput` (`BAD_TEXT`), `Unreachable` (`STORAGE_UNAVAILABLE`), `Exhausted`.
    """
    schema = service + INCOMING
    target = db.create_engine(url, schema)
    try:
        with target.begin() as connection:
            connection.exec_driver_sql(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        db.upgrade(target, package, head, metadata)
        with source.connect() as reading, target.begin() as writing:
            return {table.name: _copy(reading, writing, table) for table in metadata.sorted_tables}
    except sa.exc.DBAPIError as error:
        raise db.storage_error(error) or error from error
    finally:
        target.dispose()


def command(service: str, head: str, metadata: sa.MetaData) -> click.Command:
    """The command that copies a service's SQLite tables to `SR_BENCH_DATABASE_URL` and prints the rows by table as JSON."""

    @click.command()
    @click.option("--store", "folder", type=click.Path(path_type=Path, file_okay=False, exists=True), required=True)
    def copy(folder: Path) -> None:
        """Copies the tables of the store in FOLDER."""
        package = f"srbench_{service}"
        source = db.create_engine(f"sqlite:///{folder / (service + '.sqlite3')}")
        try:
            db.upgrade(source, package, head, metadata)
            copied = copy_tables(source, os.environ["SR_BENCH_DATABASE_URL"], service, package, head, metadata)
        except SrBenchError as error:
            click.echo(f"{error.message} ({error.reason})", err=True)
            sys.exit(EXIT_CODES.get(error.kind, EXIT_BUG))
        finally:
            source.dispose()
        print(json.dumps(copied))

    return copy


def check_empty(url: str, services: Iterable[str]) -> None:
    """Raises: `Conflict` (`TARGET_NOT_EMPTY`) when a schema of one of `services` holds tables; `Unreachable`."""

    def work(connection: Connection) -> None:
        for service in services:
            _refuse_tables(connection, service)

    _in_target(url, work)


def publish(url: str, services: Sequence[str]) -> None:
    """Puts the incoming schemas of all `services` into their places, in one transaction.

    Raises: `Conflict` (`TARGET_NOT_EMPTY`), `Unreachable`.
    """

    def work(connection: Connection) -> None:
        for service in services:
            postgres.lock_schema(connection, service)
            _refuse_tables(connection, service)
            connection.exec_driver_sql(f'DROP SCHEMA "{service}"')
            connection.exec_driver_sql(f'ALTER SCHEMA "{service}{INCOMING}" RENAME TO "{service}"')

    _in_target(url, work)


def discard(url: str, services: Iterable[str]) -> None:
    """Drops the incoming schemas. Raises: `Unreachable`."""

    def work(connection: Connection) -> None:
        for service in services:
            connection.exec_driver_sql(f'DROP SCHEMA IF EXISTS "{service}{INCOMING}" CASCADE')

    _in_target(url, work)


def _in_target(url: str, work: Any) -> None:
    engine = postgres.engine(url, "")
    try:
        with engine.begin() as connection:
            work(connection)
    except sa.exc.DBAPIError as error:
        raise _told(error) from error
    finally:
        engine.dispose()


def _told(error: sa.exc.DBAPIError) -> SrBenchError:
    return db.storage_error(error) or Unreachable("STORAGE_UNAVAILABLE", f"the target cannot be used: {error.orig}".strip())


def _refuse_tables(connection: Connection, service: str) -> None:
    tables = sa.inspect(connection).get_table_names(service)
    if tables:
        raise Conflict(
            "TARGET_NOT_EMPTY",
            f"the target's schema {service} holds {len(tables)} tables; expected an empty database",
            schema=service,
        )


def _copy(reading: Connection, writing: Connection, table: sa.Table) -> int:
    columns = [column.name for column in table.columns]
    names = ", ".join(f'"{name}"' for name in columns)
    order = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    rows = reading.connection.cursor()
    rows.execute(f'SELECT {names} FROM "{table.name}" ORDER BY {order}')
    count = 0
    cursor: Any = writing.connection.cursor()
    try:
        with cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
            while part := rows.fetchmany(ROWS):
                count += len(part)
                for row in part:
                    copy.write_row(row)
    except writing.dialect.loaded_dbapi.Error as error:
        base = writing.dialect.loaded_dbapi.Error
        raise sa.exc.DBAPIError.instance(f"COPY {table.name}", None, error, base, dialect=writing.dialect) from error
    _continue_numbers(writing, table)
    there = writing.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    if there != count:
        raise DataLoss("COPY_DIFFERS", f"table {table.name} has {count} rows, its copy {there}")
    return count


def _continue_numbers(connection: Connection, table: sa.Table) -> None:
    """Lets the table count on from its greatest number."""
    column = table.autoincrement_column
    if column is None:
        return
    greatest = connection.execute(sa.select(sa.func.max(column))).scalar()
    if greatest is not None:
        name = connection.execute(sa.select(sa.func.pg_get_serial_sequence(table.name, column.name))).scalar()
        if name is not None:
            connection.execute(sa.select(sa.func.setval(name, greatest)))
