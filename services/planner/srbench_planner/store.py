"""The planner's tables. A cell's row is integers and a short word when it failed; it begins with the first lease."""

from __future__ import annotations

import functools
import itertools
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench_kit import db, settings

HEAD = "0007_words_of_runs"
metadata = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("manifest_sha256", sa.Text, nullable=False, unique=True),
    sa.Column("plan_sha256", sa.Text, nullable=False),
    sa.Column("case_sha256", sa.Text, nullable=False),
    # Blob of inline cases; empty when a dataset is bound.
    sa.Column("cases_blob", sa.Text, nullable=False),
    # The frozen manifest without its cases.
    sa.Column("manifest", sa.Text, nullable=False),
    # For a part of the matrix, the cells as 64-bit numbers; absent for the whole.
    sa.Column("picked", sa.LargeBinary),
    # The serialized `Plan` that lists show, so that a page parses no manifest.
    sa.Column("summary", sa.LargeBinary, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Index("plans_by_plan", "plan_sha256", "number"),
    sa.Index("plans_by_cases", "case_sha256", "number"),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("plan", sa.ForeignKey("plans.number"), nullable=False),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, default=""),
    sa.Column("error", sa.Text, nullable=False, default=""),
    # Set when the run is being stopped; survives a restart.
    sa.Column("stop_status", sa.Text, nullable=False, default=""),
    sa.Column("stop_reason", sa.Text, nullable=False, default=""),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
    sa.Column("deadline_us", sa.BigInteger, nullable=False),
    # Counted from the cells in the transaction that ends the run, after which they never change.
    sa.Column("done_count", sa.Integer),
    sa.Column("failed_count", sa.Integer),
    sa.Column("cancelled_count", sa.Integer),
    sa.Column("interrupted_count", sa.Integer),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("profile", sa.Text, nullable=False, server_default=""),
    # What the list is searched by; see `run_rows.searchable`.
    sa.Column("searchable", sa.Text, nullable=False),
    sa.Column("provenance", sa.Text, nullable=False),
    # The term of the planner that has the run; see `queue_owner`.
    sa.Column("term", sa.BigInteger, nullable=False, server_default="0"),
    # What an operator changed of the run while it goes on; the plan and its digest never change.
    sa.Column("paused", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("concurrency", sa.Integer),
    sa.UniqueConstraint("owner", "idempotency_key"),
    sa.Index("runs_by_owner", "owner", "number"),
    sa.Index("runs_by_status", "status", "number"),
)

# Which planner has the queue: one row. Whoever takes over raises the term.
queue_owner = sa.Table(
    "queue_owner",
    metadata,
    sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("term", sa.BigInteger, nullable=False),
    # Names the process: its machine, where it listens there, and a word of its own.
    sa.Column("planner", sa.Text, nullable=False),
    # Where it listens.
    sa.Column("address", sa.Text, nullable=False),
    # By the database's clock.
    sa.Column("expires_us", sa.BigInteger, nullable=False),
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("cell", sa.Integer, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    sa.Column("token", sa.Integer, nullable=False),
    # The executor's process; kept after the end of the cell.
    sa.Column("holder", sa.Integer),
    sa.Column("reason", sa.Text),
    # The key is also the order of every listing; a filter by state reads one run's rows, a few milliseconds at most.
    sa.PrimaryKeyConstraint("run", "cell"),
    sqlite_with_rowid=False,
)

executors = sa.Table(
    "executors",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("executor_id", sa.Text, nullable=False),
    sa.Column("incarnation", sa.Text, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("executor_id", "incarnation"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Index("events_by_run", "run", "seq"),
    sa.Index("events_by_type", "run", "type", "seq"),
    # A sequence is never used twice, even when the newest row is gone.
    sqlite_autoincrement=True,
)

# Runs that try cells of another run again.
recoveries = sa.Table(
    "recoveries",
    metadata,
    sa.Column("run", sa.ForeignKey("runs.number"), primary_key=True, autoincrement=False),
    sa.Column("parent", sa.ForeignKey("runs.number"), nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    # Digest of the chosen cells: what a repeated request must agree with.
    sa.Column("cells_sha256", sa.Text, nullable=False),
    sa.Index("recoveries_by_parent", "parent", "run"),
)

# Which recovery has a cell of the parent. The key is the rule: one child a cell, for ever.
recovery_claims = sa.Table(
    "recovery_claims",
    metadata,
    sa.Column("parent", sa.Integer, nullable=False),
    sa.Column("cell", sa.Integer, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.PrimaryKeyConstraint("parent", "cell"),
    sqlite_with_rowid=False,
)

# Recipes of routers, captured before their run began.
recipes = sa.Table(
    "recipes",
    metadata,
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("target_id", sa.Text, nullable=False),
    # The serialized `Recipe`.
    sa.Column("recipe", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("run", "target_id"),
)

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("owner", "idempotency_key"),
    sa.Index("experiments_by_owner", "owner", "number"),
)

# Which runs belong to an experiment, and as what. Runs know nothing of it.
experiment_runs = sa.Table(
    "experiment_runs",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("experiment", sa.ForeignKey("experiments.number"), nullable=False),
    sa.Column("run", sa.ForeignKey("runs.number"), nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("hypothesis", sa.Text, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("experiment", "run"),
    sa.Index("experiment_runs_by_run", "run"),
)

# What is left of an experiment, so that its creation key never makes another.
experiment_deletions = sa.Table(
    "experiment_deletions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("run_count", sa.Integer, nullable=False),
    sa.Column("delete_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("owner", "idempotency_key"),
)

# The registered targets and the benchmark options, where planners share the database; on one machine they are files.
operator_documents = sa.Table(
    "operator_documents",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    # JSON.
    sa.Column("document", sa.Text, nullable=False),
    # Counts the replacements.
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
)

# What was prepared and what came of it, where planners share the database; on one machine each is a file.
dataset_preparations = sa.Table(
    "dataset_preparations",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    # JSON.
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
)

# Rows of a saved cell: run, cell, state, token, holder, reason.
CellRow: TypeAlias = "tuple[int, int, int, int, int | None, str | None]"
# Several rows a statement: each statement gives up and takes back the interpreter's lock once, whatever it holds, and a
# few fixed sizes keep every one of them prepared.
_BATCHES = (64, 16, 4, 1)


def save_cells(connection: Connection, rows: list[CellRow]) -> None:
    """Inserts or updates the rows, each cell at most once."""
    start = 0
    for size in _BATCHES:
        while len(rows) - start >= size:
            values = tuple(itertools.chain.from_iterable(rows[start : start + size]))
            connection.exec_driver_sql(_save_statement(size, connection.dialect.paramstyle), values)
            start += size


@functools.cache
def _save_statement(count: int, paramstyle: str) -> str:
    mark = "?" if paramstyle == "qmark" else "%s"
    row = f"({', '.join([mark] * 6)})"
    return (
        f"INSERT INTO cells (run, cell, state, token, holder, reason) VALUES {', '.join([row] * count)} "
        "ON CONFLICT (run, cell) DO UPDATE SET state = excluded.state, token = excluded.token, "
        "holder = excluded.holder, reason = excluded.reason"
    )


def open_store(url: str) -> Engine:
    """The engine of the planner's tables, brought to the newest revision."""
    engine = db.create_engine(url, settings.database_schema("planner"))
    db.upgrade(engine, "srbench_planner", HEAD, metadata)
    return engine
