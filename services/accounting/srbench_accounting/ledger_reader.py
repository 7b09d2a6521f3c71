"""Every row of a run's ledger, read in batches."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting import schema
from srbench_accounting.rows import OUTCOME_COLUMNS, RECEIPT_COLUMNS, CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import Statement

BATCH = 500


class LedgerReader:
    """Reads a run's rows in batches. Safe in any thread."""

    def __init__(self, dialect: Dialect) -> None:
        calls, receipts, apart = schema.calls, schema.receipts, schema.receipts_apart
        outcomes, outcomes_apart, bind = schema.outcomes, schema.outcomes_apart, sa.bindparam
        joined = calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id)
        self._calls = Statement(
            sa.select(*calls.c, *[receipts.c[name] for name in RECEIPT_COLUMNS])
            .select_from(joined)
            .where(calls.c.call_id.between(bind("first"), bind("last")))
            .order_by(calls.c.call_id),
            dialect,
        )
        self._apart = Statement(
            sa.select(apart.c.call_id, *[apart.c[name] for name in RECEIPT_COLUMNS])
            .where(apart.c.call_id.between(bind("first"), bind("last")))
            .order_by(apart.c.apart_id),
            dialect,
        )
        self._outcomes = Statement(
            sa.select(outcomes.c.outcome_id, *[outcomes.c[name] for name in OUTCOME_COLUMNS])
            .where(outcomes.c.outcome_id.between(bind("first"), bind("last")))
            .order_by(outcomes.c.outcome_id),
            dialect,
        )
        self._outcomes_apart = Statement(
            sa.select(*[outcomes_apart.c[name] for name in OUTCOME_COLUMNS])
            .where(outcomes_apart.c.run_no == bind("run_no_"))
            .order_by(outcomes_apart.c.apart_id),
            dialect,
        )

    def calls(self, connection: Connection, run_no: int, after: int) -> list[tuple[CallRow, ReceiptRow | None]]:
        """The next calls after place `after`, each with its receipt in force."""
        rows = self._calls.rows(connection, row_id(run_no, after + 1), row_id(run_no, after + BATCH))
        width = len(schema.calls.c)
        return [(CallRow(*row[:width]), ReceiptRow(*row[width:]) if row[width] is not None else None) for row in rows]

    def apart(self, connection: Connection, run_no: int) -> dict[int, list[ReceiptRow]]:
        """The receipts that are not in force, by place of the call."""
        found: dict[int, list[ReceiptRow]] = {}
        for call_id, *row in self._apart.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1):
            found.setdefault(sequence_of(call_id), []).append(ReceiptRow(*row))
        return found

    def outcomes(self, connection: Connection, run_no: int, after: int) -> list[tuple[int, OutcomeRow]]:
        """The next outcomes after place `after`."""
        rows = self._outcomes.rows(connection, row_id(run_no, after + 1), row_id(run_no, after + BATCH))
        return [(sequence_of(identifier), OutcomeRow(*row)) for identifier, *row in rows]

    def outcomes_apart(self, connection: Connection, run_no: int) -> list[OutcomeRow]:
        """Outcomes that are not in force."""
        return [OutcomeRow(*row) for row in self._outcomes_apart.rows(connection, run_no)]
