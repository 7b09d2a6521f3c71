"""The ledger: applies batches of facts to the tables inside one transaction. Runs on the writer's thread only.

A batch is applied in memory against what the tables hold of its cells, then written with one statement a table; what it
holds between is thrown away, so that nothing of a transaction that is rolled back stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting.admission import Refusal
from srbench_accounting.evidence import EvidenceStore, Pending
from srbench_accounting.ledger_statements import LedgerStatements
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.run_job import RunJob
from srbench_accounting.vocabulary import JobWords, Vocabulary


@dataclass(slots=True)
class Item:
    """One fact with what it needs: its run, and for a settlement its evidence or why there is none."""

    fact: pb.Fact
    run: KnownRun
    evidence: Pending | Refusal | None = None


@dataclass(slots=True)
class Recorded:
    """What became of a batch: an acknowledgement a fact, and the words that its transaction added."""

    acks: list[pb.FactAck] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)


class Ledger:
    """Records facts, fences and halts. Every method is the body of a writer's job and may be run twice."""

    def __init__(self, dialect: Dialect, vocabulary: Vocabulary, evidence: EvidenceStore) -> None:
        self._statements = LedgerStatements(dialect)
        self._vocabulary = vocabulary
        self._evidence = evidence

    def record(self, connection: Connection, items: Sequence[Item]) -> Recorded:
        """Applies facts in order; each is acknowledged by itself. Raises: `OSError` when the evidence cannot be written."""
        words = JobWords(self._vocabulary, connection)
        kinds = [item.fact.WhichOneof("fact") for item in items]
        jobs = self._open(connection, items, kinds, words)
        recorded = Recorded(words=words.new)
        for item, kind in zip(items, kinds, strict=True):
            refusal = _apply(jobs[item.run.run_no], item, kind)
            ack = pb.FactAck(sequence=item.fact.sequence)
            if refusal is not None:
                ack.reason, ack.message = refusal.reason, refusal.message
            recorded.acks.append(ack)
        self._evidence.flush()
        for job in jobs.values():
            job.write()
        return recorded

    def fence(
        self, connection: Connection, run: KnownRun, request: pb.FenceCellsRequest
    ) -> tuple[Recorded, list[pb.CellFacts]]:
        """Raises tokens, ends what is open unless told otherwise, and says what is known of each cell."""
        words = JobWords(self._vocabulary, connection)
        job = RunJob(connection, self._statements, run, words, self._evidence, {fence.cell for fence in request.fences})
        facts = [job.fence(fence, keep_open=request.keep_open) for fence in request.fences]
        job.write()
        return Recorded(words=words.new), facts

    def halt(self, connection: Connection, run: KnownRun, reason: str) -> None:
        """Refuses every later dispatch of the run; the first reason stays."""
        self._statements.halt_run.run(connection, reason, run.run_no)

    def _open(
        self, connection: Connection, items: Sequence[Item], kinds: Sequence[str | None], words: JobWords
    ) -> dict[int, RunJob]:
        """The runs of `items` by their number, with what the tables hold of the cells in question."""
        cells: dict[int, set[int]] = {}
        runs: dict[int, KnownRun] = {}
        for item, kind in zip(items, kinds, strict=True):
            run_no = item.run.run_no
            if run_no not in runs:
                runs[run_no], cells[run_no] = item.run, set()
            cells[run_no].add(_cell(item.fact, kind))
        # In one order everywhere, so that two processes never wait for each other's run rows.
        return {
            run_no: RunJob(connection, self._statements, runs[run_no], words, self._evidence, cells[run_no])
            for run_no in sorted(runs)
        }


def _cell(fact: pb.Fact, kind: str | None) -> int:
    if kind == "outcome":
        return fact.outcome.cell
    return fact.dispatch.key.cell if kind == "dispatch" else fact.settle.key.cell


def _apply(job: RunJob, item: Item, kind: str | None) -> Refusal | None:
    match kind:
        case "dispatch":
            return job.dispatch(item.fact.dispatch)
        case "settle":
            return job.settle(item.fact.settle, item.evidence)
        case "outcome":
            return job.outcome(item.fact.outcome)
    return Refusal("BAD_FACT", "the fact is none of dispatch, settle and outcome")
