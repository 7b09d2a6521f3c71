"""The whole ledger of a run as messages, in a fixed order: for bundles, which derive every number from it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb

from srbench_accounting import ledger_messages as messages
from srbench_accounting.convert import call_words
from srbench_accounting.evidence import CHUNK_BYTES
from srbench_accounting.ledger_reader import LedgerReader
from srbench_accounting.rows import OutcomeRow, ReceiptRow, Stored
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.schema import sequence_of
from srbench_accounting.store import Store

EVIDENCE_BATCH_BYTES = 1024 * 1024
Response = ledger_pb.StreamLedgerResponse


class LedgerExport:
    """Reads the ledger of one run from its beginning to its end."""

    def __init__(self, store: Store, run: KnownRun) -> None:
        self._store = store
        self._run = run
        self._reader = LedgerReader(store.engine.dialect)
        self._receipts: dict[bytes, ReceiptRow] = {}

    async def stream(self, *, evidence: bool) -> AsyncIterator[Response]:
        """Calls, then outcomes, then the evidence when wanted. Raises: `DataLoss` (`EVIDENCE_DAMAGED`)."""
        async for response in self._calls():
            yield response
        async for response in self._outcomes():
            yield response
        if evidence:
            async for response in self._evidence():
                yield response

    async def _calls(self) -> AsyncIterator[Response]:
        read, run_no = self._store.reader.run, self._run.run_no
        apart = await read(lambda connection: self._reader.apart(connection, run_no))
        settlements = await read(lambda connection: self._store.settlements.of_run(connection, run_no))
        place = 0
        while calls := await read(partial(self._call_batch, place=place, apart=apart, settlements=settlements)):
            yield Response(calls=calls)
            place = calls[-1].sequence

    def _call_batch(
        self,
        connection: Connection,
        place: int,
        apart: dict[int, list[ReceiptRow]],
        settlements: dict[int, list[pb.CallSettlement]],
    ) -> list[ledger_pb.LedgerCall]:
        found: list[ledger_pb.LedgerCall] = []
        for row, end in self._reader.calls(connection, self._run.run_no, place):
            sequence = sequence_of(row.call_id)
            late = apart.get(sequence, [])
            receipts = [*late, *([end] if end is not None else [])]
            self._receipts.update({one.evidence_sha256: one for one in receipts if one.evidence_sha256 is not None})
            numbers = {number for one in receipts for number in call_words(row, one)} | {row.auxiliary, row.executor}
            words = self._store.vocabulary.words(connection, numbers)
            message = messages.call(row, end, late, self._run.run_id, words)
            message.settlements.extend(settlements.get(sequence, ()))
            found.append(message)
        return found

    async def _outcomes(self) -> AsyncIterator[Response]:
        read, place = self._store.reader.run, 0
        while outcomes := await read(partial(self._outcome_batch, place=place)):
            yield Response(outcomes=outcomes)
            place = outcomes[-1].sequence
        apart = await read(self._outcomes_apart)
        if apart:
            yield Response(outcomes=apart)

    def _outcome_batch(self, connection: Connection, place: int) -> list[ledger_pb.LedgerOutcome]:
        return self._messages(connection, self._reader.outcomes(connection, self._run.run_no, place))

    def _outcomes_apart(self, connection: Connection) -> list[ledger_pb.LedgerOutcome]:
        return self._messages(connection, [(0, row) for row in self._reader.outcomes_apart(connection, self._run.run_no)])

    def _messages(self, connection: Connection, rows: Sequence[tuple[int, OutcomeRow]]) -> list[ledger_pb.LedgerOutcome]:
        numbers = {number for _, row in rows for number in (row.reason, row.answer_status, row.grader_version)}
        words = self._store.vocabulary.words(connection, numbers)
        return [messages.outcome(place, row, self._run.run_id, words) for place, row in rows]

    async def _evidence(self) -> AsyncIterator[Response]:
        """Each evidence once, in the order of the digests."""
        parts: list[ledger_pb.LedgerEvidence] = []
        size = 0
        for stored in await self._store.reader.run(self._places):
            for part in _parts(stored.sha256.hex(), await self._store.reads.data(stored)):
                parts.append(part)
                size += len(part.data)
                if size >= EVIDENCE_BATCH_BYTES:
                    yield Response(evidence=parts)
                    parts, size = [], 0
        if parts:
            yield Response(evidence=parts)

    def _places(self, connection: Connection) -> list[Stored]:
        found = [self._store.known_calls.stored(connection, self._receipts[digest]) for digest in sorted(self._receipts)]
        assert None not in found, "a receipt with a digest has evidence"
        return [stored for stored in found if stored is not None]


def _parts(sha256: str, data: bytes) -> Iterator[ledger_pb.LedgerEvidence]:
    for offset in range(0, len(data), CHUNK_BYTES):
        part = data[offset : offset + CHUNK_BYTES]
        yield ledger_pb.LedgerEvidence(sha256=sha256, offset=offset, byte_count=len(data), data=part)
