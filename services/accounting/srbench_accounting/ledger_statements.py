"""The ledger's statements, compiled once for the store's dialect."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting import schema
from srbench_accounting.rows import OUTCOME_COLUMNS, RECEIPT_COLUMNS
from srbench_accounting.settlements import Settlements
from srbench_accounting.statements import InStatement, Statement

RUN_MOVES = (
    "call_count",
    "outcome_count",
    "open_call_count",
    "unknown_cost_count",
    "spent",
    "open_reserved",
    "held_reserved",
)


class LedgerStatements:
    """Every statement that `ledger` runs. The run row is read for update: it is the lock of its run."""

    def __init__(self, dialect: Dialect) -> None:
        self.settlements = Settlements(dialect)
        self._of_runs(dialect)
        self._of_cells(dialect)
        self._of_receipts(dialect)
        self._writing(dialect)

    def _of_runs(self, dialect: Dialect) -> None:
        runs, bind = schema.runs, sa.bindparam
        columns = [runs.c[name] for name in ("max_cost", "max_calls_per_case", "halt_reason", *RUN_MOVES)]
        self.lock_run = Statement(sa.select(*columns).where(runs.c.run_no == bind("run_no_")).with_for_update(), dialect)
        self.move_run = Statement(
            sa.update(runs).values({name: bind(f"{name}_") for name in RUN_MOVES}).where(runs.c.run_no == bind("run_no_")),
            dialect,
        )
        self.halt_run = Statement(
            sa.update(runs)
            .values(halt_reason=bind("reason_"))
            .where(runs.c.run_no == bind("run_no_"), runs.c.halt_reason == sa.literal_column("''")),
            dialect,
        )

    def _of_cells(self, dialect: Dialect) -> None:
        calls, receipts, outcomes, bind = schema.calls, schema.receipts, schema.outcomes, sa.bindparam
        view = [
            calls.c[name]
            for name in (
                *("cell", "call_id", "ordinal", "offer", "token", "target_index", "auxiliary", "reserved", "dispatch_us"),
            )
        ]
        self.cell_calls = InStatement(
            lambda items: (
                sa.select(*view, receipts.c.status)
                .select_from(calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id))
                .where(calls.c.run_no == bind("run_no_"), calls.c.cell.in_(items))
            ),
            dialect,
        )
        self.cell_fences = InStatement(
            lambda items: sa.select(schema.fences.c.cell, schema.fences.c.token).where(
                schema.fences.c.run_no == bind("run_no_"), schema.fences.c.cell.in_(items)
            ),
            dialect,
        )
        self.cell_outcomes = InStatement(
            lambda items: sa.select(*[outcomes.c[name] for name in OUTCOME_COLUMNS]).where(
                outcomes.c.run_no == bind("run_no_"), outcomes.c.cell.in_(items)
            ),
            dialect,
        )

    def _of_receipts(self, dialect: Dialect) -> None:
        receipts, bind = schema.receipts, sa.bindparam
        self.receipt = Statement(
            sa.select(*[receipts.c[name] for name in RECEIPT_COLUMNS]).where(receipts.c.call_id == bind("call_id_")),
            dialect,
        )
        self.receipts_apart = Statement(
            sa.select(*[schema.receipts_apart.c[name] for name in RECEIPT_COLUMNS]).where(
                schema.receipts_apart.c.call_id == bind("call_id_")
            ),
            dialect,
        )
        self.outcomes_apart = Statement(
            sa.select(*[schema.outcomes_apart.c[name] for name in OUTCOME_COLUMNS]).where(
                schema.outcomes_apart.c.run_no == bind("run_no_"), schema.outcomes_apart.c.cell == bind("cell_")
            ),
            dialect,
        )

    def _writing(self, dialect: Dialect) -> None:
        calls, receipts, outcomes, bind = schema.calls, schema.receipts, schema.outcomes, sa.bindparam
        self.add_call = _insert(calls, tuple(calls.c.keys()), dialect)
        self.open_call = _insert(schema.open_calls, ("call_id",), dialect)
        self.close_call = Statement(
            sa.delete(schema.open_calls).where(schema.open_calls.c.call_id == bind("call_id_")), dialect
        )
        self.add_receipt = _insert(receipts, ("call_id", *RECEIPT_COLUMNS), dialect)
        self.drop_receipt = Statement(sa.delete(receipts).where(receipts.c.call_id == bind("call_id_")), dialect)
        self.add_receipt_apart = _insert(schema.receipts_apart, ("call_id", *RECEIPT_COLUMNS), dialect)
        self.add_outcome = _insert(outcomes, ("outcome_id", *OUTCOME_COLUMNS), dialect)
        self.add_outcome_apart = _insert(schema.outcomes_apart, OUTCOME_COLUMNS, dialect)
        self._drop_fence = Statement(
            sa.delete(schema.fences).where(
                schema.fences.c.run_no == bind("run_no_"), schema.fences.c.cell == bind("cell_")
            ),
            dialect,
        )
        self._add_fence = _insert(schema.fences, ("run_no", "cell", "token"), dialect)

    def set_fences(self, connection: Connection, run_no: int, fences: dict[int, int]) -> None:
        """Writes the fences of cells, in place of those they had."""
        self._drop_fence.run_many(connection, [(run_no, cell) for cell in fences])
        self._add_fence.run_many(connection, [(run_no, cell, token) for cell, token in fences.items()])


def _insert(table: sa.Table, names: tuple[str, ...], dialect: Dialect) -> Statement:
    return Statement(sa.insert(table).values({name: sa.bindparam(name) for name in names}), dialect)
