"""The tables of corrections.

Frozen: what the tables were when this revision was made; `schema` says what they are now.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0001"
branch_labels = None
depends_on = None


def _id() -> sa.types.TypeEngine[Any]:
    """64 bits; in SQLite the type that makes it the row's own number."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "corrections",
        sa.Column("correction_no", _id(), nullable=False),
        sa.Column("correction_id", sa.String(length=64), nullable=False),
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("create_us", sa.BigInteger(), nullable=False),
        sa.Column("evidence_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("artifact", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("correction_no"),
        sa.UniqueConstraint("correction_id"),
    )
    op.create_index("corrections_by_run", "corrections", ["run_no", "correction_no"], unique=False)
    op.create_table(
        "corrected_calls",
        sa.Column("correction_no", _id(), autoincrement=False, nullable=False),
        sa.Column("call_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("evidence_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost", sa.BigInteger(), nullable=True),
        sa.Column("cache_neutral_cost", sa.BigInteger(), nullable=True),
        sa.Column("inference_call_count", sa.BigInteger(), nullable=True),
        sa.Column("cache_read_reported", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("correction_no", "call_id"),
    )
    op.create_index("corrected_calls_by_call", "corrected_calls", ["call_id"], unique=False)
