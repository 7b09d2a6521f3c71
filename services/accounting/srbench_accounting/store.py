"""The parts of the service around one store, put together."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection, Engine
from srbench_kit import db, settings
from srbench_kit.depot import PREFIX, Depot
from srbench_kit.errors import SrBenchError

from srbench_accounting.activity import ActivityBoard
from srbench_accounting.corrections import Corrections
from srbench_accounting.derived import Deriving
from srbench_accounting.evidence import EvidenceStore
from srbench_accounting.evidence_reads import EvidenceReads
from srbench_accounting.known_calls import KnownCalls
from srbench_accounting.ledger import Ledger
from srbench_accounting.ledger_statements import LedgerStatements
from srbench_accounting.listing import Lists
from srbench_accounting.ranking import LazyRanks
from srbench_accounting.recording import Recorder
from srbench_accounting.replaying import Replays
from srbench_accounting.run_facts import Planner, RunRegistry
from srbench_accounting.schema import HEAD, metadata
from srbench_accounting.settlements import Settlements
from srbench_accounting.settling import Settling
from srbench_accounting.shared_activity import Activities
from srbench_accounting.vocabulary import Vocabulary

if TYPE_CHECKING:
    from srbench_accounting.columns import CallColumns, OutcomeColumns
    from srbench_accounting.loading import ColumnLoader

SEAL_LOOK_S = 5.0
COLUMNS = "columns"
_log = logging.getLogger(__name__)


class LazyLoader:
    """The loader of columns, made for the first report: NumPy takes longer to import than the service may take to start."""

    def __init__(
        self, ranks: LazyRanks, vocabulary: Vocabulary, corrections: Corrections, settlements: Settlements
    ) -> None:
        self._ranks, self._parts = ranks, (vocabulary, corrections, settlements)
        self._made: ColumnLoader | None = None

    def load(self, connection: Connection, run_no: int, eligible_s: float) -> tuple[OutcomeColumns, CallColumns]:
        """See `loading.ColumnLoader.load`."""
        if self._made is None:
            from srbench_accounting.loading import ColumnLoader

            self._made = ColumnLoader(self._ranks.outcomes.kept, self._ranks.calls.kept, *self._parts)
        return self._made.load(connection, run_no, eligible_s)


@dataclass(frozen=True, slots=True)
class Store:
    """Tables and evidence of one store, with everything that reads and writes them."""

    engine: Engine
    writer: db.GroupWriter
    reader: db.Reader
    vocabulary: Vocabulary
    evidence: EvidenceStore
    reads: EvidenceReads
    ledger: Ledger
    registry: RunRegistry
    lists: Lists
    ranks: LazyRanks
    loader: LazyLoader
    known_calls: KnownCalls
    recorder: Recorder
    board: ActivityBoard
    activities: Activities
    deriving: Deriving
    settlements: Settlements
    settling: Settling
    replays: Replays
    corrections: Corrections

    async def seal_for_ever(self, age_s: float) -> None:
        """Seals segments that grow old, so that evidence reaches the object store in quiet times, too."""
        while True:
            await asyncio.sleep(min(age_s, SEAL_LOOK_S))
            try:
                await self.writer.run(lambda _connection: self.evidence.seal_old(age_s))
            except SrBenchError as error:
                _log.warning("an old segment could not be sealed: %s", error)

    def close(self) -> None:
        """Commits what waits, syncs and closes."""
        self.writer.close()
        self.reads.close()
        self.evidence.close()
        self.engine.dispose()


def open_store(folder: Path, database_url: str, planner: Planner, deriving: Deriving, objects_url: str = "") -> Store:
    """Opens the store in `folder`, bringing its tables up to date. Segments are written in `{folder}/segments`, and sealed
    ones are carried to `objects_url` when it names another place."""
    engine = db.create_engine(database_url, settings.database_schema("accounting"))
    db.upgrade(engine, "srbench_accounting", HEAD, metadata)
    segments = folder / PREFIX
    depot = Depot(segments, objects_url) if objects_url not in ("", str(folder)) else None
    evidence = EvidenceStore(segments, depot)
    writer, reader = db.GroupWriter(engine, before_commit=evidence.sync), db.Reader(engine)
    vocabulary = Vocabulary(engine.dialect)
    lists, ranks = Lists(engine.dialect), LazyRanks(engine.dialect, vocabulary, folder / COLUMNS)
    settlements = Settlements(engine.dialect)
    corrections = Corrections(engine.dialect)
    ledger = Ledger(engine.dialect, vocabulary, evidence)
    reads, board = EvidenceReads(evidence), ActivityBoard()
    known_calls = KnownCalls(reader, lists, vocabulary, reads)
    return Store(
        engine=engine,
        writer=writer,
        reader=reader,
        vocabulary=vocabulary,
        evidence=evidence,
        reads=reads,
        ledger=ledger,
        registry=RunRegistry(engine, writer, reader, planner, deriving),
        lists=lists,
        ranks=ranks,
        loader=LazyLoader(ranks, vocabulary, corrections, settlements),
        known_calls=known_calls,
        recorder=Recorder(writer, ledger, vocabulary, known_calls, served=engine.dialect.name != "sqlite"),
        board=board,
        activities=Activities(engine.dialect, board),
        deriving=deriving,
        settlements=settlements,
        settling=Settling(LedgerStatements(engine.dialect), lists, settlements, vocabulary),
        replays=Replays(engine.dialect, vocabulary, lists),
        corrections=corrections,
    )
