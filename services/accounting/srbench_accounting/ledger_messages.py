"""Rows of the ledger as messages that hold all of them: what facts said, and what was derived from it."""

from __future__ import annotations

from collections.abc import Sequence

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import usage_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb

from srbench_accounting.convert import Words, call_id
from srbench_accounting.packing import unpack
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow, finish_us_of, receipt_of, timestamp
from srbench_accounting.schema import sequence_of
from srbench_accounting.settled import BUCKETS

_RECEIPT_FIELDS = {
    "prompt_tokens": "prompt_tokens",
    "cost": "cost_picodollars",
    "cost_lower": "cost_lower_picodollars",
    "cost_upper": "cost_upper_picodollars",
    "cache_neutral_cost": "cache_neutral_cost_picodollars",
    "inference_call_count": "inference_call_count",
}


def call(
    row: CallRow, end: ReceiptRow | None, apart: Sequence[ReceiptRow], run_id: str, words: Words
) -> ledger_pb.LedgerCall:
    """A call with its receipt in force and those that are not; without its settlements."""
    key = pb.CallKey(run_id=run_id, cell=row.cell, ordinal=row.ordinal, offer=row.offer)
    message = ledger_pb.LedgerCall(
        id=call_id(run_id, row.cell, row.ordinal, row.offer),
        sequence=sequence_of(row.call_id),
        dispatch=pb.Dispatch(
            key=key,
            token=row.token,
            case_index=row.case_index,
            target_index=row.target_index,
            role=pb.CallRole.ValueType(row.role),
            auxiliary_target_id=words[row.auxiliary],
            request_sha256=row.request_sha256.hex(),
            request_byte_count=row.request_byte_count,
            message_count=row.message_count,
            max_output_tokens=row.max_output_tokens,
            dispatch_time=timestamp(row.dispatch_us),
            executor_id=words[row.executor],
        ),
        reserved_picodollars=row.reserved,
    )
    if end is not None:
        message.receipt.CopyFrom(receipt(row, end, words))
    message.receipts_apart.extend(receipt(row, late, words) for late in apart)
    return message


def receipt(row: CallRow, end: ReceiptRow, words: Words) -> ledger_pb.LedgerReceipt:
    """A receipt with what was derived from it."""
    message = ledger_pb.LedgerReceipt(
        receipt=receipt_of(end, dispatch_us=row.dispatch_us, words=words),
        usage=usage_pb2.TokenUsage(**{name: getattr(end, name) for name in BUCKETS}),
        usage_flags=[flag for flag in words[end.usage_flags].split(",") if flag],
        cache_read_reported=None if end.cache_read_reported is None else bool(end.cache_read_reported),
        evidence_sha256="" if end.evidence_sha256 is None else end.evidence_sha256.hex(),
        evidence_byte_count=end.evidence_byte_count or 0,
    )
    for column, field in _RECEIPT_FIELDS.items():
        value = getattr(end, column)
        if value is not None:
            setattr(message, field, value)
    return message


def outcome(place: int, row: OutcomeRow, run_id: str, words: Words) -> ledger_pb.LedgerOutcome:
    """An outcome; place 0 is one that is not in force."""
    found = unpack(pb.CellOutcome, row.rest)
    found.run_id, found.cell, found.token = run_id, row.cell, row.token
    found.case_index, found.target_index = row.case_index, row.target_index
    found.state = queue_pb.CellState.ValueType(row.state)
    found.reason = found.reason or words[row.reason]
    found.answer_status = found.answer_status or words[row.answer_status]
    found.grader_version = found.grader_version or words[row.grader_version]
    found.output_limit = bool(row.output_limit)
    for name in ("correct", "strict_format"):
        value = getattr(row, name)
        if value is not None:
            setattr(found, name, bool(value))
    if row.score is not None:
        found.score = row.score
    if row.start_us is not None:
        found.start_time.CopyFrom(timestamp(row.start_us))
    finish_us = finish_us_of(row)
    if finish_us is not None:
        found.finish_time.CopyFrom(timestamp(finish_us))
    return ledger_pb.LedgerOutcome(sequence=place, outcome=found)
