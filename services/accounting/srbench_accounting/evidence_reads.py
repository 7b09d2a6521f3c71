"""Readings of evidence, in threads of their own and without a connection to the database: evidence may lie in an object
store that takes its time, and neither the ledger nor its pages wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from srbench_kit.completion import Completion

from srbench_accounting import answers
from srbench_accounting.evidence import EvidenceStore
from srbench_accounting.rows import Stored

T = TypeVar("T")
# Readings that wait for the store at the same time; the others wait for them.
READINGS = 8


class EvidenceReads:
    """Reads evidence for everybody who wants some."""

    def __init__(self, evidence: EvidenceStore) -> None:
        self._evidence = evidence
        self._threads = ThreadPoolExecutor(READINGS, thread_name_prefix="evidence")

    async def run(self, work: Callable[[], T]) -> T:
        """Runs `work`, which reads evidence and asks no database. Raises: what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def data(self, stored: Stored) -> bytes:
        """The compressed evidence. Raises: `DataLoss` (`EVIDENCE_DAMAGED`), `Unreachable` (`OBJECT_STORE_UNAVAILABLE`)."""
        return await self.run(lambda: self._evidence.read(stored))

    async def answer(self, stored: Stored) -> Completion:
        """What a model answered, read from its stream. Raises: as `data`."""
        return await self.run(lambda: answers.read(self._evidence.open(stored)))

    async def texts(self, wanted: list[Stored]) -> list[str]:
        """The final texts of some answers, in order. Raises: as `data`."""
        return await self.run(lambda: [answers.read(self._evidence.open(stored)).text for stored in wanted])

    def close(self) -> None:
        """Takes no more; what is under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
