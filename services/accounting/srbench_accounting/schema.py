"""The tables of the ledger. Facts are appended and never changed; only the run row and the marks of open calls move.

Rows are small because there are many: a call's id holds its run's number and its place in the order of dispatch, repeated
words are numbers of the vocabulary, digests are bytes, times are integers, money is picodollars.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

HEAD = "0006"
metadata = sa.MetaData()

# A call's or outcome's id is `run_no << SEQUENCE_BITS | sequence`; the sequence counts from 1 without a gap in its run.
SEQUENCE_BITS = 32


def row_id(run_no: int, sequence: int) -> int:
    """The id of the `sequence`-th row of a run."""
    return run_no << SEQUENCE_BITS | sequence


def sequence_of(identifier: int) -> int:
    """The place of a row in its run, from 1."""
    return identifier & (1 << SEQUENCE_BITS) - 1


# SQLite counts rows by itself only in a column of type INTEGER; PostgreSQL needs 64 bits.
_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _word(name: str) -> sa.Column[int]:
    """A column that holds a number of the vocabulary, NULL for the empty text."""
    return sa.Column(name, sa.Integer)


runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_no", sa.Integer, primary_key=True),
    sa.Column("run_id", sa.String(64), nullable=False, unique=True),
    # The serialized `RunContext`: constant for the life of the run, kept so that facts never wait for the planner.
    sa.Column("context", sa.LargeBinary, nullable=False),
    # Picodollars; NULL where the policy enforces no budget.
    sa.Column("max_cost", sa.BigInteger),
    sa.Column("max_calls_per_case", sa.Integer, nullable=False),
    sa.Column("halt_reason", sa.String(64), nullable=False, default=""),
    sa.Column("call_count", sa.Integer, nullable=False, default=0),
    sa.Column("outcome_count", sa.Integer, nullable=False, default=0),
    sa.Column("open_call_count", sa.Integer, nullable=False, default=0),
    sa.Column("unknown_cost_count", sa.Integer, nullable=False, default=0),
    # Picodollars: known cost of all calls, reservations of open calls, reservations of calls whose cost is unknown.
    sa.Column("spent", sa.BigInteger, nullable=False, default=0),
    sa.Column("open_reserved", sa.BigInteger, nullable=False, default=0),
    sa.Column("held_reserved", sa.BigInteger, nullable=False, default=0),
)

vocabulary = sa.Table(
    "vocabulary",
    metadata,
    sa.Column("word_no", sa.Integer, primary_key=True),
    sa.Column("word", sa.String(256), nullable=False, unique=True),
)

# The lowest valid token of cells that were fenced.
fences = sa.Table(
    "fences",
    metadata,
    sa.Column("run_no", sa.Integer, primary_key=True),
    sa.Column("cell", sa.BigInteger, primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What was dispatched.
calls = sa.Table(
    "calls",
    metadata,
    sa.Column("call_id", _BIG, primary_key=True, autoincrement=False),
    sa.Column("run_no", sa.Integer, nullable=False),
    sa.Column("cell", sa.BigInteger, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("offer", sa.Integer, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("case_index", sa.BigInteger, nullable=False),
    sa.Column("target_index", sa.Integer, nullable=False),
    sa.Column("role", sa.SmallInteger, nullable=False),
    _word("auxiliary"),
    # Picodollars; NULL under `capability_only`.
    sa.Column("reserved", sa.BigInteger),
    sa.Column("dispatch_us", sa.BigInteger, nullable=False),
    _word("executor"),
    sa.Column("request_sha256", sa.LargeBinary, nullable=False),
    sa.Column("request_byte_count", sa.BigInteger, nullable=False),
    sa.Column("message_count", sa.BigInteger, nullable=False),
    sa.Column("max_output_tokens", sa.BigInteger, nullable=False),
    sa.Index("calls_by_cell", "run_no", "cell", "ordinal", "offer", unique=True),
)

# The calls without an end: few, so that finding them never walks over all calls.
open_calls = sa.Table("open_calls", metadata, sa.Column("call_id", _BIG, primary_key=True, autoincrement=False))


def _receipt_columns() -> list[sa.Column[Any]]:
    columns: list[sa.Column[Any]] = [
        sa.Column("status", sa.SmallInteger, nullable=False),
        _word("reason"),
        _word("finish_reason"),
        _word("model"),
        _word("selected_model"),
        _word("decision"),
        _word("config_hash"),
        # Names of usage flags, joined by commas.
        _word("usage_flags"),
        sa.Column("output_complete", sa.SmallInteger, nullable=False),
        sa.Column("usage_final", sa.SmallInteger, nullable=False),
        sa.Column("http_status", sa.Integer),
        # Microseconds from the dispatch; NULL when the executor gave none.
        sa.Column("start_after_us", sa.BigInteger),
        sa.Column("finish_after_us", sa.BigInteger),
        sa.Column("ttft_ns", sa.BigInteger),
        sa.Column("latency_ns", sa.BigInteger),
        sa.Column("first_token_lag_ns", sa.BigInteger),
        # The four exclusive buckets; NULL is unknown.
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("cached_input_tokens", sa.BigInteger),
        sa.Column("cache_write_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        # All prompt tokens where their split is not known; elsewhere NULL, for the buckets say it.
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("cache_read_reported", sa.SmallInteger),
        # Picodollars; NULL is unknown.
        sa.Column("cost", sa.BigInteger),
        sa.Column("cost_lower", sa.BigInteger),
        sa.Column("cost_upper", sa.BigInteger),
        sa.Column("cache_neutral_cost", sa.BigInteger),
        sa.Column("inference_call_count", sa.BigInteger),
        # Where the evidence lies: the segment's name in the vocabulary; NULL when there is none.
        _word("segment"),
        sa.Column("evidence_offset", sa.BigInteger),
        sa.Column("evidence_byte_count", sa.BigInteger),
        sa.Column("evidence_sha256", sa.LargeBinary),
        # What the columns do not hold of the `Receipt`, packed; see `packing`.
        sa.Column("rest", sa.LargeBinary, nullable=False),
    ]
    return columns


# The receipt in force of each call that has an end.
receipts = sa.Table(
    "receipts",
    metadata,
    sa.Column("call_id", _BIG, primary_key=True, autoincrement=False),
    *_receipt_columns(),
)

# Receipts that are not in force: what a later one took the place of, and what came after a known end.
receipts_apart = sa.Table(
    "receipts_apart",
    metadata,
    sa.Column("apart_id", _BIG, primary_key=True),
    sa.Column("call_id", sa.BigInteger, nullable=False),
    *_receipt_columns(),
    sa.Index("receipts_apart_by_call", "call_id"),
)


def _outcome_columns() -> list[sa.Column[Any]]:
    columns: list[sa.Column[Any]] = [
        sa.Column("run_no", sa.Integer, nullable=False),
        sa.Column("cell", sa.BigInteger, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("case_index", sa.BigInteger, nullable=False),
        sa.Column("target_index", sa.Integer, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        _word("reason"),
        sa.Column("correct", sa.SmallInteger),
        sa.Column("score", sa.Float),
        sa.Column("strict_format", sa.SmallInteger),
        sa.Column("output_limit", sa.SmallInteger, nullable=False),
        _word("answer_status"),
        _word("grader_version"),
        sa.Column("start_us", sa.BigInteger),
        # Microseconds from the start, or since 1970 where no start was given.
        sa.Column("finish_after_us", sa.BigInteger),
        # What the columns do not hold of the `CellOutcome`, packed.
        sa.Column("rest", sa.LargeBinary, nullable=False),
    ]
    return columns


# The outcome in force of each cell that has one: the first.
outcomes = sa.Table(
    "outcomes",
    metadata,
    sa.Column("outcome_id", _BIG, primary_key=True, autoincrement=False),
    *_outcome_columns(),
    sa.Index("outcomes_by_cell", "run_no", "cell", unique=True),
)

# Outcomes that came after the first: kept, not in force.
outcomes_apart = sa.Table(
    "outcomes_apart",
    metadata,
    sa.Column("apart_id", _BIG, primary_key=True),
    *_outcome_columns(),
    sa.Index("outcomes_apart_by_cell", "run_no", "cell"),
)

# What a reading of retained streams found. Appended, never changed.
corrections = sa.Table(
    "corrections",
    metadata,
    sa.Column("correction_no", _BIG, primary_key=True),
    sa.Column("correction_id", sa.String(64), nullable=False, unique=True),
    sa.Column("run_no", sa.Integer, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("evidence_sha256", sa.LargeBinary, nullable=False),
    # The `AccountingCorrection`, serialized and compressed.
    sa.Column("artifact", sa.LargeBinary, nullable=False),
    sa.Index("corrections_by_run", "run_no", "correction_no"),
)

# The figures of each verified call that are not its receipt's; in force while the receipt has the same evidence.
corrected_calls = sa.Table(
    "corrected_calls",
    metadata,
    sa.Column("correction_no", _BIG, primary_key=True, autoincrement=False),
    sa.Column("call_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("evidence_sha256", sa.LargeBinary, nullable=False),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("cached_input_tokens", sa.BigInteger),
    sa.Column("cache_write_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("prompt_tokens", sa.BigInteger),
    sa.Column("cost", sa.BigInteger),
    sa.Column("cache_neutral_cost", sa.BigInteger),
    sa.Column("inference_call_count", sa.BigInteger),
    sa.Column("cache_read_reported", sa.SmallInteger),
    sa.Index("corrected_calls_by_call", "call_id"),
)

# What people said of samples of judged answers. Appended, never changed; the newest of a run is in force.
audits = sa.Table(
    "audits",
    metadata,
    sa.Column("audit_no", _BIG, primary_key=True),
    sa.Column("audit_id", sa.String(64), nullable=False, unique=True),
    sa.Column("run_no", sa.Integer, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    # The `ImportAuditRequest`, serialized and compressed.
    sa.Column("artifact", sa.LargeBinary, nullable=False),
    sa.Index("audits_by_run", "run_no", "audit_no"),
)

# The last report of each executor, where several processes share the database; written once a second, and no fact.
activity = sa.Table(
    "activity",
    metadata,
    sa.Column("executor_id", sa.String(256), primary_key=True),
    # The `ActivityReport`, serialized and compressed.
    sa.Column("report", sa.LargeBinary, nullable=False),
    # Seconds since 1970, by the database's clock.
    sa.Column("told_s", sa.Float(53), nullable=False),
)

# What operators said of calls whose cost is unknown; the newest of a call is in force. `data` is a `CallSettlement`.
settlements = sa.Table(
    "settlements",
    metadata,
    sa.Column("settlement_id", _BIG, primary_key=True),
    sa.Column("call_id", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("settlements_by_call", "call_id"),
)
