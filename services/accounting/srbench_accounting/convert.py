"""Rows of the ledger as the messages that readers see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, usage_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.completion import Completion
from srbench_kit.errors import NotFound
from srbench_kit.values import Json, fill_value

from srbench_accounting.packing import unpack
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow, finish_us_of, receipt_of, timestamp
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.run_job import derive
from srbench_accounting.schema import sequence_of

Words = Mapping[int | None, str]
NO_WORDS: Words = {None: ""}
_STATUS = {
    queue_pb.CELL_STATE_DONE: "completed",
    queue_pb.CELL_STATE_FAILED: "failed",
    queue_pb.CELL_STATE_CANCELLED: "cancelled",
    queue_pb.CELL_STATE_INTERRUPTED: "sent_unknown",
}


@lru_cache(maxsize=1024)
def _run_mark(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:16]


def call_id(run_id: str, cell: int, ordinal: int, offer: int) -> str:
    """`call-` and 32 hex digits that say which call it is: 16 of the run's digest, 8 cell, 4 ordinal, 4 offer."""
    return f"call-{_run_mark(run_id)}{cell:08x}{ordinal:04x}{offer:04x}"


def call_key(run_id: str, identifier: str) -> tuple[int, int, int]:
    """Cell, ordinal and offer of a call's id. Raises: `NotFound` (`NO_SUCH_CALL`) for another run's id, or none."""
    digits = identifier.removeprefix("call-")
    try:
        key = int(digits[16:24], 16), int(digits[24:28], 16), int(digits[28:32], 16)
    except ValueError:
        key = (0, 0, 0)
    if call_id(run_id, *key) != identifier:
        raise NotFound("NO_SUCH_CALL", f"run {run_id} has no call {identifier!r}", run_id=run_id, call_id=identifier)
    return key


def call_words(call: CallRow, receipt: ReceiptRow | None) -> list[int | None]:
    """The vocabulary numbers that `call` needs."""
    if receipt is None:
        return [call.auxiliary]
    return [
        *(call.auxiliary, receipt.reason, receipt.finish_reason, receipt.model, receipt.selected_model),
        *(receipt.decision, receipt.config_hash, receipt.usage_flags, receipt.segment),
    ]


def model_words(receipt: ReceiptRow) -> list[int | None]:
    """The vocabulary numbers that an outcome needs of its subject's `receipt`."""
    return [receipt.model, receipt.selected_model, receipt.decision]


def call(
    row: CallRow, receipt: ReceiptRow | None, *, run: KnownRun, case: plan_pb2.PlanCase | None, words: Words
) -> pb.Call:
    """A call without its texts."""
    message = pb.Call(
        id=call_id(run.run_id, row.cell, row.ordinal, row.offer),
        run_id=run.run_id,
        case_id=case.case_id if case is not None else "",
        target_id=run.context.targets[row.target_index].id,
        role=pb.CallRole.ValueType(row.role),
        status=pb.CALL_STATUS_SENT,
        ordinal=row.ordinal,
        offer=row.offer,
        reserved_picodollars=row.reserved,
        start_time=timestamp(row.dispatch_us),
        request_sha256=row.request_sha256.hex(),
        sequence=sequence_of(row.call_id),
    )
    if receipt is not None:
        _fill_end(message, row, receipt, run, words)
    return message


