"""The executor's main loop: replay, lease, work, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub

from srbench_executor.activity import Activity
from srbench_executor.call import Cut
from srbench_executor.caller import Caller, Transports
from srbench_executor.capabilities import Capabilities
from srbench_executor.capturing import Capturing
from srbench_executor.cell import Cells
from srbench_executor.drivers import DRIVERS
from srbench_executor.drivers.harness import HarnessDriver
from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.harness.endpoint import Endpoint
from srbench_executor.harness.inspecting import PREFIX, Inspector
from srbench_executor.harness.runners import Runner
from srbench_executor.leasing import Leasing
from srbench_executor.replay import replay
from srbench_executor.retelling import Retelling
from srbench_executor.runs import RunBook
from srbench_executor.spool import Spool
from srbench_executor.work import Cell

GIVE_UP_S = 5.0
_STOPPED_BY = {"cancelled": "the run was cancelled"}
_log = logging.getLogger(__name__)


class Worker:
    """All that one executor process does."""

    def __init__(
        self,
        spool: Spool,
        facts: FactStream,
        grader: GradeStream,
        queue: WorkQueueServiceStub,
        capacity: int,
        harness_capacity: int,
        runners: Mapping[str, Runner],
        capabilities: Capabilities,
    ) -> None:
        self.capacity = capacity
        self.harness_capacity = harness_capacity
        self.draining = False
        self.executor_id = spool.executor_id
        self._spool = spool
        self._facts = facts
        self._grader = grader
        # What is read together is written together: text lies unwritten no longer than the spool says.
        self._transports = Transports(spool.flush)
        self._inspector = Inspector(queue, spool.executor_id, runners)
        self._capabilities = capabilities
        self._leasing = Leasing(queue, spool.executor_id, lambda: capabilities.names)
        self._retelling = Retelling(facts)
        caller = Caller(facts, spool, self._transports, self._retelling)
        self._endpoint = Endpoint()
        self._harness = HarnessDriver(self._endpoint, runners, spool.folder, spool.executor_id)
        drivers = DRIVERS | {"harness": self._harness.answer}
        self._cells = Cells(RunBook(queue), caller, grader, facts, self._leasing, drivers)
        self._capturing = Capturing(queue, spool.executor_id, self._transports)
        self._held: dict[asyncio.Task[None], Cell] = {}
        self._changed = asyncio.Event()
        self.activity = Activity(spool.executor_id, facts, self._held.values)

    @property
    def cell_count(self) -> int:
        """Cells in hand."""
        return len(self._held)

    @property
    def harness_cell_count(self) -> int:
        """Cells of harnesses in hand."""
        return sum(cell.lease.driver.startswith(PREFIX) for cell in self._held.values())

    @property
    def call_count(self) -> int:
        """Calls in flight."""
        return sum(cell.call is not None or cell.fetch is not None for cell in self._held.values())

    def drain(self) -> None:
        """Leases no more; what is in hand is finished."""
        self.draining = True
        self._changed.set()

    async def run(self, drain_s: float) -> None:
        """Works until cancelled, then finishes what is in hand for up to `drain_s` seconds and hands the rest back."""
        background = [
            asyncio.create_task(self._facts.run()),
            asyncio.create_task(self._grader.run()),
            asyncio.create_task(self._leasing.deliver()),
            asyncio.create_task(self._leasing.renew(self._refs, self._told)),
            asyncio.create_task(self._retelling.run()),
            asyncio.create_task(self.activity.run()),
            asyncio.create_task(self._capturing.run()),
            asyncio.create_task(self._inspector.run()),
            asyncio.create_task(self._capabilities.run()),
        ]
        leasing = asyncio.create_task(self._lease())
        try:
            # None of them ever ends by itself: one that does has failed, and takes the process with it.
            done, _ = await asyncio.wait([leasing, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except asyncio.CancelledError:
            self.drain()
        finally:
            await _cancelled(leasing)
            await self._finish(drain_s)
            await _cancelled(*background)
            await self._endpoint.close()
            await self._transports.close()
            self._spool.close()

    async def _lease(self) -> None:
        looks = self._inspector.first_look(), self._capabilities.first_look()
        await asyncio.gather(replay(self._spool, self._facts, self._retelling), self._harness.sweep(), *looks)
        # Harnesses cost memory as other cells do not. They are asked for apart, so that neither kind waits for the other.
        await asyncio.gather(self._lease_plain(), self._lease_harnesses())

    async def _lease_plain(self) -> None:
        while True:
            await self._lease_up_to(lambda: self.capacity - (len(self._held) - self.harness_cell_count), DRIVERS)

    async def _lease_harnesses(self) -> None:
        while True:
            await self._inspector.any_usable()
            await self._lease_up_to(lambda: self.harness_capacity - self.harness_cell_count, self._inspector.drivers)

    async def _lease_up_to(self, room: Callable[[], int], drivers: Iterable[str]) -> None:
        """Leases as many cells for `drivers` as there is `room`, or waits until something has changed."""
        self._changed.clear()
        if not self._spool.healthy:
            self._spool.probe()
            await asyncio.sleep(0.2)
        elif room() <= 0 or self.draining:
            await self._changed.wait()
        else:
            for lease in await self._leasing.lease(room(), drivers):
                self._take(lease)

    def _take(self, lease: queue_pb.Lease) -> None:
        cell = Cell(lease)
        task = asyncio.create_task(self._cells.work(cell))
        self._held[task] = cell
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._held[task]
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a cell ended with a bug", exc_info=error)

    def _refs(self) -> list[queue_pb.LeaseRef]:
        return [cell.ref for cell in self._held.values() if not cell.lost]

    def _told(self, answer: queue_pb.RenewLeasesResponse) -> None:
        lost = {(ref.run_id, ref.cell, ref.token) for ref in answer.lost}
        stopped = {run.run_id: run.reason or "run_stopped" for run in answer.stopped_runs}
        for cell in list(self._held.values()):
            lease = cell.lease
            if (lease.run_id, lease.cell, lease.token) in lost:
                # Somebody else decides about the cell now; what its call has brought is still told.
                cell.lost = True
                cell.stop(Cut(pb.CALL_STATUS_CANCELLED, "executor_lost", "the lease of the cell ran out"))
            elif lease.run_id in stopped:
                reason = stopped[lease.run_id]
                known = reason if reason in ("cancelled", "run_stopped") else "run_stopped"
                said = _STOPPED_BY.get(reason, f"the run was stopped: {reason}")
                cell.stop(Cut(pb.CALL_STATUS_CANCELLED, known, said))

    async def _finish(self, drain_s: float) -> None:
        if self._held:
            _log.info("draining: %d cells in hand", len(self._held))
            await asyncio.wait(list(self._held), timeout=drain_s)
        for cell in self._held.values():
            cell.stop(Cut(pb.CALL_STATUS_SENT_UNKNOWN, "executor_lost", "the executor was stopped during the call"))
        if self._held:
            await asyncio.wait(list(self._held), timeout=GIVE_UP_S)
        for task in list(self._held):
            task.cancel()
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._leasing.delivered()
        except TimeoutError:
            _log.warning("the planner did not take the last completions; it will ask accounting about them")


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    """Cancels `tasks` and waits for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
