"""The tables of the ledger.

Frozen: what the tables were when this revision was made; `schema` says what they are now.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _id() -> sa.types.TypeEngine[Any]:
    """64 bits; in SQLite the type that makes it the row's own number."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates the tables."""
    _create_calls()
    _create_outcomes()
    _create_receipts()
    _create_runs()


def _create_calls() -> None:
    op.create_table(
        "calls",
        sa.Column("call_id", _id(), autoincrement=False, nullable=False),
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("cell", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("offer", sa.Integer(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("case_index", sa.BigInteger(), nullable=False),
        sa.Column("target_index", sa.Integer(), nullable=False),
        sa.Column("role", sa.SmallInteger(), nullable=False),
        sa.Column("auxiliary", sa.Integer(), nullable=True),
        sa.Column("reserved", sa.BigInteger(), nullable=True),
        sa.Column("dispatch_us", sa.BigInteger(), nullable=False),
        sa.Column("executor", sa.Integer(), nullable=True),
        sa.Column("request_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("request_byte_count", sa.BigInteger(), nullable=False),
        sa.Column("message_count", sa.BigInteger(), nullable=False),
        sa.Column("max_output_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call_id"),
    )
    op.create_index("calls_by_cell", "calls", ["run_no", "cell", "ordinal", "offer"], unique=True)
    op.create_table(
        "open_calls", sa.Column("call_id", _id(), autoincrement=False, nullable=False), sa.PrimaryKeyConstraint("call_id")
    )


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("outcome_id", _id(), autoincrement=False, nullable=False),
        *_outcome_columns(),
        sa.PrimaryKeyConstraint("outcome_id"),
    )
    op.create_index("outcomes_by_cell", "outcomes", ["run_no", "cell"], unique=True)
    op.create_table(
        "outcomes_apart",
        sa.Column("apart_id", _id(), nullable=False),
        *_outcome_columns(),
        sa.PrimaryKeyConstraint("apart_id"),
    )
    op.create_index("outcomes_apart_by_cell", "outcomes_apart", ["run_no", "cell"], unique=False)


def _outcome_columns() -> list[sa.Column[Any]]:
    """What an outcome holds, whether it decides its cell or is kept apart."""
    return [
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("cell", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("case_index", sa.BigInteger(), nullable=False),
        sa.Column("target_index", sa.Integer(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=True),
        sa.Column("correct", sa.SmallInteger(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("strict_format", sa.SmallInteger(), nullable=True),
        sa.Column("output_limit", sa.SmallInteger(), nullable=False),
        sa.Column("answer_status", sa.Integer(), nullable=True),
        sa.Column("grader_version", sa.Integer(), nullable=True),
        sa.Column("start_us", sa.BigInteger(), nullable=True),
        sa.Column("finish_after_us", sa.BigInteger(), nullable=True),
        sa.Column("rest", sa.LargeBinary(), nullable=False),
    ]


def _create_receipts() -> None:
    op.create_table(
        "receipts",
        sa.Column("call_id", _id(), autoincrement=False, nullable=False),
        *_receipt_columns(),
        sa.PrimaryKeyConstraint("call_id"),
    )
    op.create_table(
        "receipts_apart",
        sa.Column("apart_id", _id(), nullable=False),
        sa.Column("call_id", sa.BigInteger(), nullable=False),
        *_receipt_columns(),
        sa.PrimaryKeyConstraint("apart_id"),
    )
    op.create_index("receipts_apart_by_call", "receipts_apart", ["call_id"], unique=False)


def _receipt_columns() -> list[sa.Column[Any]]:
    """What a receipt holds, whether it is the one in force or is kept apart."""
    return [
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=True),
        sa.Column("finish_reason", sa.Integer(), nullable=True),
        sa.Column("model", sa.Integer(), nullable=True),
        sa.Column("selected_model", sa.Integer(), nullable=True),
        sa.Column("decision", sa.Integer(), nullable=True),
        sa.Column("config_hash", sa.Integer(), nullable=True),
        sa.Column("usage_flags", sa.Integer(), nullable=True),
        sa.Column("output_complete", sa.SmallInteger(), nullable=False),
        sa.Column("usage_final", sa.SmallInteger(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("start_after_us", sa.BigInteger(), nullable=True),
        sa.Column("finish_after_us", sa.BigInteger(), nullable=True),
        sa.Column("ttft_ns", sa.BigInteger(), nullable=True),
        sa.Column("latency_ns", sa.BigInteger(), nullable=True),
        sa.Column("first_token_lag_ns", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_read_reported", sa.SmallInteger(), nullable=True),
        sa.Column("cost", sa.BigInteger(), nullable=True),
        sa.Column("cost_lower", sa.BigInteger(), nullable=True),
        sa.Column("cost_upper", sa.BigInteger(), nullable=True),
        sa.Column("cache_neutral_cost", sa.BigInteger(), nullable=True),
        sa.Column("inference_call_count", sa.BigInteger(), nullable=True),
        sa.Column("segment", sa.Integer(), nullable=True),
        sa.Column("evidence_offset", sa.BigInteger(), nullable=True),
        sa.Column("evidence_byte_count", sa.BigInteger(), nullable=True),
        sa.Column("evidence_sha256", sa.LargeBinary(), nullable=True),
        sa.Column("rest", sa.LargeBinary(), nullable=False),
    ]


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("context", sa.LargeBinary(), nullable=False),
        sa.Column("max_cost", sa.BigInteger(), nullable=True),
        sa.Column("max_calls_per_case", sa.Integer(), nullable=False),
        sa.Column("halt_reason", sa.String(length=64), nullable=False),
        sa.Column("call_count", sa.Integer(), nullable=False),
        sa.Column("outcome_count", sa.Integer(), nullable=False),
        sa.Column("open_call_count", sa.Integer(), nullable=False),
        sa.Column("unknown_cost_count", sa.Integer(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("open_reserved", sa.BigInteger(), nullable=False),
        sa.Column("held_reserved", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_no"),
        sa.UniqueConstraint("run_id"),
    )
    op.create_table(
        "fences",
        sa.Column("run_no", sa.Integer(), nullable=False),
        sa.Column("cell", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_no", "cell"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "vocabulary",
        sa.Column("word_no", sa.Integer(), nullable=False),
        sa.Column("word", sa.String(length=256), nullable=False),
        sa.PrimaryKeyConstraint("word_no"),
        sa.UniqueConstraint("word"),
    )
