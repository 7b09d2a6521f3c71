"""What people say of samples of judged answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "audits",
        sa.Column("audit_no", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("audit_id", sa.String(64), nullable=False, unique=True),
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("create_us", sa.BigInteger(), nullable=False),
        sa.Column("artifact", sa.LargeBinary(), nullable=False),
    )
    op.create_index("audits_by_run", "audits", ["run_no", "audit_no"])
