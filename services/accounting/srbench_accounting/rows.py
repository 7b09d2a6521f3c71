"""Facts as rows and back. What a column holds is not kept a second time in the packed rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.derived import Derived
from srbench_accounting.packing import pack, unpack
from srbench_accounting.words import clip

RECEIPT_COLUMNS = tuple(column.name for column in schema.receipts.c if column.name != "call_id")
OUTCOME_COLUMNS = tuple(column.name for column in schema.outcomes.c if column.name != "outcome_id")
_RECEIPT_WORDS = ("reason", "finish_reason", "response_model", "selected_model", "decision", "config_hash")


class Words(Protocol):
    """What turns a word into its number."""

    def number(self, text: str) -> int | None:
        """The number of `text`; `None` for the empty text."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a call's evidence lies, and its digest."""

    segment: str
    offset: int
    length: int
    sha256: bytes


class CallRow(NamedTuple):
    """One row of `calls`, in the order of its columns."""

    call_id: int
    run_no: int
    cell: int
    ordinal: int
    offer: int
    token: int
    case_index: int
    target_index: int
    role: int
    auxiliary: int | None
    reserved: int | None
    dispatch_us: int
    executor: int | None
    request_sha256: bytes
    request_byte_count: int
    message_count: int
    max_output_tokens: int


class ReceiptRow(NamedTuple):
    """One row of `receipts` without its call's id, in the order of its columns."""

    status: int
    reason: int | None
    finish_reason: int | None
    model: int | None
    selected_model: int | None
    decision: int | None
    config_hash: int | None
    usage_flags: int | None
    output_complete: int
    usage_final: int
    http_status: int | None
    start_after_us: int | None
    finish_after_us: int | None
    ttft_ns: int | None
    latency_ns: int | None
    first_token_lag_ns: int | None
    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    prompt_tokens: int | None
    cache_read_reported: int | None
    cost: int | None
    cost_lower: int | None
    cost_upper: int | None
    cache_neutral_cost: int | None
    inference_call_count: int | None
    segment: int | None
    evidence_offset: int | None
    evidence_byte_count: int | None
    evidence_sha256: bytes | None
    rest: bytes


class OutcomeRow(NamedTuple):
    """One row of `outcomes` without its id, in the order of its columns."""

    run_no: int
    cell: int
    token: int
    case_index: int
    target_index: int
    state: int
    reason: int | None
    correct: int | None
    score: float | None
    strict_format: int | None
    output_limit: int
    answer_status: int | None
    grader_version: int | None
    start_us: int | None
    finish_after_us: int | None
    rest: bytes


def micros(time: Timestamp) -> int:
    """Microseconds since 1970."""
    return time.seconds * 1_000_000 + time.nanos // 1000


def timestamp(time_us: int) -> Timestamp:
    """The message of a time in microseconds since 1970."""
    seconds, part = divmod(time_us, 1_000_000)
    return Timestamp(seconds=seconds, nanos=part * 1000)


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _receipt_rest(receipt: pb.Receipt) -> pb.Receipt:
    """What no column holds. Built up, which takes a third of the time of a copy that is cleared."""
    rest = pb.Receipt(
        message=receipt.message,
        usage_json=receipt.usage_json,
        router_receipt_json=receipt.router_receipt_json,
        received_bytes=receipt.received_bytes,
        first_token_clock=receipt.first_token_clock,
        content_chars=receipt.content_chars,
        reasoning_chars=receipt.reasoning_chars,
        session_id=receipt.session_id,
        source_run_id=receipt.source_run_id,
        source_call_id=receipt.source_call_id,
    )
    if receipt.HasField("first_content_ns"):
        rest.first_content_ns = receipt.first_content_ns
    if receipt.HasField("connect_ns"):
        rest.connect_ns = receipt.connect_ns
    if receipt.HasField("inference_call_count"):
        rest.inference_call_count = receipt.inference_call_count
    return rest


def _outcome_rest(outcome: pb.CellOutcome) -> pb.CellOutcome:
    """What no column holds."""
    rest = pb.CellOutcome(message=outcome.message)
    if outcome.HasField("answer"):
        rest.answer.CopyFrom(outcome.answer)
    if outcome.HasField("details"):
        rest.details.CopyFrom(outcome.details)
    return rest


