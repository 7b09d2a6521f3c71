"""One executor between fake services and a scripted endpoint, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
from srbench.v1 import plan_pb2, target_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.accounting_service_pb2_grpc import (
    AccountingServiceStub,
    add_AccountingServiceServicer_to_server,
)
from srbench.v1.grader_service_pb2_grpc import (
    GraderServiceStub,
    add_GraderServiceServicer_to_server,
)
from srbench.v1.work_queue_service_pb2_grpc import (
    WorkQueueServiceStub,
    add_WorkQueueServiceServicer_to_server,
)
from srbench_executor.capabilities import Capabilities
from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.harness.runners import Runner
from srbench_executor.spool import Spool
from srbench_executor.worker import Worker
from srbench_kit import serving, wire
from srbench_kit.values import to_value

from tests.contract.executor.fakes import FakeGrader, FakeLedger, FakeQueue
from tests.contract.executor.upstream import Upstream
from tests.waiting import PATIENCE_S


class Rig:
    """One executor in this process, between fake services and a scripted endpoint, over real sockets."""

    def __init__(self, upstream: Upstream, folder: Path) -> None:
        self.upstream = upstream
        self.folder = folder
        self.queue, self.ledger, self.grader = FakeQueue(), FakeLedger(), FakeGrader()
        limits = self.queue.context.limits
        limits.total_timeout_s, limits.idle_timeout_s, limits.case_timeout_s = 120, 120, 120
        limits.max_output_tokens, limits.max_output_chars = 512, 100_000
        limits.repetition_window, limits.repetition_limit = 128, 5
        self.queue.context.targets.add(id="t", model="m", base_url=upstream.base_url, kind=target_pb2.TARGET_KIND_SINGLE)
        self.runners: dict[str, Runner] = {}
        self.harness_cells = 4
        self.worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._server: serving.Server | None = None
        self._channel: grpc.aio.Channel | None = None

    async def start_services(self) -> None:
        self._server = serving.Server("127.0.0.1:0")
        self._server.add(self.queue, add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
        self._server.add(self.ledger, add_AccountingServiceServicer_to_server, "srbench.v1.AccountingService")
        self._server.add(self.grader, add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
        await self._server.start()
        self.address = f"127.0.0.1:{self._server.port}"

    async def start_executor(self, drain_s: float = 5.0) -> None:
        self._channel = wire.channel(self.address, {})
        self.worker = Worker(
            Spool(self.folder),
            FactStream(AccountingServiceStub(self._channel)),
            GradeStream(GraderServiceStub(self._channel)),
            WorkQueueServiceStub(self._channel),
            64,
            self.harness_cells,
            self.runners,
            Capabilities(GraderServiceStub(self._channel)),
        )
        self._task = asyncio.create_task(self.worker.run(drain_s))

    async def stop_executor(self) -> None:
        if self._task is not None and self._channel is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._channel.close()
            self._task = None

    async def stop(self) -> None:
        await self.stop_executor()
        if self._server is not None:
            await self._server.drain(0)

    def lease(self, cell: int = 0, token: int = 1, **changes: Any) -> queue_pb.Lease:
        case = plan_pb2.PublicCase(case_id=f"case-{cell}", benchmark="b")
        case.messages.add(role="user", content=to_value(f"question {cell}"))
        fields: dict[str, Any] = {"driver": "single_turn", "grader": "choice", "case_index": cell} | changes
        return queue_pb.Lease(run_id="run-1", cell=cell, token=token, public_case=case, **fields)

    async def finished(self, count: int, within_s: float = PATIENCE_S) -> list[queue_pb.Completion]:
        """Waits until `count` cells were given back."""
        async with asyncio.timeout(within_s):
            while len(self.queue.completions) < count:
                self.queue.changed.clear()
                await self.queue.changed.wait()
        return self.queue.completions
