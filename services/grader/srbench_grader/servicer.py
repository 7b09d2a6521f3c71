"""The grader's RPCs: batches of answers in, a grade or a reason for each out."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from grpc import aio
from srbench.v1 import grader_service_pb2 as pb
from srbench.v1.grader_service_pb2_grpc import GraderServiceServicer
from srbench_kit import auth
from srbench_kit.errors import NotFound, SrBenchError, Unreachable

from srbench_grader import convert
from srbench_grader.grading import Case, Grader
from srbench_grader.references import CaseSet, ReferenceCache

_log = logging.getLogger(__name__)
_CALLERS = ("executor", "accounting", "planner", "gateway")


class GraderServicer(GraderServiceServicer):
    """Judges answers with `graders` against the references of `references`."""

    def __init__(self, graders: Mapping[str, Grader], references: ReferenceCache) -> None:
        self._graders = graders
        self._references = references

    async def Grade(
        self, request_iterator: AsyncIterator[pb.GradeRequest], context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.GradeResponse]:
        auth.require_role(context, *_CALLERS)
        async for request in request_iterator:
            yield pb.GradeResponse(grades=[await self._fetched(answer) for answer in request.answers])

    async def GradeBatch(self, request: pb.GradeBatchRequest, context: aio.ServicerContext[Any, Any]) -> pb.GradeResponse:
        auth.require_role(context, *_CALLERS)
        cases = {reference.case_index: convert.case(reference) for reference in request.references}
        return pb.GradeResponse(grades=[self._grade(answer, cases) for answer in request.answers])

    async def _fetched(self, answer: pb.Answer) -> pb.Grade:
        """Grades against the planner's reference. Only an unreachable planner ends the stream."""
        try:
            cases = await self._references.case_set(answer.case_sha256)
        except Unreachable:
            raise
        except SrBenchError as error:
            return convert.failure(answer.sequence, error)
        return self._grade(answer, cases)

    def _grade(self, answer: pb.Answer, cases: CaseSet) -> pb.Grade:
        grader = self._graders.get(answer.grader)
        if grader is None:
            known = ", ".join(sorted(self._graders))
            return convert.failure(
                answer.sequence,
                NotFound("NO_SUCH_GRADER", f"there is no grader named {answer.grader!r}; there are {known}"),
            )
        case = cases.get(answer.case_index)
        if case is None:
            return convert.failure(
                answer.sequence, NotFound("NO_REFERENCE", f"case {answer.case_index} has no reference"), grader.version
            )
        return _judged(answer, grader, case)


def _judged(answer: pb.Answer, grader: Grader, case: Case) -> pb.Grade:
    try:
        return convert.grade(answer.sequence, grader, grader.judge(answer.text, case, convert.replies(answer)))
    except SrBenchError as error:
        return convert.failure(answer.sequence, error, grader.version)
    except Exception:
        # Graders may come from other packages; a bug in one fails its answer, not the stream of all the others.
        _log.exception("grader %s failed on %s", grader.name, case.case_id)
        bug = SrBenchError("GRADER_BUG", f"the grader {grader.name!r} failed; the grader's log has the details")
        return convert.failure(answer.sequence, bug, grader.version)
