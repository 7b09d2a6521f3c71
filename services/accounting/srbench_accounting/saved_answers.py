"""Saved answers of a completed run, cell by cell, for grading them again and for exporting them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import value_pb2
from srbench_kit.errors import Conflict, InvalidInput

from srbench_accounting.listing import Start
from srbench_accounting.packing import unpack
from srbench_accounting.rows import OutcomeRow, ReceiptRow, Stored
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.store import Store

BATCH = 500


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """One cell's outcome and the subject's calls behind it, `None` for a call without an end."""

    row: OutcomeRow
    calls: tuple[ReceiptRow | None, ...]

    @property
    def completed(self) -> list[ReceiptRow]:
        """The calls that completed."""
        return [end for end in self.calls if end is not None and end.status == pb.CALL_STATUS_COMPLETED]

    @property
    def answer(self) -> value_pb2.Value:
        """What was extracted from the answer."""
        return unpack(pb.CellOutcome, self.row.rest).answer


def check_completed(run: planner_pb.Run, what: str) -> None:
    """Raises: `InvalidInput` (`NOT_LIVE`), `Conflict` (`NOT_COMPLETED`) unless `run` is a live run that completed."""
    if run.plan.mode not in ("", "live"):
        raise InvalidInput("NOT_LIVE", f"run {run.id} is a {run.plan.mode}; only live runs can be {what}", run_id=run.id)
    if run.status != "completed":
        sentence = f"run {run.id} is {run.status}; only completed runs can be {what}"
        raise Conflict("NOT_COMPLETED", sentence, run_id=run.id, status=run.status)


def read_batch(store: Store, connection: Connection, run: KnownRun, after: int, size: int = BATCH) -> list[SavedAnswer]:
    """The saved answers after place `after` in the order of recording; fewer than `size` at the end."""
    page = store.lists.outcome_page(connection, run.run_no, Start(after), size)
    rows = [row for _, row in store.lists.outcomes(connection, page.ids)]
    ends = store.lists.subject_receipts(connection, run.run_no, [row.cell for row in rows])
    return [SavedAnswer(row, tuple(ends.get(row.cell, ()))) for row in rows]


def place_of(store: Store, connection: Connection, end: ReceiptRow | None) -> Stored | None:
    """Where the answer of a call lies; `None` when there is none."""
    return None if end is None else store.known_calls.stored(connection, end)
