"""The facts of a replay: copies of another run's outcomes and receipts, each naming what it is a copy of.

Copies are rows of their own run; the originals are only read. A copied call is `replayed`: it reserved nothing, it is not
in any run's spend, and its texts come from the evidence of the original.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, fill_value, object_of

from srbench_accounting import schema
from srbench_accounting.admission import MAX_CELL
from srbench_accounting.convert import call_id
from srbench_accounting.ledger_statements import LedgerStatements
from srbench_accounting.listing import CallWithEnd, Lists
from srbench_accounting.packing import pack, unpack
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.statements import Row
from srbench_accounting.vocabulary import JobWords, Vocabulary


class Replays:
    """Writes replays. `record` is the body of a writer's job and may be run twice."""

    def __init__(self, dialect: Dialect, vocabulary: Vocabulary, lists: Lists) -> None:
        self._statements = LedgerStatements(dialect)
        self._vocabulary = vocabulary
        self._lists = lists

    def record(
        self, connection: Connection, run: KnownRun, source: KnownRun, request: pb.RecordReplayRequest, now_us: int
    ) -> tuple[int, dict[str, int]]:
        """How many of the cells have their facts now, and the words that its transaction added.

        Raises: `InvalidInput` (`BAD_REPLAY`) before anything is written.
        """
        statements, words = self._statements, JobWords(self._vocabulary, connection)
        counters = statements.lock_run.rows(connection, run.run_no)[0]
        there = {int(row[1]) for row in statements.cell_outcomes.rows(connection, _cells(request), run.run_no)}
        wanted = [cell for cell in request.cells if cell.cell not in there]
        outcomes, calls = self._source(connection, source, wanted)
        job = _Copies(run, source, request.preview_run_id, words, call_count=counters[3], outcome_count=counters[4])
        for cell in wanted:
            job.add(_check(cell, run), outcomes.get(cell.source_cell), calls.get(cell.source_cell, ()), now_us)
        statements.add_call.run_many(connection, job.calls)
        statements.add_receipt.run_many(connection, job.receipts)
        statements.add_outcome.run_many(connection, job.outcomes)
        counts = (job.call_count, job.outcome_count, *counters[5:])
        statements.move_run.run(connection, *counts, run.run_no)
        return len(request.cells), words.new

    def _source(
        self, connection: Connection, source: KnownRun, wanted: Sequence[pb.ReplayedCell]
    ) -> tuple[dict[int, OutcomeRow], dict[int, list[CallWithEnd]]]:
        cells = sorted({cell.source_cell for cell in wanted})
        rows = self._statements.cell_outcomes.rows(connection, cells, source.run_no)
        outcomes = {row.cell: row for row in (OutcomeRow(*row) for row in rows)}
        return outcomes, self._lists.cell_calls(connection, source.run_no, cells)


class _Copies:
    """The rows of one request."""

    def __init__(
        self, run: KnownRun, source: KnownRun, preview_run_id: str, words: JobWords, *, call_count: int, outcome_count: int
    ) -> None:
        self._run, self._source, self._preview_run_id, self._words = run, source, preview_run_id, words
        self.call_count, self.outcome_count = call_count, outcome_count
        self.calls: list[Row] = []
        self.receipts: list[Row] = []
        self.outcomes: list[Row] = []

    def add(self, cell: pb.ReplayedCell, outcome: OutcomeRow | None, calls: Sequence[CallWithEnd], now_us: int) -> None:
        """Copies one cell. Raises: `InvalidInput` (`BAD_REPLAY`)."""
        ended = [(call, end) for call, end in calls if end is not None and end.status == pb.CALL_STATUS_COMPLETED]
        subject = [call for call, _ in ended if call.role == pb.CALL_ROLE_SUBJECT]
        if outcome is None or outcome.state != queue_pb.CELL_STATE_DONE or outcome.correct is None or len(subject) != 1:
            raise InvalidInput(
                "BAD_REPLAY",
                f"cell {cell.source_cell} of {self._source.run_id} holds no single graded answer that could be copied",
                cell=cell.source_cell,
            )
        for place, (call, end) in enumerate(ended):
            self._copy_call(cell, call, end, place)
        self.outcome_count += 1
        identifier = schema.row_id(self._run.run_no, self.outcome_count)
        self.outcomes.append((identifier, *self._outcome(cell, outcome, now_us)))

    def _copy_call(self, cell: pb.ReplayedCell, call: CallRow, end: ReceiptRow, place: int) -> None:
        self.call_count += 1
        identifier = schema.row_id(self._run.run_no, self.call_count)
        copied = call._replace(
            call_id=identifier,
            run_no=self._run.run_no,
            cell=cell.cell,
            ordinal=place,
            offer=0,
            token=0,
            case_index=cell.case_index,
            target_index=cell.target_index,
            reserved=None,
        )
        rest = unpack(pb.Receipt, end.rest)
        rest.source_run_id = self._source.run_id
        rest.source_call_id = call_id(self._source.run_id, call.cell, call.ordinal, call.offer)
        receipt = end._replace(status=pb.CALL_STATUS_REPLAYED, rest=pack(rest))
        if call.role == pb.CALL_ROLE_SUBJECT:
            receipt = receipt._replace(
                selected_model=self._words.number(cell.selected_model),
                decision=self._words.number(cell.decision),
                config_hash=self._words.number(cell.config_hash),
            )
        self.calls.append(copied)
        self.receipts.append((identifier, *receipt))

    def _outcome(self, cell: pb.ReplayedCell, outcome: OutcomeRow, now_us: int) -> OutcomeRow:
        rest = unpack(pb.CellOutcome, outcome.rest)
        source: dict[str, Json] = {
            "source_run_id": self._source.run_id,
            "source_target_id": self._source.context.targets[outcome.target_index].id,
            "preview_run_id": self._preview_run_id,
            "selected_model": cell.selected_model,
            "decision": cell.decision,
        }
        details = object_of(rest.details) | {"replay": source}
        rest.ClearField("details")
        fill_value(rest.details, details)
        # Nothing was waited for, so it has an end and no duration.
        return outcome._replace(
            run_no=self._run.run_no,
            cell=cell.cell,
            token=0,
            case_index=cell.case_index,
            target_index=cell.target_index,
            start_us=None,
            finish_after_us=now_us,
            rest=pack(rest),
        )


def _cells(request: pb.RecordReplayRequest) -> list[int]:
    return sorted({cell.cell for cell in request.cells})


def _check(cell: pb.ReplayedCell, run: KnownRun) -> pb.ReplayedCell:
    if not (0 <= cell.cell <= MAX_CELL and cell.case_index >= 0 and 0 <= cell.target_index < len(run.targets)):
        found = (cell.cell, cell.case_index, cell.target_index)
        raise InvalidInput("BAD_REPLAY", f"cell, case_index and target_index are {found}; expected those of the run's plan")
    return cell
