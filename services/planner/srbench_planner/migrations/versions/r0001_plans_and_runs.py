"""Plans, runs, cells, executors and events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Creates the first tables."""
    op.create_table(
        "plans",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("manifest_sha256", sa.Text, nullable=False, unique=True),
        sa.Column("plan_sha256", sa.Text, nullable=False),
        sa.Column("case_sha256", sa.Text, nullable=False),
        sa.Column("cases_blob", sa.Text, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("picked", sa.LargeBinary),
        sa.Column("summary", sa.LargeBinary, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_index("plans_by_plan", "plans", ["plan_sha256", "number"])
    op.create_index("plans_by_cases", "plans", ["case_sha256", "number"])
    op.create_table(
        "runs",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("plan", _NUMBER, sa.ForeignKey("plans.number"), nullable=False),
        sa.Column("idempotency_key", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("status", "reason", "error", "stop_status", "stop_reason")),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("create_us", "update_us", "deadline_us")),
        *(sa.Column(f"{name}_count", sa.Integer) for name in ("done", "failed", "cancelled", "interrupted")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("mode", "searchable", "provenance")),
        sa.UniqueConstraint("owner", "idempotency_key"),
    )
    op.create_index("runs_by_owner", "runs", ["owner", "number"])
    op.create_index("runs_by_status", "runs", ["status", "number"])
    op.create_table(
        "cells",
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("run", "cell")),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("holder", sa.Integer),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("run", "cell"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "executors",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("executor_id", sa.Text, nullable=False),
        sa.Column("incarnation", sa.Text, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("executor_id", "incarnation"),
    )
    op.create_table(
        "events",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_run", "events", ["run", "seq"])
    op.create_index("events_by_type", "events", ["run", "type", "seq"])
