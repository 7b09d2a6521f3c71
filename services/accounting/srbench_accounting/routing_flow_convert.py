"""A run's flow as its message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from srbench.v1 import plan_pb2
from srbench.v1 import routing_flow_pb2 as pb

from srbench_accounting.columns import CallColumns, Labels, OutcomeColumns
from srbench_accounting.routing import RoutingColumns
from srbench_accounting.routing_flow import FlowRow, PlannedCells, routing_flow


def message(
    run_id: str,
    target_ids: Sequence[str],
    cases: Sequence[plan_pb2.PlanCase],
    target: int | None,
    outcomes: OutcomeColumns,
    calls: CallColumns,
    routings: RoutingColumns | None = None,
) -> pb.RoutingFlow:
    """The flow of one target, or of all; of a preview by its `routings`."""
    cells = planned_cells(cases, target)
    rows = routing_flow(cells, outcomes, calls, routings) if len(cells.case) else []
    return pb.RoutingFlow(run_id=run_id, cell_count=len(cells.case), rows=[_row(row, target_ids) for row in rows])


def planned_cells(cases: Sequence[plan_pb2.PlanCase], target: int | None) -> PlannedCells:
    """The planned cells of one target, or of all."""
    rows = [(case, number) for case in cases for number in case.target_indexes if target in (None, number)]
    return PlannedCells(
        case=np.array([case.index for case, _ in rows], dtype=np.int64),
        target=np.array([number for _, number in rows], dtype=np.int64),
        benchmark=Labels.of(case.benchmark for case, _ in rows),
        stratum=Labels.of(case.stratum for case, _ in rows),
    )


def _row(row: FlowRow, target_ids: Sequence[str]) -> pb.RoutingFlowRow:
    return pb.RoutingFlowRow(
        target_id=target_ids[row.target],
        benchmark=row.benchmark,
        stratum=row.stratum,
        decision=row.decision,
        model=row.model,
        outcome=row.outcome,
        cell_count=row.cell_count,
        known_cost_picodollars=row.known_cost_picodollars,
        unknown_cost_count=row.unknown_cost_count,
    )
