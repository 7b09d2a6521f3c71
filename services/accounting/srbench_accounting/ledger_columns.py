"""Ledger messages as the columns that reports are computed from: what `loading` does from tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb

from srbench_accounting.columns import CallColumns, CallEnd, Floats, Labels, OutcomeColumns, floats, ints
from srbench_accounting.derived import Derived
from srbench_accounting.settled_columns import settle_columns
from srbench_accounting.words import clip


@dataclass(frozen=True, slots=True)
class DerivedCall:
    """A call of the ledger with its receipt and what follows from it; both `None` for one without an end."""

    call: ledger_pb.LedgerCall
    receipt: pb.Receipt | None
    derived: Derived | None


def outcome_columns(rows: Sequence[ledger_pb.LedgerOutcome], eligible_s: float) -> OutcomeColumns:
    """The outcomes in force. `eligible_s` is when the cells could first be leased, in seconds."""
    found = [row.outcome for row in sorted(rows, key=lambda row: row.sequence) if row.sequence]
    start_us = [_micros(one.start_time) if one.HasField("start_time") else None for one in found]
    finish_us = [_micros(one.finish_time) if one.HasField("finish_time") else None for one in found]
    after_us = [
        None if finish is None else finish - (start or 0) for start, finish in zip(start_us, finish_us, strict=True)
    ]
    start, after = _seconds(start_us, 1e6), _seconds(after_us, 1e6)
    return OutcomeColumns(
        case=ints(one.case_index for one in found),
        target=ints(one.target_index for one in found),
        end=ints(one.state for one in found),
        reason=Labels.of(clip(one.reason) for one in found),
        correct=ints(one.correct if one.HasField("correct") else None for one in found),
        strict_format=ints(one.strict_format if one.HasField("strict_format") else None for one in found),
        output_limit=ints(one.output_limit for one in found),
        latency_s=np.where(np.isnan(start), np.nan, after),
        queue_wait_s=start - eligible_s,
        finish_s=np.where(np.isnan(start), 0.0, start) + after,
    )


def call_columns(rows: Sequence[DerivedCall]) -> CallColumns:
    """The calls in the order of dispatch, as operators settled them."""
    nothing, blank = Derived(), pb.Receipt()
    ends = [row.derived or nothing for row in rows]
    receipts = [row.receipt or blank for row in rows]
    sent = [row.call.dispatch for row in rows]
    columns = CallColumns(
        case=ints(one.case_index for one in sent),
        target=ints(one.target_index for one in sent),
        role=ints(one.role for one in sent),
        end=ints(CallEnd.SENT if row.receipt is None else row.receipt.status for row in rows),
        input_tokens=ints(one.input_tokens for one in ends),
        cached_input_tokens=ints(one.cached_input_tokens for one in ends),
        cache_write_tokens=ints(one.cache_write_tokens for one in ends),
        output_tokens=ints(one.output_tokens for one in ends),
        prompt_tokens=ints(_prompt_tokens(one) for one in ends),
        cost=ints(one.cost for one in ends),
        cache_neutral_cost=ints(one.cache_neutral_cost for one in ends),
        reserved=ints(row.call.reserved_picodollars if row.call.HasField("reserved_picodollars") else None for row in rows),
        inference_calls=ints(one.inference_call_count for one in ends),
        cache_read_reported=ints(one.cache_read_reported for one in ends),
        model=Labels.of(clip(one.response_model) for one in receipts),
        selected_model=Labels.of(clip(one.selected_model) for one in receipts),
        decision=Labels.of(clip(one.decision) for one in receipts),
        finish_reason=Labels.of(clip(one.finish_reason) for one in receipts),
        latency_s=_seconds([one.latency_ns if one.HasField("latency_ns") else None for one in receipts], 1e9),
        ttft_s=_seconds([one.ttft_ns if one.HasField("ttft_ns") else None for one in receipts], 1e9),
        first_token_lag_s=_seconds(
            [one.first_token_lag_ns if one.HasField("first_token_lag_ns") else None for one in receipts], 1e9
        ),
    )
    in_force = {index: row.call.settlements[-1] for index, row in enumerate(rows) if row.call.settlements}
    return settle_columns(columns, in_force)


def _prompt_tokens(found: Derived) -> int | None:
    if found.prompt_tokens is not None:
        return found.prompt_tokens
    split = (found.input_tokens, found.cached_input_tokens, found.cache_write_tokens)
    known = [count for count in split if count is not None]
    return sum(known) if len(known) == len(split) else None


def _seconds(values: Sequence[int | None], parts: float) -> Floats:
    """Whole parts of a second as seconds, by the same arithmetic as the loader's."""
    return floats(None if value is None else value / parts for value in values)


def _micros(time: Timestamp) -> int:
    return time.seconds * 1_000_000 + time.nanos // 1000
