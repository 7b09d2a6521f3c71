"""One question, one answer, one grade."""

from __future__ import annotations

import time

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.values import object_of

from srbench_executor.caller import Caller, Question
from srbench_executor.grading import GradeStream
from srbench_executor.request import chat_messages
from srbench_executor.verdicts import of_call, of_grade, of_refusal
from srbench_executor.work import Cell, Refused, Verdict


async def answer(cell: Cell, caller: Caller, grader: GradeStream) -> Verdict:
    """Asks the model once and has its answer judged."""
    assert cell.run is not None
    case = cell.lease.public_case
    question = Question(
        ordinal=0,
        role=pb.CALL_ROLE_SUBJECT,
        subject=cell.run.subjects[cell.lease.target_index],
        messages=chat_messages(case.messages),
        fields=object_of(case.request_fields),
    )
    ended = await caller.ask(cell, question)
    if isinstance(ended, Refused):
        return of_refusal(ended, cell.stopped)
    verdict = of_call(ended)
    return verdict if verdict is not None else await judged(cell, ended.text, grader)


async def judged(cell: Cell, text: str, grader: GradeStream) -> Verdict:
    """The verdict on a whole answer.

    A grader that needs a judge model says so in `judge_request`; asking it is a call like any other (role judge, the next
    ordinal, an auxiliary target), and its reply goes back to the grader in another `Answer`.
    """
    assert cell.run is not None
    cell.grading_since = time.time()
    grade = await grader.grade(
        grader_pb.Answer(
            case_sha256=cell.run.context.case_sha256,
            case_index=cell.lease.case_index,
            grader=cell.lease.grader,
            text=text,
        )
    )
    if grade.HasField("judge_request"):
        message = f"the grader {cell.lease.grader!r} asks for a judge model, which the driver single_turn does not call"
        return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="grading_failed", message=message)
    return of_grade(grade)
