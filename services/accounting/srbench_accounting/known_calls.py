"""How a call stands that the ledger already holds, for whoever goes on with its cell."""

from __future__ import annotations

import asyncio
import time

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.db import Reader
from srbench_kit.errors import DataLoss, Unreachable

from srbench_accounting.convert import call_words
from srbench_accounting.evidence_reads import EvidenceReads
from srbench_accounting.ledger import Item
from srbench_accounting.listing import Lists
from srbench_accounting.rows import ReceiptRow, Stored, receipt_of
from srbench_accounting.vocabulary import Vocabulary

STORE_PATIENCE_S = 120.0
STORE_PAUSE_S = 1.0


class KnownCalls:
    """Reads calls again, with their final text from the evidence."""

    def __init__(self, reader: Reader, lists: Lists, vocabulary: Vocabulary, reads: EvidenceReads) -> None:
        self._reader = reader
        self._lists = lists
        self._vocabulary = vocabulary
        self._reads = reads

    async def fill(self, ack: pb.FactAck, item: Item) -> None:
        """Adds the known call to a refused dispatch. Damaged evidence changes the reason: there is no text to grade, and
        an empty one would count as a wrong answer."""
        try:
            known = await self._patiently(item)
        except (DataLoss, Unreachable) as error:
            ack.reason, ack.message = error.reason, error.message
            return
        ack.known_call.CopyFrom(known)

    async def _patiently(self, item: Item) -> pb.KnownCall:
        """The known call, waiting for an object store that is away: the answer was paid for and must not count as lost."""
        give_up_at = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                known, stored = await self._reader.run(lambda connection: self._known(connection, item))
                if stored is not None:
                    known.final_text = (await self._reads.answer(stored)).text
                return known
            except Unreachable:
                if time.monotonic() > give_up_at:
                    raise
            await asyncio.sleep(STORE_PAUSE_S)

    def _known(self, connection: Connection, item: Item) -> tuple[pb.KnownCall, Stored | None]:
        """The call, and where its answer lies."""
        key = item.fact.dispatch.key
        found = self._lists.call(connection, item.run.run_no, key.cell, key.ordinal, key.offer)
        row, end = found if found is not None else (None, None)
        if row is None or end is None:
            return pb.KnownCall(status=pb.CALL_STATUS_SENT), None
        words = self._vocabulary.words(connection, call_words(row, end))
        receipt = receipt_of(end, dispatch_us=row.dispatch_us, words=words)
        return pb.KnownCall(status=receipt.status, receipt=receipt), self.stored(connection, end)

    def stored(self, connection: Connection, end: ReceiptRow) -> Stored | None:
        """Where a receipt's evidence lies; `None` when it has none."""
        if end.segment is None or end.evidence_sha256 is None:
            return None
        segment = self._vocabulary.words(connection, [end.segment])[end.segment]
        return Stored(segment, end.evidence_offset or 0, end.evidence_byte_count or 0, end.evidence_sha256)
