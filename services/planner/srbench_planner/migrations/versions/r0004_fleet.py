"""Who has the queue, and what an operator changes of a run that goes on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004_fleet"
down_revision = "0003_experiments"


def upgrade() -> None:
    """Creates the table and the columns."""
    op.create_table(
        "queue_owner",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("term", sa.BigInteger, nullable=False),
        sa.Column("planner", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("expires_us", sa.BigInteger, nullable=False),
    )
    op.add_column("runs", sa.Column("term", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("paused", sa.SmallInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("concurrency", sa.Integer))
