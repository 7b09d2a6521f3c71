"""The operator's documents, for planners that share a database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005_operator_documents"
down_revision = "0004_fleet"


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "operator_documents",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("update_us", sa.BigInteger, nullable=False),
    )
