"""Messages to values and back."""

from __future__ import annotations

from dataclasses import replace

from srbench.v1 import grader_service_pb2 as pb
from srbench_kit.errors import SrBenchError
from srbench_kit.values import fill_value, from_value, object_of

from srbench_grader.grading import Case, Grader, Grading, JudgeReply, Submission


def with_options(case: Case, answer: pb.Answer) -> Case:
    """`case` with the options that came with the answer."""
    return replace(case, options=object_of(answer.options)) if answer.HasField("options") else case


def submission(answer: pb.Answer) -> Submission:
    """The answer to be judged."""
    return Submission(text=answer.text, parts=tuple(answer.parts) or (answer.text,), replies=replies(answer))


def case(reference: pb.Reference) -> Case:
    """The case that `reference` describes."""
    return Case(
        case_id=reference.case_id,
        benchmark=reference.benchmark,
        answer=from_value(reference.answer),
        metadata=object_of(reference.metadata),
        choice_count=max(reference.choice_count, 0),
        question=reference.question,
    )


def replies(answer: pb.Answer) -> tuple[JudgeReply, ...]:
    """What the judge said so far."""
    return tuple(
        JudgeReply(
            text=reply.text,
            finish_reason=reply.finish_reason,
            failure_reason=reply.failure_reason,
            failure_message=reply.failure_message,
        )
        for reply in answer.judge_replies
    )


def grade(sequence: int, grader: Grader, grading: Grading) -> pb.Grade:
    """The message for a judgement, or for the model call that it needs first."""
    message = pb.Grade(sequence=sequence, grader_version=grader.version, answer_status=grading.status)
    if grading.correct is not None:
        message.correct = grading.correct
        message.score = 1.0 if grading.correct else 0.0
    if grading.strict_format is not None:
        message.strict_format = grading.strict_format
    if grading.extracted is not None:
        fill_value(message.extracted, grading.extracted)
    if grading.details:
        fill_value(message.details, dict(grading.details))
    if grading.judge_call is not None:
        for role, content in grading.judge_call.messages:
            chat = message.judge_request.messages.add(role=role)
            chat.content.string_value = content
        fill_value(message.judge_request.request_fields, dict(grading.judge_call.request_fields))
        message.judge_request.option = grading.judge_call.option
    message.failure_reason, message.failure_message = grading.failure_reason, grading.failure_message
    return message


def failure(sequence: int, error: SrBenchError, version: str = "") -> pb.Grade:
    """The message for an answer that could not be graded."""
    return pb.Grade(sequence=sequence, grader_version=version, failure_reason=error.reason, failure_message=error.message)
