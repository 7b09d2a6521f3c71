"""What this executor's grader has, asked now and then: cells that need more are not leased here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from grpc import aio
from srbench.v1 import grader_service_pb2 as pb
from srbench.v1.grader_service_pb2_grpc import GraderServiceStub
from srbench_kit import wire

ASK_S = 10.0
RETRY_S = 0.5
# A look starts a program in a sandbox, on a machine that may be busy.
RPC_TIMEOUT_S = 60.0
# Plain cells need no such thing, so they do not wait long for a grader that is not there yet.
FIRST_WAIT_S = 2.0
_log = logging.getLogger(__name__)


class Capabilities:
    """The grader's capabilities as it told them last; `names` is `None` before that."""

    def __init__(self, stub: GraderServiceStub) -> None:
        self._stub = stub
        self.names: Sequence[str] | None = None
        self._heard = asyncio.Event()

    async def first_look(self) -> None:
        """Waits for the first answer, for a moment."""
        try:
            await asyncio.wait_for(self._heard.wait(), FIRST_WAIT_S)
        except TimeoutError:
            _log.warning("the grader has not said yet what it has; cells that need a sandbox wait for that")

    async def run(self) -> None:
        """Asks until cancelled."""
        while True:
            try:
                request = pb.GetCapabilitiesRequest()
                answer: pb.GraderCapabilities = await self._stub.GetCapabilities(  # type: ignore[misc]
                    request, timeout=RPC_TIMEOUT_S
                )
            except aio.AioRpcError as error:
                _log.warning("the grader did not say what it has: %s", wire.to_error(error).message)
                await asyncio.sleep(RETRY_S)
                continue
            self.names = tuple(answer.names)
            self._heard.set()
            await asyncio.sleep(ASK_S)
