"""`store`: looking after what the service keeps; `store migrate`, the tables of a local store to PostgreSQL."""

from __future__ import annotations

import os

import click
from srbench_kit.errors import InvalidInput, NotFound

from srbench_cli import printing
from srbench_cli.commands.garbage import gc
from srbench_cli.commands.serve import local_store
from srbench_cli.context import Session, pass_session, shared_options


@click.group()
def store() -> None:
    """Looks after what the service keeps."""


store.add_command(gc)


@store.command()
@click.option("--to", "target", metavar="URL", default="",
              help="postgresql://USER:PASSWORD@HOST/DATABASE, empty; also SR_BENCH_DATABASE_URL.")  # fmt: skip
@shared_options
@pass_session
def migrate(session: Session, target: str) -> None:
    """Moves plans, runs and the ledger from SQLite to an empty PostgreSQL database, and compares every report on both.

    The service must be stopped. Nothing of the store is changed; a migration that fails leaves the target as it was.
    Datasets and evidence stay in the store: the services need it, and SR_BENCH_DATABASE_URL, from then on.
    """
    from srbench_cli import store_moving

    url = target or os.environ.get("SR_BENCH_DATABASE_URL", "")
    if not url:
        raise InvalidInput("BAD_DATABASE_URL", "--to is missing; expected the address of an empty PostgreSQL database")
    folder = local_store(session)
    if not (folder / "planner.sqlite3").exists() or not (folder / "accounting.sqlite3").exists():
        raise NotFound("NO_SUCH_STORE", f"{folder} holds no SQLite store", store=folder)
    moved = store_moving.migrate(folder, url, printing.notice)
    reports, rows = moved["compared_report_count"], moved["rows"]
    printing.show(
        moved,
        lambda: (
            f"moved {rows} rows; {reports} reports are the same on both. Set SR_BENCH_DATABASE_URL and start the service."
        ),
        as_json=session.as_json,
    )
