"""The grader's RPCs: batches of answers in, a grade or a reason for each out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from grpc import aio
from srbench.v1 import grader_service_pb2 as pb
from srbench.v1 import setup_pb2
from srbench.v1.grader_service_pb2_grpc import GraderServiceServicer
from srbench_kit import auth, tracing
from srbench_kit.errors import NotFound, SrBenchError, Unreachable
from srbench_kit.metrics import Counter, Histogram

from srbench_grader import convert, setup
from srbench_grader.apart import is_large
from srbench_grader.capabilities import Capabilities
from srbench_grader.grading import Case, Grader
from srbench_grader.references import CaseSet, ReferenceCache
from srbench_grader.workshop import Workshop

_GRADES = Counter("srbench_grades", "Answers that were judged, that need a judge model first, or that failed.", "result")
_GRADE_S = Histogram("srbench_grade_duration_seconds", "How long judging an answer took.")
_log = logging.getLogger(__name__)
_CALLERS = ("executor", "accounting", "planner", "gateway")


class GraderServicer(GraderServiceServicer):
    """Judges answers with `graders` against the references of `references`; programs run in the `workshop`."""

    def __init__(self, graders: Mapping[str, Grader], references: ReferenceCache, workshop: Workshop) -> None:
        self._graders = graders
        self._references = references
        self._workshop = workshop
        self._capabilities = Capabilities()

    async def Grade(
        self, request_iterator: AsyncIterator[pb.GradeRequest], context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.GradeResponse]:
        auth.require_role(context, *_CALLERS)
        stream = _GradeStream(self)
        reader = asyncio.ensure_future(stream.read(request_iterator))
        try:
            async for response in stream.responses():
                yield response
        finally:
            reader.cancel()
            stream.cancel()

    async def GradeBatch(self, request: pb.GradeBatchRequest, context: aio.ServicerContext[Any, Any]) -> pb.GradeResponse:
        auth.require_role(context, *_CALLERS)
        cases = {reference.case_index: convert.case(reference) for reference in request.references}
        return pb.GradeResponse(grades=[await self._grade(answer, cases) for answer in request.answers])

    async def GetCapabilities(
        self, request: pb.GetCapabilitiesRequest, context: aio.ServicerContext[Any, Any]
    ) -> pb.GraderCapabilities:
        auth.require_role(context, "executor")
        return pb.GraderCapabilities(names=await self._capabilities.names())

    async def InspectSetup(
        self, request: setup_pb2.InspectSetupRequest, context: aio.ServicerContext[Any, Any]
    ) -> setup_pb2.InspectSetupResponse:
        auth.require_role(context, "planner", "gateway")
        return await asyncio.to_thread(setup.inspect, request)

    def is_slow(self, answer: pb.Answer) -> bool:
        """Whether judging this answer takes longer than others should wait."""
        grader = self._graders.get(answer.grader)
        return grader is not None and (grader.run is not None or is_large(answer.text))

    async def fetched(self, answer: pb.Answer) -> pb.Grade:
        """Grades against the planner's reference. Only an unreachable planner ends the stream."""
        try:
            cases = await self._references.case_set(answer.case_sha256)
        except Unreachable:
            raise
        except SrBenchError as error:
            return convert.failure(answer.sequence, error)
        return await self._grade(answer, cases)

    async def _grade(self, answer: pb.Answer, cases: CaseSet) -> pb.Grade:
        began = time.perf_counter()
        span = tracing.begin("grade", answer.traceparent, {"grader": answer.grader}) if answer.traceparent else None
        grade = await self._judge(answer, cases)
        if span is not None:
            correct = grade.correct if grade.HasField("correct") else None
            tracing.end(span, {"reason": grade.failure_reason, "correct": correct})
        _GRADE_S.observe(time.perf_counter() - began)
        _GRADES.add("failed" if grade.failure_reason else "asked" if grade.HasField("judge_request") else "judged")
        return grade

    async def _judge(self, answer: pb.Answer, cases: CaseSet) -> pb.Grade:
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
        return await _judged(answer, grader, convert.with_options(case, answer), self._workshop)


class _GradeStream:
    """One stream: quick answers are judged as they come, slow ones beside them, each answered when it is ready."""

    def __init__(self, servicer: GraderServicer) -> None:
        self._servicer = servicer
        self._ready: asyncio.Queue[pb.GradeResponse | BaseException | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def read(self, requests: AsyncIterator[pb.GradeRequest]) -> None:
        """Takes answers until there are no more and all are judged."""
        try:
            async for request in requests:
                quick = [answer for answer in request.answers if not self._servicer.is_slow(answer)]
                for answer in request.answers:
                    if self._servicer.is_slow(answer):
                        task = asyncio.create_task(self._one(answer))
                        self._tasks.add(task)
                        task.add_done_callback(self._tasks.discard)
                if quick:
                    grades = [await self._servicer.fetched(answer) for answer in quick]
                    self._ready.put_nowait(pb.GradeResponse(grades=grades))
            await asyncio.gather(*self._tasks)
            self._ready.put_nowait(None)
        except Exception as error:
            # Told to the one who waits for responses, in whose frame it belongs.
            self._ready.put_nowait(error)

    async def responses(self) -> AsyncIterator[pb.GradeResponse]:
        """Grades as they get ready."""
        while (ready := await self._ready.get()) is not None:
            if isinstance(ready, BaseException):
                raise ready
            yield ready

    def cancel(self) -> None:
        """Gives up what is still being judged."""
        for task in self._tasks:
            task.cancel()

    async def _one(self, answer: pb.Answer) -> None:
        try:
            self._ready.put_nowait(pb.GradeResponse(grades=[await self._servicer.fetched(answer)]))
        except SrBenchError as error:
            self._ready.put_nowait(error)


async def _judged(answer: pb.Answer, grader: Grader, case: Case, workshop: Workshop) -> pb.Grade:
    try:
        if grader.run is not None:
            grading = await grader.run(convert.submission(answer), case, workshop)
        else:
            assert grader.judge is not None, "a grader has one of the two"
            grading = await workshop.apart.judge(grader.judge, answer.text, case, convert.replies(answer))
        return convert.grade(answer.sequence, grader, grading)
    except SrBenchError as error:
        return convert.failure(answer.sequence, error, grader.version)
    except Exception:
        # Graders may come from other packages; a bug in one fails its answer, not the stream of all the others.
        _log.exception("grader %s failed on %s", grader.name, case.case_id)
        bug = SrBenchError("GRADER_BUG", f"the grader {grader.name!r} failed; the grader's log has the details")
        return convert.failure(answer.sequence, bug, grader.version)
