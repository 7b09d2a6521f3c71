"""Receipts that accounting had no room for: told again until it has, so that no call stays open longer than need be."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from srbench.v1 import accounting_service_pb2 as pb

from srbench_executor.facts import FactStream

PAUSE_S = 5.0
FULL = "STORAGE_FULL"
_log = logging.getLogger(__name__)


class Retelling:
    """What is still to be told, in memory; the spool has it, too, for the next start. It is not much: while accounting's
    disk is full it lets no call go out."""

    def __init__(self, facts: FactStream) -> None:
        self._facts = facts
        self._waiting: deque[tuple[list[pb.Fact], Callable[[], None]]] = deque()
        self._some = asyncio.Event()

    def keep(self, facts: list[pb.Fact], told: Callable[[], None]) -> None:
        """Tells `facts` later; `told` is called when accounting has them."""
        self._waiting.append((facts, told))
        self._some.set()

    async def run(self) -> None:
        """Tells what waits, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(PAUSE_S)
            await self._tell()

    async def _tell(self) -> None:
        while self._waiting:
            facts, told = self._waiting[0]
            ack = await self._facts.record(facts)
            if ack.reason == FULL:
                return
            self._waiting.popleft()
            if ack.reason:
                _log.error("accounting refused a receipt that had waited for room: %s (%s)", ack.message, ack.reason)
            else:
                _log.info("a receipt that had waited for room is on record")
                told()
        self._some.clear()
