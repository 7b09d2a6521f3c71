"""The whole executor between fake services: the way of one answer, refusals, offers, and what is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.completion import read_answer
from srbench_kit.values import object_of, to_value

from tests.contract.executor.streams import content, whole


async def test_a_cell_goes_all_the_way(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_DONE, "")
    (dispatch,), (settle,), (outcome,) = rig.ledger.dispatches, rig.ledger.settles, rig.ledger.outcomes
    assert dispatch.request_byte_count == len(rig.upstream.requests[0][1])
    assert (dispatch.message_count, dispatch.max_output_tokens, dispatch.token) == (1, 512, 1)
    assert (settle.receipt.status, settle.receipt.usage_final) == (pb.CALL_STATUS_COMPLETED, True)
    saved = rig.ledger.saved(settle)
    again = read_answer(200, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end)
    assert again.text == "B"
    assert (outcome.state, outcome.correct, outcome.score) == (queue_pb.CELL_STATE_DONE, True, 1.0)
    assert (outcome.answer_status, outcome.strict_format, outcome.grader_version) == ("parsed", True, "fake-1")
    (answer,) = rig.grader.answers
    assert (answer.case_sha256, answer.grader, answer.text) == ("c", "choice", "B")


async def test_many_cells_share_batches_and_none_is_sent_twice(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(*(rig.lease(cell) for cell in range(300)))
    await rig.start_executor()
    await rig.finished(300)
    asked = sorted(json.loads(body)["messages"][0]["content"] for _, body in rig.upstream.requests)
    assert asked == sorted(f"question {cell}" for cell in range(300))
    assert len(rig.ledger.settles) == len(rig.ledger.outcomes) == 300
    assert len(rig.ledger.batches) < 600
    assert rig.upstream.connections <= 64


async def test_a_broken_fact_stream_says_everything_again_and_sends_nothing_again(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.ledger.break_after = 3
    rig.queue.add(*(rig.lease(cell) for cell in range(20)))
    await rig.start_executor()
    await rig.finished(20)
    assert rig.ledger.streams == 2
    assert len(rig.upstream.requests) == 20
    assert {outcome.cell for outcome in rig.ledger.outcomes} == set(range(20))


@pytest.mark.parametrize(
    ("reason", "state", "said", "completed"),
    [
        ("BUDGET_RESERVED", None, "", queue_pb.CELL_STATE_QUEUED),
        ("BUDGET_EXHAUSTED", queue_pb.CELL_STATE_FAILED, "budget_exhausted", queue_pb.CELL_STATE_FAILED),
        ("CALL_LIMIT", queue_pb.CELL_STATE_FAILED, "call_limit", queue_pb.CELL_STATE_FAILED),
        ("RUN_HALTED", queue_pb.CELL_STATE_CANCELLED, "run_stopped", queue_pb.CELL_STATE_CANCELLED),
        ("STORAGE_FULL", queue_pb.CELL_STATE_FAILED, "storage_full", queue_pb.CELL_STATE_FAILED),
        ("NO_SUCH_RUN", queue_pb.CELL_STATE_FAILED, "internal_error", queue_pb.CELL_STATE_FAILED),
    ],
)
async def test_a_refused_dispatch_sends_nothing(rig: Any, reason: str, state: Any, said: str, completed: Any) -> None:
    rig.ledger.refusals[0, 0] = pb.FactAck(reason=reason, message="no")
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, rig.upstream.requests) == (completed, [])
    assert [(outcome.state, outcome.reason) for outcome in rig.ledger.outcomes] == ([(state, said)] if state else [])


async def test_an_outrun_cell_is_dropped_without_a_word(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.ledger.refusals[0, 0] = pb.FactAck(reason="OUTRUN_TOKEN")
    rig.queue.add(rig.lease(0), rig.lease(1))
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert completion.lease.cell == 1
    assert len(rig.upstream.requests) == 1


KNOWN = [
    (pb.KnownCall(status=2, receipt=pb.Receipt(output_complete=True), final_text="B"), queue_pb.CELL_STATE_DONE, "", True),
    (pb.KnownCall(status=2, receipt=pb.Receipt(finish_reason="length")), queue_pb.CELL_STATE_DONE, "", False),
    (pb.KnownCall(status=3, receipt=pb.Receipt(reason="stream_cut")), queue_pb.CELL_STATE_FAILED, "stream_cut", None),
    (pb.KnownCall(status=1), queue_pb.CELL_STATE_INTERRUPTED, "executor_lost", None),
    (pb.KnownCall(status=5), queue_pb.CELL_STATE_INTERRUPTED, "executor_lost", None),
    (pb.KnownCall(status=4, receipt=pb.Receipt(reason="cancelled")), queue_pb.CELL_STATE_CANCELLED, "cancelled", None),
]


@pytest.mark.parametrize(("known", "state", "reason", "correct"), KNOWN)
async def test_a_call_that_was_made_before_is_gone_on_from_and_never_made_again(
    rig: Any, known: pb.KnownCall, state: Any, reason: str, correct: bool | None
) -> None:
    rig.ledger.refusals[0, 0] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=known)
    rig.queue.add(rig.lease(token=7))
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    (outcome,) = rig.ledger.outcomes
    assert (completion.state, outcome.reason, outcome.token, rig.upstream.requests) == (state, reason, 7, [])
    assert (outcome.correct if outcome.HasField("correct") else None) == correct


async def test_a_known_offer_that_was_not_accepted_is_followed_by_the_next(rig: Any, answer_type: Any) -> None:
    rig.queue.context.limits.admission_wait_s = 5
    known = pb.KnownCall(status=pb.CALL_STATUS_NOT_ACCEPTED, receipt=pb.Receipt(reason="rate_limited"))
    rig.ledger.refusals[0, 0] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=known)
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    await rig.finished(1)
    assert [dispatch.key.offer for dispatch in rig.ledger.dispatches] == [0, 1]
    assert rig.ledger.outcomes[0].correct
    assert len(rig.upstream.requests) == 1


@pytest.mark.parametrize("retry_after", ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "-5", "soon", None])
async def test_a_busy_endpoint_is_offered_the_call_again_and_each_offer_is_on_record(
    rig: Any, answer_type: Any, retry_after: str | None
) -> None:
    rig.queue.context.limits.admission_wait_s = 5
    headers = {"content-type": "application/json"} | ({"retry-after": retry_after} if retry_after else {})
    busy = answer_type(status=429, headers=headers, chunks=[(0, b'{"error":{"message":"slow down"}}')])
    rig.upstream.answers = [busy, answer_type(status=503, headers={"retry-after": "0"}), answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    await rig.finished(1)
    assert [dispatch.key.offer for dispatch in rig.ledger.dispatches] == [0, 1, 2]
    found = [(settle.receipt.status, settle.receipt.reason) for settle in rig.ledger.settles]
    refused = pb.CALL_STATUS_NOT_ACCEPTED
    assert found == [(refused, "rate_limited"), (refused, "overloaded"), (pb.CALL_STATUS_COMPLETED, "")]
    assert rig.ledger.outcomes[0].correct


@pytest.mark.parametrize(("wait_s", "retry_after"), [(0.0, "0"), (5.0, "86400"), (5.0, "1e300")])
async def test_without_time_to_wait_there_is_one_offer(rig: Any, answer_type: Any, wait_s: float, retry_after: str) -> None:
    rig.queue.context.limits.admission_wait_s = wait_s
    rig.upstream.answers = [answer_type(status=429, headers={"retry-after": retry_after})]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_FAILED, "rate_limited")
    assert (len(rig.upstream.requests), len(rig.ledger.settles)) == (1, 1)


@pytest.mark.parametrize("error", [{"code": "insufficient_quota"}, {"type": "exceeded_current_quota_error", "code": None}])
async def test_a_spent_quota_is_not_waited_for(rig: Any, answer_type: Any, error: dict[str, Any]) -> None:
    rig.queue.context.limits.admission_wait_s = 60
    body = json.dumps({"error": {"message": "You exceeded your current quota"} | error}).encode()
    headers = {"content-type": "application/json", "retry-after": "0"}
    rig.upstream.answers = [answer_type(status=429, headers=headers, chunks=[(0, body)]), answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_FAILED, "rate_limited")
    assert (len(rig.upstream.requests), len(rig.ledger.settles)) == (1, 1)
    assert "exceeded your current quota" in rig.ledger.settles[0].receipt.message


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/event-stream", content("B") + b"data: [DONE]\n\n"),
        ("text/event-stream", b'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n'),
        ("application/json", b'{"choices":[{"index":0,"message":{"content":"B"}}]}'),
    ],
)
async def test_a_refusal_that_carries_a_generation_is_none(
    rig: Any, answer_type: Any, status: int, kind: str, body: bytes
) -> None:
    rig.queue.context.limits.admission_wait_s = 5
    said = {"content-type": kind, "retry-after": "0"}
    rig.upstream.answers = [answer_type(status=status, headers=said, chunks=[(0, body)]), answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert completion.state == queue_pb.CELL_STATE_FAILED
    assert (len(rig.upstream.requests), len(rig.ledger.dispatches)) == (1, 1)
    assert rig.ledger.settles[0].receipt.status == pb.CALL_STATUS_FAILED
    assert rig.ledger.saved(rig.ledger.settles[0]).body == body


async def test_a_503_that_broke_off_behind_a_gateway_is_never_sent_again(rig: Any, answer_type: Any) -> None:
    rig.queue.context.limits.admission_wait_s = 5
    said = b"upstream connect error or disconnect/reset before headers. reset reason: connection termination"
    broken = answer_type(status=503, headers={"content-type": "text/plain", "retry-after": "0"}, chunks=[(0, said)])
    rig.upstream.answers = [broken, answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_FAILED, "overloaded")
    assert (len(rig.upstream.requests), len(rig.ledger.dispatches)) == (1, 1)
    assert rig.ledger.settles[0].receipt.status == pb.CALL_STATUS_FAILED


@pytest.mark.parametrize("status", [400, 408, 409, 500, 502, 504, 529])
async def test_no_other_failure_is_ever_sent_again(rig: Any, answer_type: Any, status: int) -> None:
    rig.queue.context.limits.admission_wait_s = 5
    rig.upstream.answers = [answer_type(status=status), answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert completion.state == queue_pb.CELL_STATE_FAILED
    assert (len(rig.upstream.requests), len(rig.ledger.dispatches)) == (1, 1)


@pytest.mark.parametrize(
    ("chunks", "quality"),
    [
        (whole("The answer is", "length"), "output_limit"),
        ([(0, content("ha " * 300))] * 5, "repetition"),
        ([(0, content("".join(chr(0x4E00 + n) for n in range(19_000)))), (0, content("y" * 2))], "output_chars"),
    ],
)
async def test_an_answer_that_does_not_end_is_the_models_failure(
    rig: Any, answer_type: Any, chunks: Any, quality: str
) -> None:
    rig.queue.context.limits.max_output_chars = 19_000
    rig.upstream.answers = [answer_type(chunks=chunks, end="hang" if quality != "output_limit" else "eof")]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    await rig.finished(1)
    (outcome,) = rig.ledger.outcomes
    assert (outcome.state, outcome.correct, outcome.output_limit) == (queue_pb.CELL_STATE_DONE, False, True)
    assert object_of(outcome.details)["quality_failure"] == quality
    assert rig.ledger.settles[0].receipt.status == pb.CALL_STATUS_COMPLETED
    assert rig.grader.answers == []


async def test_a_grading_failure_is_neither_right_nor_wrong(rig: Any, answer_type: Any) -> None:
    rig.grader.failure = "no_reference"
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    await rig.finished(1)
    (outcome,) = rig.ledger.outcomes
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, "grading_failed")
    assert not outcome.HasField("correct")
    assert not outcome.HasField("score")


async def test_a_missing_key_fails_the_cell_without_a_call(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    rig.queue.context.targets[0].api_key_env = "SOME_KEY"
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.reason, rig.ledger.dispatches, rig.upstream.requests) == ("missing_key", [], [])
    assert "SOME_KEY" in rig.ledger.outcomes[0].message


async def test_sessions_parameters_and_the_cases_own_fields_reach_the_endpoint(rig: Any, answer_type: Any) -> None:
    target = rig.queue.context.targets[0]
    target.session_mode = 1
    rig.queue.context.sampling.CopyFrom(to_value({"temperature": 0, "max_tokens": 512}))
    target.request_params.CopyFrom(to_value({"temperature": None, "max_tokens": None, "max_completion_tokens": 99}))
    lease = rig.lease()
    lease.public_case.request_fields.CopyFrom(to_value({"response_format": {"type": "json_object"}, "stream": False}))
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(lease, rig.lease(1))
    await rig.start_executor()
    await rig.finished(2)
    bodies = [json.loads(body) for _, body in rig.upstream.requests]
    first = next(body for body in bodies if body["messages"][0]["content"] == "question 0")
    assert "temperature" not in first
    assert "max_tokens" not in first
    assert (first["max_completion_tokens"], first["stream"]) == (99, True)
    assert first["response_format"] == {"type": "json_object"}
    assert {dispatch.max_output_tokens for dispatch in rig.ledger.dispatches} == {99}
    sessions = {settle.receipt.session_id for settle in rig.ledger.settles}
    assert len(sessions) == 2
    heads = b"".join(head for head, _ in rig.upstream.requests).decode()
    assert all(f"x-session-id: {session}" in heads for session in sessions)