def _fill_end(message: pb.Call, row: CallRow, end: ReceiptRow, run: KnownRun, words: Words) -> None:
    receipt = receipt_of(end, dispatch_us=row.dispatch_us, words=words)
    message.status = receipt.status
    message.reason, message.error = receipt.reason, receipt.message
    message.model, message.selected_model = receipt.response_model, receipt.selected_model
    message.decision, message.config_hash = receipt.decision, receipt.config_hash
    message.finish_reason, message.output_complete = receipt.finish_reason, receipt.output_complete
    message.first_token_clock = receipt.first_token_clock
    message.usage.CopyFrom(_usage(end))
    message.usage_flags.extend(flag for flag in words[end.usage_flags].split(",") if flag)
    message.evidence_sha256 = end.evidence_sha256.hex() if end.evidence_sha256 is not None else ""
    for name, value in (
        ("http_status", end.http_status),
        ("cost_picodollars", end.cost),
        ("cost_lower_picodollars", end.cost_lower),
        ("cost_upper_picodollars", end.cost_upper),
        ("inference_call_count", end.inference_call_count),
        ("ttft_s", _seconds(end.ttft_ns)),
        ("latency_s", _seconds(end.latency_ns)),
        ("first_token_lag_s", _seconds(end.first_token_lag_ns)),
    ):
        if value is not None:
            setattr(message, name, value)
    if end.cache_read_reported is not None:
        message.cache_read_reported = bool(end.cache_read_reported)
    if end.finish_after_us is not None:
        message.finish_time.CopyFrom(timestamp(row.dispatch_us + end.finish_after_us))
    if receipt.usage_json:
        _fill_outside(message, receipt.usage_json)
    if receipt.router_receipt_json:
        auxiliary = words[row.auxiliary]
        target = run.auxiliaries[auxiliary] if auxiliary else run.targets[row.target_index]
        message.model_usage.extend(derive(target, receipt).model_usage)


def _fill_outside(message: pb.Call, usage_json: bytes) -> None:
    """The usage object as it came; left null when it is no JSON."""
    try:
        fill_value(message.raw_usage, json.loads(usage_json))
    except (ValueError, RecursionError):
        message.raw_usage.Clear()


def fill_texts(message: pb.Call, answer: Completion) -> None:
    """Adds what the answer says, read again from the evidence."""
    message.final, message.reasoning, message.refusal = answer.text, answer.reasoning, answer.refusal
    calls: list[Json] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in answer.tool_calls]
    if calls:
        fill_value(message.tool_calls, calls)


def _usage(end: ReceiptRow) -> usage_pb2.TokenUsage:
    return usage_pb2.TokenUsage(
        input_tokens=end.input_tokens,
        cached_input_tokens=end.cached_input_tokens,
        cache_write_tokens=end.cache_write_tokens,
        output_tokens=end.output_tokens,
    )


def outcome(
    identifier: int,
    row: OutcomeRow,
    subject_ends: Sequence[ReceiptRow | None],
    *,
    run: KnownRun,
    case: plan_pb2.PlanCase | None,
    words: Words,
) -> pb.Outcome:
    """A cell's outcome. `subject_ends` are the receipts of its subject's calls in order, `None` for one without an end."""
    rest = unpack(pb.CellOutcome, row.rest)
    message = pb.Outcome(
        sequence=sequence_of(identifier),
        case_id=case.case_id if case is not None else "",
        benchmark=case.benchmark if case is not None else "",
        target_id=run.context.targets[row.target_index].id,
        status=_STATUS[queue_pb.CellState.ValueType(row.state)],
        reason=rest.reason or words[row.reason],
        error=rest.message,
        correct=None if row.correct is None else bool(row.correct),
        score=row.score,
        answer=rest.answer,
        details=rest.details,
        call_count=len(subject_ends),
        cell=row.cell,
    )
    finish_us = finish_us_of(row)
    if finish_us is not None:
        message.finish_time.CopyFrom(timestamp(finish_us))
        if row.start_us is not None:
            message.latency_s = (finish_us - row.start_us) / 1e6
    _fill_sums(message, subject_ends)
    last = subject_ends[-1] if subject_ends else None
    if last is not None:
        message.model = words[last.selected_model] or words[last.model]
        message.decision = words[last.decision]
    return message


def _fill_sums(message: pb.Outcome, ends: Sequence[ReceiptRow | None]) -> None:
    """Sums over the subject's calls; one unknown part makes a sum unknown."""
    if not ends:
        return
    for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"):
        tokens = _sum([None if end is None else getattr(end, name) for end in ends])
        if tokens is not None:
            setattr(message.usage, name, tokens)
    message.usage.SetInParent()
    cost = _sum([None if end is None else end.cost for end in ends])
    if cost is not None:
        message.cost_picodollars = cost
    latency = _sum([None if end is None else end.latency_ns for end in ends])
    if latency is not None:
        message.subject_latency_s = latency / 1e9
    first = ends[0]
    if first is not None and first.ttft_ns is not None:
        message.ttft_s = first.ttft_ns / 1e9


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    total = sum(known)
    return total if len(known) == len(values) and total < 2**63 else None


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
