"""The settlements in the tables: read and appended."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import Statement


class Settlements:
    """Reads and adds settlements. Safe in any thread."""

    def __init__(self, dialect: Dialect) -> None:
        table, bind = schema.settlements, sa.bindparam
        self._of_call = Statement(
            sa.select(table.c.data).where(table.c.call_id == bind("call_id_")).order_by(table.c.settlement_id), dialect
        )
        self._of_run = Statement(
            sa.select(table.c.call_id, table.c.data)
            .where(table.c.call_id.between(bind("first"), bind("last")))
            .order_by(table.c.settlement_id),
            dialect,
        )
        self._add = Statement(sa.insert(table).values(call_id=bind("call_id_"), data=bind("data_")), dialect)

    def newest(self, connection: Connection, call_id: int) -> pb.CallSettlement | None:
        """The settlement of a call that is in force; `None` when nobody settled it."""
        rows = self._of_call.rows(connection, call_id)
        return pb.CallSettlement.FromString(rows[-1][0]) if rows else None

    def of_run(self, connection: Connection, run_no: int) -> dict[int, list[pb.CallSettlement]]:
        """All settlements of a run by place of the call, each list oldest first."""
        found: dict[int, list[pb.CallSettlement]] = {}
        for call_id, data in self._of_run.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1):
            found.setdefault(sequence_of(call_id), []).append(pb.CallSettlement.FromString(data))
        return found

    def add(self, connection: Connection, call_id: int, settlement: pb.CallSettlement) -> None:
        """Appends a settlement, which is in force from now on."""
        self._add.run(connection, call_id, settlement.SerializeToString(deterministic=True))
