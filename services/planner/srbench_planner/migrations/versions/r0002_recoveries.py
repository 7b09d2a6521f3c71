"""Recoveries and the cells that they claim."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002_recoveries"
down_revision = "0001"
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "recoveries",
        sa.Column("run", _NUMBER, sa.ForeignKey("runs.number"), primary_key=True, autoincrement=False),
        sa.Column("parent", _NUMBER, sa.ForeignKey("runs.number"), nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("cells_sha256", sa.Text, nullable=False),
    )
    op.create_index("recoveries_by_parent", "recoveries", ["parent", "run"])
    op.create_table(
        "recovery_claims",
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("parent", "cell", "run")),
        sa.PrimaryKeyConstraint("parent", "cell"),
        sqlite_with_rowid=False,
    )
