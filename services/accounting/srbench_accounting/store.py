"""The parts of the service around one store, put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import Engine
from srbench_kit import db

from srbench_accounting.activity import ActivityBoard
from srbench_accounting.corrections import Corrections
from srbench_accounting.derived import Deriving
from srbench_accounting.evidence import EvidenceStore
from srbench_accounting.known_calls import KnownCalls
from srbench_accounting.ledger import Ledger
from srbench_accounting.listing import Lists
from srbench_accounting.loading import ColumnLoader
from srbench_accounting.ranking import RankedList, call_ranks, outcome_ranks
from srbench_accounting.recording import Recorder
from srbench_accounting.run_facts import Planner, RunRegistry
from srbench_accounting.schema import HEAD
from srbench_accounting.vocabulary import Vocabulary


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
    ranked_outcomes: RankedList
    ranked_calls: RankedList
    loader: ColumnLoader
    known_calls: KnownCalls
    recorder: Recorder
    board: ActivityBoard
    deriving: Deriving
    corrections: Corrections

    def close(self) -> None:
        """Commits what waits, syncs and closes."""
        self.writer.close()
        self.evidence.close()
        self.engine.dispose()


def open_store(folder: Path, database_url: str, planner: Planner, deriving: Deriving) -> Store:
    """Opens the store in `folder`, bringing its tables up to date. Segments lie in `{folder}/segments`."""
    engine = db.create_engine(database_url)
    db.upgrade(engine, "srbench_accounting", HEAD)
    evidence = EvidenceStore(folder / "segments")
    writer, reader = db.GroupWriter(engine, before_commit=evidence.sync), db.Reader(engine)
    vocabulary = Vocabulary(engine.dialect)
    lists = Lists(engine.dialect)
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
        ranked_outcomes=outcome_ranks(engine.dialect, vocabulary),
        ranked_calls=call_ranks(engine.dialect, vocabulary),
        loader=ColumnLoader(engine.dialect, vocabulary, corrections),
        known_calls=known_calls,
        recorder=Recorder(writer, ledger, vocabulary, known_calls),
        board=ActivityBoard(),
        deriving=deriving,
        corrections=corrections,
    )
