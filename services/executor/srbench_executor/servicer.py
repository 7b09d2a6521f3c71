"""What the executor says of itself."""

from __future__ import annotations

from typing import Any

from grpc import aio
from srbench.v1 import executor_service_pb2 as pb
from srbench.v1.executor_service_pb2_grpc import ExecutorServiceServicer
from srbench_kit.auth import require_role

from srbench_executor.worker import Worker


class Executor(ExecutorServiceServicer):
    """Serves `ExecutorService`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def GetExecutorStatus(
        self, request: pb.GetExecutorStatusRequest, context: aio.ServicerContext[Any, Any]
    ) -> pb.ExecutorStatus:
        return self._status()

    async def DrainExecutor(
        self, request: pb.DrainExecutorRequest, context: aio.ServicerContext[Any, Any]
    ) -> pb.ExecutorStatus:
        require_role(context, "gateway", "planner")
        self._worker.drain()
        return self._status()

    def _status(self) -> pb.ExecutorStatus:
        worker = self._worker
        status = pb.ExecutorStatus(
            executor_id=worker.executor_id,
            cell_count=worker.cell_count,
            call_count=worker.call_count,
            capacity=worker.capacity,
            draining=worker.draining,
            harness_cell_count=worker.harness_cell_count,
            harness_capacity=worker.harness_capacity,
        )
        status.loop_lag.FromNanoseconds(int(worker.activity.loop_lag_s * 1e9))
        return status
