"""The parts of the service around one store, put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection, Dialect, Engine
from srbench_kit import db

from srbench_accounting.activity import ActivityBoard
from srbench_accounting.corrections import Corrections
from srbench_accounting.derived import Deriving
from srbench_accounting.evidence import EvidenceStore
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
from srbench_accounting.vocabulary import Vocabulary

if TYPE_CHECKING:
    from srbench_accounting.columns import CallColumns, OutcomeColumns
    from srbench_accounting.loading import ColumnLoader


class LazyLoader:
    """The loader of columns, made for the first report: NumPy takes longer to import than the service may take to start."""

    def __init__(self, dialect: Dialect, vocabulary: Vocabulary, corrections: Corrections) -> None:
        self._parts = dialect, vocabulary, corrections
        self._made: ColumnLoader | None = None

    def load(self, connection: Connection, run_no: int, eligible_s: float) -> tuple[OutcomeColumns, CallColumns]:
        """See `loading.ColumnLoader.load`."""
        if self._made is None:
            from srbench_accounting.loading import ColumnLoader

            self._made = ColumnLoader(*self._parts)
        return self._made.load(connection, run_no, eligible_s)


@dataclass(frozen=True, slots=True)
class Store:
    """Tables and evidence of one store, with everything that reads and writes them."""

    engine: Engine
    writer: db.GroupWriter
    reader: db.Reader
    vocabulary: Vocabulary
    evidence: EvidenceStore
    ledger: Ledger
    registry: RunRegistry
    lists: Lists
    ranks: LazyRanks
    loader: LazyLoader
    known_calls: KnownCalls
    recorder: Recorder
    board: ActivityBoard
    deriving: Deriving
    settlements: Settlements
    settling: Settling
    replays: Replays
    corrections: Corrections

    def close(self) -> None:
        """Commits what waits, syncs and closes."""
        self.writer.close()
        self.evidence.close()
        self.engine.dispose()


def open_store(folder: Path, database_url: str, planner: Planner, deriving: Deriving) -> Store:
    """Opens the store in `folder`, bringing its tables up to date. Segments lie in `{folder}/segments`."""
    engine = db.create_engine(database_url)
    db.upgrade(engine, "srbench_accounting", HEAD, metadata)
    evidence = EvidenceStore(folder / "segments")
    writer, reader = db.GroupWriter(engine, before_commit=evidence.sync), db.Reader(engine)
    vocabulary = Vocabulary(engine.dialect)
    lists = Lists(engine.dialect)
    settlements = Settlements(engine.dialect)
    corrections = Corrections(engine.dialect)
    ledger = Ledger(engine.dialect, vocabulary, evidence)
    known_calls = KnownCalls(reader, lists, vocabulary, evidence)
    return Store(
        engine=engine,
        writer=writer,
        reader=reader,
        vocabulary=vocabulary,
        evidence=evidence,
        ledger=ledger,
        registry=RunRegistry(engine, writer, reader, planner, deriving),
        lists=lists,
        ranks=LazyRanks(engine.dialect, vocabulary),
        loader=LazyLoader(engine.dialect, vocabulary, corrections),
        known_calls=known_calls,
        recorder=Recorder(writer, ledger, vocabulary, known_calls),
        board=ActivityBoard(),
        deriving=deriving,
        settlements=settlements,
        settling=Settling(LedgerStatements(engine.dialect), lists, settlements, vocabulary),
        replays=Replays(engine.dialect, vocabulary, lists),
        corrections=corrections,
    )
