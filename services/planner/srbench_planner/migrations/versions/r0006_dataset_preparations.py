"""Records of dataset preparations, for planners that share a database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006_dataset_preparations"
down_revision = "0005_operator_documents"


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "dataset_preparations",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("update_us", sa.BigInteger, nullable=False),
    )
