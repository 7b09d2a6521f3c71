"""A run's rows as the columns that the report is computed from. Every value is selected as an integer, so that the driver's
rows turn into one array without a look at each."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import func
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.column_cache import ColumnCache, Table
from srbench_accounting.columns import UNKNOWN, CallColumns, Floats, Ints, Labels, OutcomeColumns
from srbench_accounting.corrections import Corrections
from srbench_accounting.settled_columns import in_force_by_row, settle_columns
from srbench_accounting.settlements import Settlements
from srbench_accounting.statements import InStatement, Statement
from srbench_accounting.vocabulary import Vocabulary

# No time before 1970 and no clock set back by more than this is taken for a real one.
_NO_TIME = -(2**62)

# A call whose end is not known, or is that nobody saw it; see `admission.takes_force`.
_MAY_CHANGE = frozenset({int(pb.CALL_STATUS_SENT), int(pb.CALL_STATUS_SENT_UNKNOWN)})
_OUTCOME = ("case_index", "target_index", "state", "reason", "correct", "strict_format", "output_limit")
_CALL = ("case_index", "target_index", "role", "reserved")
_RECEIPT = (
    *("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "cost", "cache_neutral_cost"),
    *("inference_call_count", "cache_read_reported", "model", "selected_model", "decision", "finish_reason"),
    *("latency_ns", "ttft_ns", "first_token_lag_ns"),
)


class ColumnLoader:
    """Loads the columns of runs. Safe in any thread."""

    def __init__(self, dialect: Dialect, vocabulary: Vocabulary, corrections: Corrections) -> None:
        self._vocabulary = vocabulary
        self._settlements = Settlements(dialect)
        self._corrections = corrections
        outcomes, calls, receipts = schema.outcomes, schema.calls, schema.receipts
        times = [
            func.coalesce(outcomes.c[name], sa.literal_column(str(_NO_TIME))) for name in ("start_us", "finish_after_us")
        ]
        outcome_rows = Statement(
            sa.select(*[_known(outcomes.c[name]) for name in _OUTCOME], *times)
            .where(outcomes.c.outcome_id.between(sa.bindparam("first"), sa.bindparam("last")))
            .order_by(outcomes.c.outcome_id),
            dialect,
        )
        self._outcome_cache = ColumnCache(outcome_rows, len(_OUTCOME) + 2)
        prompt = func.coalesce(
            receipts.c.prompt_tokens,
            receipts.c.input_tokens + receipts.c.cached_input_tokens + receipts.c.cache_write_tokens,
            sa.literal_column(str(UNKNOWN)),
        )
        sent: sa.ColumnClause[int] = sa.literal_column(str(int(pb.CALL_STATUS_SENT)))
        columns = [
            *[_known(calls.c[name]) for name in _CALL],
            func.coalesce(receipts.c.status, sent),
            prompt,
            *[_known(receipts.c[name]) for name in _RECEIPT],
        ]
        joined = calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id)
        added = (
            sa.select(*columns)
            .select_from(joined)
            .where(calls.c.call_id.between(sa.bindparam("first"), sa.bindparam("last")))
            .order_by(calls.c.call_id)
        )
        again = sa.select(calls.c.call_id, *columns).select_from(joined)
        self._call_cache = ColumnCache(
            Statement(added, dialect),
            len(columns),
            again=InStatement(lambda items: again.where(calls.c.call_id.in_(items)), dialect),
            changing=(len(_CALL), _MAY_CHANGE),
        )
        runs = schema.runs
        self._counts = Statement(
            sa.select(runs.c.outcome_count, runs.c.call_count).where(runs.c.run_no == sa.bindparam("run_no_")), dialect
        )

    def load(self, connection: Connection, run_no: int, eligible_s: float) -> tuple[OutcomeColumns, CallColumns]:
        """The outcomes and the calls of a run, corrected, and as operators settled what nobody knew. `eligible_s`: when
        cells could first be leased, in seconds."""
        # In the connection's one transaction, and the outcomes first, so that no outcome is newer than its calls.
        outcome_count, call_count = self._counts.rows(connection, run_no)[0]
        outcomes = self._outcome_cache.load(connection, run_no, outcome_count)
        calls = self._call_columns(connection, self._call_cache.load(connection, run_no, call_count))
        corrected = self._corrections.apply(connection, run_no, calls)
        settled = settle_columns(corrected, in_force_by_row(self._settlements.of_run(connection, run_no)))
        return self._outcome_columns(connection, outcomes, eligible_s), settled

    def _outcome_columns(self, connection: Connection, table: Table, eligible_s: float) -> OutcomeColumns:
        column = dict(zip(_OUTCOME, table, strict=False))
        start, after = (np.where(values == _NO_TIME, np.nan, values / 1e6) for values in table[-2:])
        return OutcomeColumns(
            case=column["case_index"],
            target=column["target_index"],
            end=column["state"],
            reason=self._labels(connection, column["reason"]),
            correct=column["correct"],
            strict_format=column["strict_format"],
            output_limit=column["output_limit"],
            latency_s=np.where(np.isnan(start), np.nan, after),
            queue_wait_s=start - eligible_s,
            finish_s=np.where(np.isnan(start), 0.0, start) + after,
        )

    def _call_columns(self, connection: Connection, table: Table) -> CallColumns:
        column = dict(zip((*_CALL, "status", "prompt_tokens", *_RECEIPT), table, strict=True))
        return CallColumns(
            case=column["case_index"],
            target=column["target_index"],
            role=column["role"],
            end=column["status"],
            input_tokens=column["input_tokens"],
            cached_input_tokens=column["cached_input_tokens"],
            cache_write_tokens=column["cache_write_tokens"],
            output_tokens=column["output_tokens"],
            prompt_tokens=column["prompt_tokens"],
            cost=column["cost"],
            cache_neutral_cost=column["cache_neutral_cost"],
            reserved=column["reserved"],
            inference_calls=column["inference_call_count"],
            cache_read_reported=column["cache_read_reported"],
            model=self._labels(connection, column["model"]),
            selected_model=self._labels(connection, column["selected_model"]),
            decision=self._labels(connection, column["decision"]),
            finish_reason=self._labels(connection, column["finish_reason"]),
            latency_s=_seconds(column["latency_ns"]),
            ttft_s=_seconds(column["ttft_ns"]),
            first_token_lag_s=_seconds(column["first_token_lag_ns"]),
        )

    def _labels(self, connection: Connection, numbers: Ints) -> Labels:
        # `UNKNOWN` is one below the first number, so that everything moves up by one to be counted.
        present = np.flatnonzero(np.bincount(numbers - UNKNOWN)) + UNKNOWN
        used = present[present != UNKNOWN]
        code_of = np.full(int(present[-1]) - UNKNOWN + 1 if len(present) else 0, UNKNOWN, dtype=np.int64)
        code_of[used - UNKNOWN] = np.arange(len(used))
        words = self._vocabulary.words(connection, used.tolist())
        return Labels(code_of[numbers - UNKNOWN], tuple(words[number] for number in used.tolist()))


def _known(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return func.coalesce(column, sa.literal_column(str(UNKNOWN)))


def _seconds(nanoseconds: Ints) -> Floats:
    return np.where(nanoseconds == UNKNOWN, np.nan, nanoseconds / 1e9)
