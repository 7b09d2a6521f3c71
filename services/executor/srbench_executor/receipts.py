"""From an ended call to the receipt and the evidence that accounting keeps, secrets removed."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass

import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import target_pb2
from srbench_kit.completion import (
    RECEIPT_FIELD,
    Completion,
    Headers,
    content_type,
    dump_json,
    load_json,
    read_answer,
)
from srbench_kit.redact import Redactor
from srbench_kit.times import fill_time
from srbench_kit.values import Json

from srbench_executor.call import Call, Cut

CHUNK_BYTES = 1024 * 1024
LOST = "the executor ended while the call was under way; what had come until then is kept"
_compressor = zstandard.ZstdCompressor(level=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a call ended, ready to be recorded. `text` is the final channel, for grading."""

    receipt: pb.Receipt
    evidence: bytes
    text: str


def not_accepted(reason: str, message: str, redactor: Redactor, now_ns: int) -> Settlement:
    """The settlement of a call whose request was never written. `now_ns`: nanoseconds since 1970."""
    receipt = pb.Receipt(status=pb.CALL_STATUS_NOT_ACCEPTED, reason=reason, message=redactor.text(message))
    fill_time(receipt.finish_time, now_ns)
    return Settlement(receipt=receipt, evidence=b"", text="")


def settlement(
    call: Call, target: target_pb2.Target, *, request_sha256: str, session_id: str, redactor: Redactor
) -> Settlement:
    """The settlement of an ended call."""
    verdict = judge(call, target)
    receipt = pb.Receipt(
        status=verdict.status,
        reason=verdict.reason,
        message=redactor.text(verdict.message),
        session_id=session_id,
        received_bytes=call.body.size,
    )
    text, evidence = "", b""
    if call.completion is not None:
        body, completion = _kept(call, call.completion, redactor)
        evidence = _evidence(call, body, request_sha256, redactor)
        _fill_from_answer(receipt, completion, redactor)
        text = known(redactor, call.completion.text)
        if verdict.status != pb.CALL_STATUS_COMPLETED or call.cut is not None:
            receipt.output_complete = False
            receipt.usage_final = receipt.usage_final and call.cut is None
    _fill_times(receipt, call)
    return Settlement(receipt=receipt, evidence=evidence, text=text)


def lost_settlement(head: pb.Evidence, body: bytes, request_sha256: str) -> Settlement:
    """The settlement of a call whose end nobody saw, with what had come of its answer, secrets removed."""
    receipt = pb.Receipt(status=pb.CALL_STATUS_SENT_UNKNOWN, reason="executor_lost", message=LOST)
    receipt.finish_time.GetCurrentTime()
    if not head.http_status:
        return Settlement(receipt=receipt, evidence=b"", text="")
    evidence = pb.Evidence(body=body, request_sha256=request_sha256)
    evidence.MergeFrom(head)
    headers = [(one.name, one.value) for one in evidence.headers]
    completion = read_answer(evidence.http_status, headers, body, clean_end=False)
    _fill_from_answer(receipt, completion, Redactor([]))
    receipt.received_bytes = len(body)
    # Whatever it says, its end may have been another one.
    receipt.output_complete = receipt.usage_final = False
    return Settlement(receipt=receipt, evidence=_compressed(evidence), text=completion.text)


def judge(call: Call, target: target_pb2.Target) -> Cut:
    """What became of an ended call: its status, and why when it is not a whole answer."""
    if call.cut is not None:
        return call.cut
    completion = call.completion
    assert completion is not None, "a call without a cut has an answer"
    if completion.reason:
        accepted = completion.http_status not in (429, 503) or completion.generation_seen or completion.passed_on
        status = pb.CALL_STATUS_FAILED if accepted else pb.CALL_STATUS_NOT_ACCEPTED
        return Cut(status, completion.reason, completion.message)
    wanted = target.expected_response_model
    if wanted and completion.model != wanted:
        got = f"the model {completion.model!r}" if completion.model else "no model name"
        return Cut(pb.CALL_STATUS_FAILED, "identity_mismatch", f"the answer names {got}; expected {wanted!r}")
    if target.config_hash and completion.config_hash != target.config_hash:
        got = f"the configuration {completion.config_hash!r}" if completion.config_hash else "no configuration"
        message = f"the answer acknowledges {got}; expected {target.config_hash!r}"
        return Cut(pb.CALL_STATUS_FAILED, "config_hash_mismatch", message)
    reason = "" if completion.output_complete else "output_limit"
    return Cut(pb.CALL_STATUS_COMPLETED, reason, "the answer was cut by the output limit" if reason else "")


def _fill_from_answer(receipt: pb.Receipt, completion: Completion, redactor: Redactor) -> None:
    receipt.http_status = completion.http_status
    receipt.finish_reason = known(redactor, completion.finish_reason)
    receipt.output_complete = completion.output_complete
    receipt.response_model = known(redactor, completion.model)
    receipt.usage_json = redactor.data(completion.usage_json)
    receipt.usage_final = completion.usage_final
    receipt.router_receipt_json = redactor.data(completion.router_receipt)
    receipt.selected_model = known(redactor, completion.selected_model)
    receipt.decision = known(redactor, completion.decision)
    receipt.config_hash = known(redactor, completion.config_hash)
    if completion.inference_call_count is not None:
        receipt.inference_call_count = completion.inference_call_count
    receipt.content_chars = completion.content_chars
    receipt.reasoning_chars = completion.reasoning_chars


