"""Takes cells from the planner's queue, keeps the leases alive, and gives the cells back done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence

from google.protobuf.duration_pb2 import Duration
from grpc import aio
from srbench.v1 import work_queue_service_pb2 as pb
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit import wire
from srbench_kit.ids import uuid7_hex

LONG_POLL_S = 20
# While the grader has not said what it has, for then more cells may be asked for in a moment.
FIRST_POLL_S = 1
RENEW_S = 1.0
CALL_TIMEOUT_S = 10.0
RETRY_S = 0.5
# A planner that gives cells one by one as others end is asked again only after a moment, so that more come together.
GATHER_S = 0.003
MAX_CELLS = 1024
_log = logging.getLogger(__name__)


class Leasing:
    """The executor's side of the work queue, under one incarnation."""

    def __init__(
        self, stub: WorkQueueServiceStub, executor_id: str, capabilities: Callable[[], Sequence[str] | None] = tuple
    ) -> None:
        self._stub = stub
        self._executor_id = executor_id
        self._capabilities = capabilities
        self.incarnation = uuid7_hex()
        self._completions: list[pb.Completion] = []
        self._wake = asyncio.Event()
        self._delivered = asyncio.Event()
        self._delivered.set()

    async def lease(self, room: int, drivers: Iterable[str]) -> list[pb.Lease]:
        """Up to `room` cells for `drivers`; waits for the first, or empty when there are none for long."""
        known = self._capabilities()
        request = pb.LeaseCellsRequest(
            executor_id=self._executor_id,
            max_cells=min(room, MAX_CELLS),
            wait=Duration(seconds=FIRST_POLL_S if known is None else LONG_POLL_S),
            drivers=sorted(drivers),
            capabilities=sorted(known or ()),
            incarnation=self.incarnation,
        )
        asked = time.monotonic()
        try:
            answer: pb.LeaseCellsResponse = await self._stub.LeaseCells(  # type: ignore[misc]
                request, timeout=LONG_POLL_S + CALL_TIMEOUT_S
            )
        except aio.AioRpcError as error:
            _log.warning("no cells could be leased: %s", wire.to_error(error).message)
            await asyncio.sleep(RETRY_S)
            return []
        if time.monotonic() - asked < GATHER_S:
            await asyncio.sleep(GATHER_S)
        return list(answer.leases)

    async def renew(self, refs: Callable[[], list[pb.LeaseRef]], told: Callable[[pb.RenewLeasesResponse], None]) -> None:
        """Renews the leases that `refs` gives once a second, until cancelled; what comes back goes to `told`."""
        while True:
            await asyncio.sleep(RENEW_S)
            held = refs()
            if not held:
                continue
            request = pb.RenewLeasesRequest(executor_id=self._executor_id, leases=held, incarnation=self.incarnation)
            try:
                answer: pb.RenewLeasesResponse = await self._stub.RenewLeases(  # type: ignore[misc]
                    request, timeout=CALL_TIMEOUT_S
                )
            except aio.AioRpcError as error:
                _log.warning("leases could not be renewed: %s", wire.to_error(error).message)
                continue
            told(answer)

    def complete(self, completion: pb.Completion) -> None:
        """Gives a cell back; sent together with others by `deliver`."""
        self._completions.append(completion)
        self._delivered.clear()
        self._wake.set()

    async def deliver(self) -> None:
        """Sends completions in batches until cancelled; each until the planner has taken it."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER_S if len(self._completions) > 1 else 0)
            self._wake.clear()
            batch, self._completions = self._completions[:MAX_CELLS], self._completions[MAX_CELLS:]
            request = pb.CompleteCellsRequest(executor_id=self._executor_id, completions=batch)
            try:
                await self._stub.CompleteCells(request, timeout=CALL_TIMEOUT_S)  # type: ignore[misc]
            except aio.AioRpcError as error:
                _log.warning("%d cells could not be given back yet: %s", len(batch), wire.to_error(error).message)
                self._completions = batch + self._completions
                await asyncio.sleep(RETRY_S)
            if self._completions:
                self._wake.set()
            else:
                self._delivered.set()

    async def delivered(self) -> None:
        """Waits until the planner has all completions."""
        await self._delivered.wait()
