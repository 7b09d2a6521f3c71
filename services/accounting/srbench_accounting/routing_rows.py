"""The answered previews of a run, from its rows."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.values import object_of

from srbench_accounting import schema
from srbench_accounting.packing import unpack
from srbench_accounting.routing import Routing, RoutingColumns, routing_columns, routing_of


def load(connection: Connection, run_no: int) -> RoutingColumns:
    """What the answered previews of a run say. Raises: `DataLoss` (`ROW_DAMAGED`)."""
    table = schema.outcomes
    rows = connection.execute(
        sa.select(table.c.case_index, table.c.target_index, table.c.rest)
        .where(
            table.c.outcome_id.between(schema.row_id(run_no, 0), schema.row_id(run_no + 1, 0) - 1),
            table.c.state == int(queue_pb.CELL_STATE_DONE),
        )
        .order_by(table.c.outcome_id)
    )
    return routing_columns((case, target, _routing(rest)) for case, target, rest in rows)


def _routing(rest: bytes) -> Routing:
    return routing_of(object_of(unpack(pb.CellOutcome, rest).details).get("routing"))