def _fill_times(receipt: pb.Receipt, call: Call) -> None:
    if call.start_time_ns:
        fill_time(receipt.start_time, call.start_time_ns)
    fill_time(receipt.finish_time, call.clock.now_ns())
    if call.connect_ns is not None:
        receipt.connect_ns = call.connect_ns
    if call.sent_ns is None:
        return
    receipt.latency_ns = max(0, call.end_ns - call.sent_ns)
    first = call.first
    if first.token_ns is not None:
        receipt.ttft_ns = max(0, first.token_ns - call.sent_ns)
        receipt.first_token_clock = "kernel" if first.kernel else "loop"
        if first.lag_ns is not None:
            receipt.first_token_lag_ns = first.lag_ns
    if first.content_ns is not None:
        receipt.first_content_ns = max(0, first.content_ns - call.sent_ns)


def _kept(call: Call, completion: Completion, redactor: Redactor) -> tuple[bytes, Completion]:
    """The body to keep, secrets removed, and what it says: the receipt tells what can be derived from it again."""
    received = call.body.value()
    body = redactor.data(received)
    if body is received and not leaks(redactor, completion):
        return body, completion
    said = _read_again(call, completion, body, redactor)
    if leaks(redactor, said):
        body = _rewritten(call, completion, redactor)
        said = _read_again(call, completion, body, redactor)
    return body, said


def _read_again(call: Call, completion: Completion, body: bytes, redactor: Redactor) -> Completion:
    headers, trailers = _clean(call.headers, redactor), _clean(call.trailers, redactor)
    return read_answer(completion.http_status, headers, body, clean_end=call.clean_end, trailers=trailers)


def _clean(headers: Headers, redactor: Redactor) -> list[tuple[str, str]]:
    return [(name, redactor.header(name, value)) for name, value in headers]


def _evidence(call: Call, body: bytes, request_sha256: str, redactor: Redactor) -> bytes:
    """The compressed evidence of an answer whose body, secrets removed, is `body`."""
    evidence = pb.Evidence(
        http_status=call.http_status or 0, body=body, request_sha256=request_sha256, clean_end=call.clean_end
    )
    for found, into in ((call.headers, evidence.headers), (call.trailers, evidence.trailers)):
        for name, value in _clean(found, redactor):
            into.add(name=name, value=value)
    return _compressed(evidence)


def _compressed(evidence: pb.Evidence) -> bytes:
    return _compressor.compress(evidence.SerializeToString())


def known(redactor: Redactor, text: str) -> str:
    """`text` without the known secrets; unlike a message it may hold what merely looks like one."""
    if redactor.empty:
        return text
    data = text.encode()
    clean = redactor.data(data)
    return text if clean is data else clean.decode()


def leaks(redactor: Redactor, completion: Completion) -> bool:
    """Whether a secret, cut over several events, comes together again in the texts of an answer."""
    if redactor.empty:
        return False
    calls = "\n".join(f"{call.name}\n{call.arguments}" for call in completion.tool_calls)
    return any(known(redactor, text) != text for text in (completion.text, completion.reasoning, completion.refusal, calls))


def _rewritten(call: Call, completion: Completion, redactor: Redactor) -> bytes:
    """What the answer said in one event or document, secrets removed: its bytes as received must not be kept."""
    message: dict[str, Json] = {
        "content": known(redactor, completion.text),
        "reasoning_content": known(redactor, completion.reasoning),
        "refusal": known(redactor, completion.refusal),
    }
    if completion.tool_calls:
        message["tool_calls"] = [
            {"index": index, "id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for index, one in enumerate(completion.tool_calls)
        ]
    event: dict[str, Json] = {
        "model": known(redactor, completion.model),
        "choices": [{"index": 0, "delta": message, "finish_reason": completion.finish_reason or None}],
        "usage": completion.usage,
    }
    with suppress(ValueError, RecursionError):
        event |= {RECEIPT_FIELD: load_json(completion.router_receipt)}
    if content_type(call.headers) != "text/event-stream":
        return redactor.data(dump_json(event))
    note = b": rewritten, because the stream as received spelled out a secret\n\n"
    end = b"data: [DONE]\n\n" if completion.usage_final else b""
    return note + b"data: " + redactor.data(dump_json(event)) + b"\n\n" + end


def settle_facts(key: pb.CallKey, settled: Settlement) -> list[pb.Fact]:
    """The facts that record a settlement: its evidence in chunks, then the settlement itself."""
    packed = settled.evidence
    facts: list[pb.Fact] = []
    # Filled in place: a message that is given to another one is copied.
    for offset in range(0, len(packed), CHUNK_BYTES):
        facts.append(pb.Fact())
        chunk = facts[-1].evidence
        chunk.key.CopyFrom(key)
        chunk.offset, chunk.data = offset, packed[offset : offset + CHUNK_BYTES]
    facts.append(pb.Fact())
    settle = facts[-1].settle
    settle.key.CopyFrom(key)
    settle.receipt.CopyFrom(settled.receipt)
    if packed:
        settle.evidence_sha256, settle.evidence_byte_count = hashlib.sha256(packed).hexdigest(), len(packed)
    return facts
