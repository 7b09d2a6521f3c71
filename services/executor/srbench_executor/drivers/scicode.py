"""A problem in steps: each user message of the case in turn, after all that was asked and answered before it.

Each step is a call of its own, with its own ordinal in the cell. A cell that is taken up again goes through the same
steps; accounting answers those that were dispatched before with their receipts, so that none is sent twice.
"""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import Json, object_of

from srbench_executor.caller import Caller, Question
from srbench_executor.grading import GradeStream
from srbench_executor.judging import judged
from srbench_executor.request import chat_messages
from srbench_executor.verdicts import of_call, of_refusal
from srbench_executor.work import Cell, Refused, Verdict

# Endpoints refuse empty messages; a step may be answered with nothing but reasoning.
NO_ANSWER = "(no answer)"


async def answer(cell: Cell, caller: Caller, grader: GradeStream) -> Verdict:
    """Asks all steps, as long as each is answered whole, and has the answers judged together."""
    assert cell.run is not None
    case = cell.lease.public_case
    conversation: list[Json] = []
    texts: list[str] = []
    for message in chat_messages(case.messages):
        conversation.append(message)
        if not isinstance(message, dict) or message.get("role") != "user" or not message.get("content"):
            continue
        question = Question(
            ordinal=len(texts),
            role=pb.CALL_ROLE_SUBJECT,
            subject=cell.run.subjects[cell.lease.target_index],
            messages=list(conversation),
            fields={} if texts else object_of(case.request_fields),
        )
        ended = await caller.ask(cell, question)
        if isinstance(ended, Refused):
            return of_refusal(ended, cell.stopped)
        verdict = of_call(ended)
        if verdict is not None:
            return verdict
        texts.append(ended.text)
        conversation.append({"role": "assistant", "content": ended.text or NO_ANSWER})
    return await judged(cell, caller, grader, texts)
