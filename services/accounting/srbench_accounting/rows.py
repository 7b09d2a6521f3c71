"""Facts as rows and back. What a column holds is not kept a second time in the packed rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.derived import Derived
from srbench_accounting.packing import pack, unpack
from srbench_accounting.vocabulary import clip

RECEIPT_COLUMNS = tuple(column.name for column in schema.receipts.c if column.name != "call_id")
OUTCOME_COLUMNS = tuple(column.name for column in schema.outcomes.c if column.name != "outcome_id")
_RECEIPT_WORDS = ("reason", "finish_reason", "response_model", "selected_model", "decision", "config_hash")
_RECEIPT_OPTIONAL = ("inference_call_count", "first_content_ns", "connect_ns")
_OUTCOME_WORDS = ("reason", "answer_status", "grader_version")


M = TypeVar("M", bound=Message)


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


def _present(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


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
    )
    for name in _RECEIPT_OPTIONAL:
        value = _present(receipt, name)
        if value is not None:
            setattr(rest, name, value)
    return rest


def _outcome_rest(outcome: pb.CellOutcome) -> pb.CellOutcome:
    """What no column holds."""
    rest = pb.CellOutcome(message=outcome.message)
    if outcome.HasField("answer"):
        rest.answer.CopyFrom(outcome.answer)
    if outcome.HasField("details"):
        rest.details.CopyFrom(outcome.details)
    return rest


def _take_words(message: M, rest: M, names: tuple[str, ...], words: Words) -> list[int | None]:
    """The numbers of the words in the fields `names`; `rest` gets only those that the vocabulary has to clip."""
    numbers: list[int | None] = []
    for name in names:
        text: str = getattr(message, name)
        if not text:
            numbers.append(None)
            continue
        numbers.append(words.number(text))
        if clip(text) != text:
            setattr(rest, name, text)
    return numbers


def receipt_row(
    receipt: pb.Receipt, *, dispatch_us: int, derived: Derived, evidence: Stored | None, words: Words
) -> ReceiptRow:
    """The row of a receipt and of what was derived from it."""
    rest = _receipt_rest(receipt)
    numbers = _take_words(receipt, rest, _RECEIPT_WORDS, words)
    reason, finish_reason, model, selected_model, decision, config_hash = numbers
    return ReceiptRow(
        status=receipt.status,
        reason=reason,
        finish_reason=finish_reason,
        model=model,
        selected_model=selected_model,
        decision=decision,
        config_hash=config_hash,
        usage_flags=words.number(",".join(derived.usage_flags)),
        output_complete=int(receipt.output_complete),
        usage_final=int(receipt.usage_final),
        http_status=_present(receipt, "http_status"),
        start_after_us=micros(receipt.start_time) - dispatch_us if receipt.HasField("start_time") else None,
        finish_after_us=micros(receipt.finish_time) - dispatch_us if receipt.HasField("finish_time") else None,
        ttft_ns=_present(receipt, "ttft_ns"),
        latency_ns=_present(receipt, "latency_ns"),
        first_token_lag_ns=_present(receipt, "first_token_lag_ns"),
        input_tokens=derived.input_tokens,
        cached_input_tokens=derived.cached_input_tokens,
        cache_write_tokens=derived.cache_write_tokens,
        output_tokens=derived.output_tokens,
        prompt_tokens=derived.prompt_tokens,
        cache_read_reported=_flag(derived.cache_read_reported),
        cost=derived.cost,
        cost_lower=derived.cost_lower,
        cost_upper=derived.cost_upper,
        cache_neutral_cost=derived.cache_neutral_cost,
        inference_call_count=derived.inference_call_count,
        segment=words.number(evidence.segment) if evidence else None,
        evidence_offset=evidence.offset if evidence else None,
        evidence_byte_count=evidence.length if evidence else None,
        evidence_sha256=evidence.sha256 if evidence else None,
        rest=pack(rest),
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
    rest = _outcome_rest(outcome)
    numbers = _take_words(outcome, rest, _OUTCOME_WORDS, words)
    reason, answer_status, grader_version = numbers
    start_us = micros(outcome.start_time) if outcome.HasField("start_time") else None
    finish_us = micros(outcome.finish_time) if outcome.HasField("finish_time") else None
    return OutcomeRow(
        run_no=run_no,
        cell=outcome.cell,
        token=outcome.token,
        case_index=outcome.case_index,
        target_index=outcome.target_index,
        state=outcome.state,
        reason=reason,
        correct=_flag(_present(outcome, "correct")),
        score=_present(outcome, "score"),
        strict_format=_flag(_present(outcome, "strict_format")),
        output_limit=int(outcome.output_limit),
        answer_status=answer_status,
        grader_version=grader_version,
        start_us=start_us,
        finish_after_us=None if finish_us is None else finish_us - (start_us or 0),
        rest=pack(rest),
    )


def finish_us_of(row: OutcomeRow) -> int | None:
    """When an outcome's cell ended, in microseconds since 1970; `None` when nobody said."""
    return None if row.finish_after_us is None else row.finish_after_us + (row.start_us or 0)
