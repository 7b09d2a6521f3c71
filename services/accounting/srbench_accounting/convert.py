"""Rows of the ledger as the messages that readers see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, usage_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.completion import Completion
from srbench_kit.errors import NotFound
from srbench_kit.values import Json, fill_value, object_of

from srbench_accounting.listing import Answered, SubjectEnd
from srbench_accounting.packing import unpack
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow, finish_us_of, receipt_of
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.run_job import derive
from srbench_accounting.schema import sequence_of

Words = Mapping[int | None, str]
_STATUS = {
    queue_pb.CELL_STATE_DONE: "completed",
    queue_pb.CELL_STATE_FAILED: "failed",
    queue_pb.CELL_STATE_CANCELLED: "cancelled",
    queue_pb.CELL_STATE_INTERRUPTED: "sent_unknown",
}


@lru_cache(maxsize=1024)
def _run_mark(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:16]


def call_id(run_id: str, cell: int, ordinal: int, offer: int, *, replayed: bool = False) -> str:
    """`call-` (`cached-` for a copy) and 32 hex digits that say which call it is: 16 of the run's digest, 8 cell,
    4 ordinal, 4 offer."""
    return f"{'cached' if replayed else 'call'}-{_run_mark(run_id)}{cell:08x}{ordinal:04x}{offer:04x}"


def call_key(run_id: str, identifier: str) -> tuple[int, int, int]:
    """Cell, ordinal and offer of a call's id. Raises: `NotFound` (`NO_SUCH_CALL`) for another run's id, or none."""
    digits = identifier.rpartition("-")[2]
    try:
        key = int(digits[16:24], 16), int(digits[24:28], 16), int(digits[28:32], 16)
    except ValueError:
        key = (0, 0, 0)
    if identifier not in (call_id(run_id, *key), call_id(run_id, *key, replayed=True)):
        raise NotFound("NO_SUCH_CALL", f"run {run_id} has no call {identifier!r}", run_id=run_id, call_id=identifier)
    return key


def call_words(call: CallRow, receipt: ReceiptRow | None) -> list[int | None]:
    """The vocabulary numbers that `call` needs."""
    if receipt is None:
        return [call.auxiliary, call.executor]
    return [
        *(call.auxiliary, receipt.reason, receipt.finish_reason, receipt.model, receipt.selected_model),
        *(receipt.decision, receipt.config_hash, receipt.usage_flags, receipt.segment),
    ]


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
        request_sha256=row.request_sha256.hex(),
        sequence=sequence_of(row.call_id),
    )
    _fill_time(message.start_time, row.dispatch_us)
    if receipt is not None:
        _fill_end(message, row, receipt, run, words)
    return message


def _fill_end(message: pb.Call, row: CallRow, end: ReceiptRow, run: KnownRun, words: Words) -> None:
    rest = unpack(pb.Receipt, end.rest)
    message.status = pb.CallStatus.ValueType(end.status)
    if end.status == pb.CALL_STATUS_REPLAYED:
        message.id = call_id(run.run_id, row.cell, row.ordinal, row.offer, replayed=True)
        message.source_run_id, message.source_call_id = rest.source_run_id, rest.source_call_id
    message.reason = rest.reason or words[end.reason]
    message.error = rest.message
    message.model = rest.response_model or words[end.model]
    message.selected_model = rest.selected_model or words[end.selected_model]
    message.decision = rest.decision or words[end.decision]
    message.config_hash = rest.config_hash or words[end.config_hash]
    message.finish_reason = rest.finish_reason or words[end.finish_reason]
    message.output_complete = bool(end.output_complete)
    message.first_token_clock = rest.first_token_clock
    _fill_tokens(message.usage, end.input_tokens, end.cached_input_tokens, end.cache_write_tokens, end.output_tokens)
    if end.usage_flags is not None:
        message.usage_flags.extend(words[end.usage_flags].split(","))
    if end.evidence_sha256 is not None:
        message.evidence_sha256 = end.evidence_sha256.hex()
    _fill_known(message, end)
    if end.finish_after_us is not None:
        _fill_time(message.finish_time, row.dispatch_us + end.finish_after_us)
    if rest.usage_json:
        _fill_outside(message, rest.usage_json)
    if rest.router_receipt_json:
        auxiliary = words[row.auxiliary]
        target = run.auxiliaries[auxiliary] if auxiliary else run.targets[row.target_index]
        message.model_usage.extend(derive(target, receipt_of(end, dispatch_us=row.dispatch_us, words=words)).model_usage)


def _fill_known(message: pb.Call, end: ReceiptRow) -> None:
    """The numbers that are known."""
    if end.http_status is not None:
        message.http_status = end.http_status
    if end.cost is not None:
        message.cost_picodollars = end.cost
    if end.cost_lower is not None:
        message.cost_lower_picodollars = end.cost_lower
    if end.cost_upper is not None:
        message.cost_upper_picodollars = end.cost_upper
    if end.inference_call_count is not None:
        message.inference_call_count = end.inference_call_count
    if end.ttft_ns is not None:
        message.ttft_s = end.ttft_ns / 1e9
    if end.latency_ns is not None:
        message.latency_s = end.latency_ns / 1e9
    if end.first_token_lag_ns is not None:
        message.first_token_lag_s = end.first_token_lag_ns / 1e9
    if end.cache_read_reported is not None:
        message.cache_read_reported = bool(end.cache_read_reported)


def _fill_tokens(
    usage: usage_pb2.TokenUsage, fresh: int | None, cached: int | None, written: int | None, output: int | None
) -> None:
    """The buckets that are known; the message is there even when none is."""
    usage.SetInParent()
    if fresh is not None:
        usage.input_tokens = fresh
    if cached is not None:
        usage.cached_input_tokens = cached
    if written is not None:
        usage.cache_write_tokens = written
    if output is not None:
        usage.output_tokens = output


def _fill_time(time: Timestamp, time_us: int) -> None:
    time.seconds, part = divmod(time_us, 1_000_000)
    time.nanos = part * 1000


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


def fill_request(message: pb.Call, context: queue_pb.RunContext, auxiliary: str, target_index: int) -> None:
    """Adds the settings that the call was frozen with; `auxiliary` names the judge or simulator that it went to."""
    found = [target for target in context.auxiliary_targets if target.id == auxiliary]
    target = found[0] if found else context.targets[target_index]
    frozen: dict[str, Json] = {
        "sampling": object_of(context.sampling),
        "request_params": object_of(target.request_params),
    }
    fill_value(message.request, frozen)


def outcome(
    identifier: int,
    row: OutcomeRow,
    subject_ends: Sequence[SubjectEnd | None],
    answered: Answered | None,
    *,
    run: KnownRun,
    case: plan_pb2.PlanCase | None,
    words: Words,
) -> pb.Outcome:
    """A cell's outcome. `subject_ends` are the receipts of its subject's calls in order, `None` for one without an end;
    `answered` says who answered the last of them."""
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
        _fill_time(message.finish_time, finish_us)
        if row.start_us is not None:
            message.latency_s = (finish_us - row.start_us) / 1e6
    _fill_sums(message, subject_ends)
    if answered is not None:
        message.model = words[answered.selected_model] or words[answered.model]
        message.decision = words[answered.decision]
    return message


def _fill_sums(message: pb.Outcome, ends: Sequence[SubjectEnd | None]) -> None:
    """Sums over the subject's calls; one unknown part makes a sum unknown."""
    if not ends:
        return
    first = ends[0]
    sums: SubjectEnd = first if len(ends) == 1 and first is not None else _sums(ends)
    _fill_tokens(message.usage, *sums[:4])
    if sums.cost is not None:
        message.cost_picodollars = sums.cost
    if sums.latency_ns is not None:
        message.subject_latency_s = sums.latency_ns / 1e9
    if first is not None and first.ttft_ns is not None:
        message.ttft_s = first.ttft_ns / 1e9


def _sums(ends: Sequence[SubjectEnd | None]) -> SubjectEnd:
    unknown = SubjectEnd(*[None] * len(SubjectEnd._fields))
    return SubjectEnd(*[_sum(values) for values in zip(*[end or unknown for end in ends], strict=True)])


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    total = sum(known)
    return total if len(known) == len(values) and total < 2**63 else None