def _word(text: str, name: str, rest: pb.Receipt | pb.CellOutcome, words: Words) -> int | None:
    """The number of the word in the field `name`; `rest` gets it, too, when the vocabulary has to clip it."""
    if not text:
        return None
    if clip(text) is not text:
        setattr(rest, name, text)
    return words.number(text)


def receipt_row(
    receipt: pb.Receipt, *, dispatch_us: int, derived: Derived, evidence: Stored | None, words: Words
) -> ReceiptRow:
    """The row of a receipt and of what was derived from it."""
    rest, has = _receipt_rest(receipt), receipt.HasField
    flags = derived.usage_flags
    # By position, in the order of the columns: names would cost as much as all the rest.
    return ReceiptRow(
        receipt.status,
        _word(receipt.reason, "reason", rest, words),
        _word(receipt.finish_reason, "finish_reason", rest, words),
        _word(receipt.response_model, "response_model", rest, words),
        _word(receipt.selected_model, "selected_model", rest, words),
        _word(receipt.decision, "decision", rest, words),
        _word(receipt.config_hash, "config_hash", rest, words),
        words.number(",".join(flags)) if flags else None,
        int(receipt.output_complete),
        int(receipt.usage_final),
        receipt.http_status if has("http_status") else None,
        micros(receipt.start_time) - dispatch_us if has("start_time") else None,
        micros(receipt.finish_time) - dispatch_us if has("finish_time") else None,
        receipt.ttft_ns if has("ttft_ns") else None,
        receipt.latency_ns if has("latency_ns") else None,
        receipt.first_token_lag_ns if has("first_token_lag_ns") else None,
        derived.input_tokens,
        derived.cached_input_tokens,
        derived.cache_write_tokens,
        derived.output_tokens,
        derived.prompt_tokens,
        _flag(derived.cache_read_reported),
        derived.cost,
        derived.cost_lower,
        derived.cost_upper,
        derived.cache_neutral_cost,
        derived.inference_call_count,
        words.number(evidence.segment) if evidence else None,
        evidence.offset if evidence else None,
        evidence.length if evidence else None,
        evidence.sha256 if evidence else None,
        pack(rest),
    )


def receipt_of(row: ReceiptRow, *, dispatch_us: int, words: Mapping[int | None, str]) -> pb.Receipt:
    """The receipt that a row was made from, its times cut to microseconds."""
    receipt = unpack(pb.Receipt, row.rest)
    receipt.status = row.status  # type: ignore[assignment]
    receipt.output_complete, receipt.usage_final = bool(row.output_complete), bool(row.usage_final)
    numbers = (row.reason, row.finish_reason, row.model, row.selected_model, row.decision, row.config_hash)
    for name, number in zip(_RECEIPT_WORDS, numbers, strict=True):
        if number is not None and not getattr(receipt, name):
            setattr(receipt, name, words[number])
    for name in ("http_status", "ttft_ns", "latency_ns", "first_token_lag_ns"):
        value = getattr(row, name)
        if value is not None:
            setattr(receipt, name, value)
    if row.start_after_us is not None:
        receipt.start_time.CopyFrom(timestamp(dispatch_us + row.start_after_us))
    if row.finish_after_us is not None:
        receipt.finish_time.CopyFrom(timestamp(dispatch_us + row.finish_after_us))
    return receipt


def outcome_row(outcome: pb.CellOutcome, *, run_no: int, words: Words) -> OutcomeRow:
    """The row of an outcome."""
    rest, has = _outcome_rest(outcome), outcome.HasField
    start_us = micros(outcome.start_time) if has("start_time") else None
    finish_us = micros(outcome.finish_time) if has("finish_time") else None
    return OutcomeRow(
        run_no,
        outcome.cell,
        outcome.token,
        outcome.case_index,
        outcome.target_index,
        outcome.state,
        _word(outcome.reason, "reason", rest, words),
        int(outcome.correct) if has("correct") else None,
        outcome.score if has("score") else None,
        int(outcome.strict_format) if has("strict_format") else None,
        int(outcome.output_limit),
        _word(outcome.answer_status, "answer_status", rest, words),
        _word(outcome.grader_version, "grader_version", rest, words),
        start_us,
        None if finish_us is None else finish_us - (start_us or 0),
        pack(rest),
    )


def finish_us_of(row: OutcomeRow) -> int | None:
    """When an outcome's cell ended, in microseconds since 1970; `None` when nobody said."""
    return None if row.finish_after_us is None else row.finish_after_us + (row.start_us or 0)
