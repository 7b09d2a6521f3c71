"""Recipes, and experiments with their runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003_experiments"
down_revision = "0002_recoveries"
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _times(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "recipes",
        sa.Column("run", sa.Integer, nullable=False),
        *_texts("target_id"),
        sa.Column("recipe", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run", "target_id"),
    )
    op.create_table(
        "experiments",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        *_texts("owner", "name", "idempotency_key"),
        *_times("create_us", "update_us"),
        sa.UniqueConstraint("owner", "idempotency_key"),
    )
    op.create_index("experiments_by_owner", "experiments", ["owner", "number"])
    op.create_table(
        "experiment_runs",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("experiment", _NUMBER, sa.ForeignKey("experiments.number"), nullable=False),
        sa.Column("run", _NUMBER, sa.ForeignKey("runs.number"), nullable=False),
        *_texts("role", "hypothesis"),
        *_times("create_us"),
        sa.UniqueConstraint("experiment", "run"),
    )
    op.create_index("experiment_runs_by_run", "experiment_runs", ["run"])
    op.create_table(
        "experiment_deletions",
        sa.Column("id", sa.Text, primary_key=True),
        *_texts("owner", "name", "idempotency_key"),
        sa.Column("run_count", sa.Integer, nullable=False),
        *_times("delete_us"),
        sa.UniqueConstraint("owner", "idempotency_key"),
    )
