"""The planner as accounting sees it: what is constant over a run, the cases of a plan, and where a run stands."""

from __future__ import annotations

from types import TracebackType

from grpc import aio
from srbench.v1 import plan_pb2, work_queue_service_pb2_grpc
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth, wire
from srbench_kit.errors import SrBenchError

CALL_TIMEOUT_S = 10.0
CASES_TIMEOUT_S = 120.0


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

    async def run(self, run_id: str) -> pb.Run:
        """A run with its plan, as it stands now."""
        try:
            return await self._planner.GetRun(pb.GetRunRequest(id=run_id), timeout=CALL_TIMEOUT_S)
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


def _error(error: aio.AioRpcError) -> SrBenchError:
    return wire.to_error(error)
