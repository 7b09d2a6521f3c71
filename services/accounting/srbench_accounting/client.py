"""Planner and grader as accounting sees them: runs, plans and their cases; grades of saved answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType

from grpc import aio
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import grader_service_pb2_grpc as grader_rpc
from srbench.v1 import plan_pb2, work_queue_service_pb2_grpc
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth, wire
from srbench_kit.errors import SrBenchError, Unreachable

CALL_TIMEOUT_S = 10.0
CASES_TIMEOUT_S = 120.0
GRADE_TIMEOUT_S = 600.0
BATCH = 200


class PlannerClient:
    """One channel to the planner for the life of the process.

    Raises, from every method: `NotFound` (`NO_SUCH_RUN`, `NO_SUCH_PLAN`), `Unreachable`.
    """

    def __init__(self, address: str) -> None:
        self._channel = wire.channel(address, auth.service_metadata("accounting"))
        self._planner = rpc.PlannerServiceStub(self._channel)
        self._recovery: recovery_rpc.RecoveryServiceAsyncStub = recovery_rpc.RecoveryServiceStub(self._channel)
        self._queue = work_queue_service_pb2_grpc.WorkQueueServiceStub(self._channel)

    async def __aenter__(self) -> PlannerClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def run_context(self, run_id: str) -> queue_pb.RunContext:
        """What is constant over a run."""
        try:
            return await self._queue.GetRunContext(queue_pb.GetRunContextRequest(run_id=run_id), timeout=CALL_TIMEOUT_S)
        except aio.AioRpcError as error:
            raise _error(error) from error

    async def run(self, run_id: str, *, summary: bool = False) -> pb.Run:
        """A run with its plan, as it stands now; without manifest and provenance when it is a `summary`. The cases of its
        plan are `plan_cases`, never part of the manifest."""
        request = pb.GetRunRequest(id=run_id, summary=summary, without_cases=True)
        try:
            return await self._planner.GetRun(request, timeout=CALL_TIMEOUT_S)
        except aio.AioRpcError as error:
            raise _error(error) from error

    async def lineage(self, run_id: str) -> list[pb.Run]:
        """A run and all its recoveries, oldest first, without manifests."""
        try:
            request = recovery_pb.GetLineageRequest(run_id=run_id)
            return list((await self._recovery.GetLineage(request, timeout=CALL_TIMEOUT_S)).runs)
        except aio.AioRpcError as error:
            raise _error(error) from error

    async def plan_cases(self, plan_sha256: str) -> list[plan_pb2.PlanCase]:
        """The cases of a plan in their frozen order, without texts and answers."""
        cases: list[plan_pb2.PlanCase] = []
        request = pb.StreamPlanCasesRequest(plan_sha256=plan_sha256)
        try:
            async for part in self._planner.StreamPlanCases(request, timeout=CASES_TIMEOUT_S):
                cases.extend(part.cases)
        except aio.AioRpcError as error:
            raise _error(error) from error
        return cases

    async def live_runs(self, actor: auth.Actor, page_token: str, page_size: int) -> pb.ListRunsResponse:
        """A page of the live runs that `actor` may see, newest first. Raises: `InvalidInput` (`BAD_PAGE_TOKEN`)."""
        request = pb.ListRunsRequest(page_size=page_size, page_token=page_token, mode="live")
        metadata = aio.Metadata(*auth.actor_metadata(actor).items())
        try:
            return await self._planner.ListRuns(request, timeout=CALL_TIMEOUT_S, metadata=metadata)
        except aio.AioRpcError as error:
            raise _error(error) from error

    async def adapter_versions(self) -> dict[str, str]:
        """The installed adapter version by benchmark."""
        try:
            catalog = await self._planner.GetCatalog(pb.GetCatalogRequest(), timeout=CALL_TIMEOUT_S)
        except aio.AioRpcError as error:
            raise _error(error) from error
        return {benchmark.id: benchmark.adapter_version for benchmark in catalog.benchmarks}

    async def sealed_cases(self, case_sha256: str, *, digests_only: bool) -> AsyncIterator[list[plan_pb2.SealedCase]]:
        """The cases of that digest in order, in batches. Raises: `InvalidInput` (`HOLDOUT`) unless digests only."""
        request = pb.StreamSealedCasesRequest(case_sha256=case_sha256, digests_only=digests_only)
        try:
            async for part in self._planner.StreamSealedCases(request, timeout=CASES_TIMEOUT_S):
                yield list(part.cases)
        except aio.AioRpcError as error:
            raise _error(error) from error


class GraderClient:
    """One channel to the grader for the life of the process; an empty address means that there is none."""

    def __init__(self, address: str) -> None:
        self._channel = wire.channel(address, auth.service_metadata("accounting")) if address else None

    async def close(self) -> None:
        """Ends the channel."""
        if self._channel is not None:
            await self._channel.close()

    async def grade(self, answers: Sequence[grader_pb.Answer]) -> list[grader_pb.Grade]:
        """The grade of each answer, in order; their sequences are replaced. Raises: `Unreachable`."""
        if self._channel is None:
            raise Unreachable("NO_GRADER", "this service was started without the address of a grader")
        for sequence, answer in enumerate(answers):
            answer.sequence = sequence
        found: dict[int, grader_pb.Grade] = {}
        batches = [grader_pb.GradeRequest(answers=answers[at : at + BATCH]) for at in range(0, len(answers), BATCH)]
        try:
            async for response in grader_rpc.GraderServiceStub(self._channel).Grade(iter(batches), timeout=GRADE_TIMEOUT_S):
                found.update((grade.sequence, grade) for grade in response.grades)
        except aio.AioRpcError as error:
            raise _error(error) from error
        if len(found) < len(answers):
            raise Unreachable("GRADES_MISSING", f"the grader gave {len(found)} grades for {len(answers)} answers")
        return [found[sequence] for sequence in range(len(answers))]


def _error(error: aio.AioRpcError) -> SrBenchError:
    return wire.to_error(error)
