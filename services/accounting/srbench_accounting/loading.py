"""A run's kept columns as those that the report is computed from, corrected, and as operators settled what nobody knew."""

from __future__ import annotations

import numpy as np
from sqlalchemy.engine import Connection

from srbench_accounting.column_files import until_sound
from srbench_accounting.columns import UNKNOWN, CallColumns, Floats, Ints, Labels, OutcomeColumns
from srbench_accounting.corrections import Corrections
from srbench_accounting.kept_columns import KeptColumns, View
from srbench_accounting.list_columns import NO_TIME
from srbench_accounting.settled_columns import in_force_by_row, settle_columns
from srbench_accounting.settlements import Settlements
from srbench_accounting.vocabulary import Vocabulary


class ColumnLoader:
    """Loads the columns of runs. Safe in any thread."""

    def __init__(
        self,
        outcomes: KeptColumns,
        calls: KeptColumns,
        vocabulary: Vocabulary,
        corrections: Corrections,
        settlements: Settlements,
    ) -> None:
        self._outcomes, self._calls = outcomes, calls
        self._vocabulary, self._corrections, self._settlements = vocabulary, corrections, settlements

    def load(self, connection: Connection, run_no: int, eligible_s: float) -> tuple[OutcomeColumns, CallColumns]:
        """The outcomes and the calls of a run. `eligible_s`: when cells could first be leased, in seconds."""
        return until_sound(lambda: self._load(connection, run_no, eligible_s))

    def _load(self, connection: Connection, run_no: int, eligible_s: float) -> tuple[OutcomeColumns, CallColumns]:
        # In the connection's one transaction, and the outcomes first, so that no outcome is newer than its calls.
        outcomes = self._outcomes.load(connection, run_no)
        calls = self._call_columns(connection, *self._calls.load(connection, run_no))
        corrected = self._corrections.apply(connection, run_no, calls)
        settled = settle_columns(corrected, in_force_by_row(self._settlements.of_run(connection, run_no)))
        return self._outcome_columns(connection, *outcomes, eligible_s), settled

    def _outcome_columns(self, connection: Connection, view: View, count: int, eligible_s: float) -> OutcomeColumns:
        def column(name: str) -> Ints:
            return _first(view, name, count)

        times = [column(name) for name in ("start_us", "finish_after_us")]
        start, after = (np.where(values == NO_TIME, np.nan, values / 1e6) for values in times)
        return OutcomeColumns(
            case=column("case_index"),
            target=column("target_index"),
            end=column("state"),
            reason=self._labels(connection, column("reason")),
            correct=column("correct"),
            strict_format=column("strict_format"),
            output_limit=column("output_limit"),
            latency_s=np.where(np.isnan(start), np.nan, after),
            queue_wait_s=start - eligible_s,
            finish_s=np.where(np.isnan(start), 0.0, start) + after,
        )

    def _call_columns(self, connection: Connection, view: View, count: int) -> CallColumns:
        def column(name: str) -> Ints:
            return _first(view, name, count)

        return CallColumns(
            case=column("case_index"),
            target=column("target_index"),
            role=column("role"),
            end=column("receipt_status"),
            input_tokens=column("input_tokens"),
            cached_input_tokens=column("cached_input_tokens"),
            cache_write_tokens=column("cache_write_tokens"),
            output_tokens=column("output_tokens"),
            prompt_tokens=column("prompt"),
            cost=column("receipt_cost"),
            cache_neutral_cost=column("cache_neutral_cost"),
            reserved=column("reserved"),
            inference_calls=column("inference_call_count"),
            cache_read_reported=column("cache_read_reported"),
            model=self._labels(connection, column("own_model")),
            selected_model=self._labels(connection, column("selected_model")),
            decision=self._labels(connection, column("decision")),
            finish_reason=self._labels(connection, column("finish_reason")),
            latency_s=_seconds(column("latency")),
            ttft_s=_seconds(column("ttft")),
            first_token_lag_s=_seconds(column("first_token_lag_ns")),
        )

    def _labels(self, connection: Connection, numbers: Ints) -> Labels:
        # `UNKNOWN` is one below the first number, so that everything moves up by one to be counted.
        present = np.flatnonzero(np.bincount(numbers - UNKNOWN)) + UNKNOWN
        used = present[present != UNKNOWN]
        code_of = np.full(int(present[-1]) - UNKNOWN + 1 if len(present) else 0, UNKNOWN, dtype=np.int64)
        code_of[used - UNKNOWN] = np.arange(len(used))
        words = self._vocabulary.words(connection, used.tolist())
        return Labels(code_of[numbers - UNKNOWN], tuple(words[number] for number in used.tolist()))


def _first(view: View, name: str, count: int) -> Ints:
    """A column of the rows that one transaction sees. Whoever computes with it writes to none of it."""
    column = view.column(name)[:count]
    column.setflags(write=False)
    return column


def _seconds(nanoseconds: Ints) -> Floats:
    return np.where(nanoseconds == UNKNOWN, np.nan, nanoseconds / 1e9)
