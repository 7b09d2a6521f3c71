"""What calls are doing, for several processes over one database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "activity",
        sa.Column("executor_id", sa.String(256), primary_key=True),
        sa.Column("report", sa.LargeBinary(), nullable=False),
        sa.Column("told_s", sa.Float(53), nullable=False),
    )
