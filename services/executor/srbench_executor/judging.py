"""Has an answer graded, and makes the calls to judge models that its grader asks for."""

from __future__ import annotations

import time
from collections.abc import Sequence

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import tracing
from srbench_kit.values import Json, object_of, to_value

from srbench_executor.caller import Caller, Question
from srbench_executor.grading import GradeStream
from srbench_executor.request import chat_messages
from srbench_executor.runs import Subject
from srbench_executor.verdicts import of_call, of_grade, of_refusal
from srbench_executor.work import Cell, Ended, Refused, Verdict

# More judges than this is a grader that never comes to an end.
MAX_JUDGE_CALLS = 4
# The run was stopped, or this process is: nothing can be said about the answer.
_NOT_THE_JUDGES_DOING = (queue_pb.CELL_STATE_QUEUED, queue_pb.CELL_STATE_CANCELLED, queue_pb.CELL_STATE_INTERRUPTED)


async def judged(
    cell: Cell, caller: Caller, grader: GradeStream, texts: Sequence[str], call_count: int | None = None
) -> Verdict:
    """The verdict on the whole answers `texts`; the calls that gave them had the ordinals before `call_count`, one for
    each text when it is not told.

    A grader that needs a judge model says so in `judge_request`; asking it is a call like any other (role judge, the next
    ordinal, the target that the benchmark's options name), and its reply goes back to the grader in another `Answer`.
    """
    assert cell.run is not None
    options = cell.run.options.get(cell.lease.public_case.benchmark, {})
    replies: list[grader_pb.JudgeReply] = []
    first = len(texts) if call_count is None else call_count
    while True:
        cell.grading_since = time.time()
        grade = await grader.grade(_answer(cell, texts, options, replies))
        if not grade.HasField("judge_request"):
            return of_grade(grade)
        name = grade.judge_request.option or "judge"
        judge = cell.run.auxiliary.get(str(options.get(name)))
        if judge is None or len(replies) == MAX_JUDGE_CALLS:
            problem = f"asks for the judge of the option {name!r}" + (" once more" if judge else ", which names no target")
            return _failed(f"the grader {cell.lease.grader!r} {problem}")
        ended = await caller.ask(cell, _question(grade.judge_request, judge, first + len(replies)))
        if isinstance(ended, Refused):
            return of_refusal(ended, cell.stopped)
        verdict = of_call(ended)
        if verdict is not None and verdict.state in _NOT_THE_JUDGES_DOING:
            return verdict
        replies.append(_reply(ended))


def _answer(
    cell: Cell, texts: Sequence[str], options: dict[str, Json], replies: Sequence[grader_pb.JudgeReply]
) -> grader_pb.Answer:
    assert cell.run is not None
    answer = grader_pb.Answer(
        case_sha256=cell.run.context.case_sha256,
        case_index=cell.lease.case_index,
        grader=cell.lease.grader,
        text=texts[-1],
        judge_replies=replies,
        parts=texts if len(texts) > 1 else (),
    )
    if cell.span is not None:
        answer.traceparent = tracing.header(cell.span)
    if options:
        answer.options.CopyFrom(to_value(options))
    return answer


def _question(asked: grader_pb.JudgeRequest, judge: Subject, ordinal: int) -> Question:
    return Question(
        ordinal=ordinal,
        role=pb.CALL_ROLE_JUDGE,
        subject=judge,
        messages=chat_messages(asked.messages),
        fields=object_of(asked.request_fields),
    )


def _reply(ended: Ended) -> grader_pb.JudgeReply:
    reply = grader_pb.JudgeReply(text=ended.text, finish_reason=ended.finish_reason)
    if ended.status != pb.CALL_STATUS_COMPLETED:
        reply.failure_reason = ended.reason or "internal_error"
        reply.failure_message = ended.message or f"the call to the judge failed: {reply.failure_reason}"
    elif ended.quality_failure:
        reply.failure_reason = ended.quality_failure
        reply.failure_message = "the judge did not come to an end"
    return reply


def _failed(message: str) -> Verdict:
    return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="grading_failed", message=message)
