"""One question, one answer, one grade."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import object_of

from srbench_executor.caller import Caller, Question
from srbench_executor.grading import GradeStream
from srbench_executor.judging import judged
from srbench_executor.request import chat_messages
from srbench_executor.verdicts import of_call, of_refusal
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
    return verdict if verdict is not None else await judged(cell, caller, grader, [ended.text])
