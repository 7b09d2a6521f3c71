"""Reading cells: pages of them for people, single ones for late reports."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import pages
from srbench_kit.db import Reader

from srbench_planner import store
from srbench_planner.active import ActiveRun
from srbench_planner.case_set import CaseSet
from srbench_planner.cells import CellState
from srbench_planner.plans import StoredPlan
from srbench_planner.queue import Ref

MAX_PAGE = 1000


async def list_cells(
    reader: Reader,
    number: int,
    plan: StoredPlan,
    active: ActiveRun | None,
    cases: CaseSet,
    request: pb.ListCellsRequest,
) -> pb.ListCellsResponse:
    """A page of a run's cells in dispatch order: from memory while the run is in hand, else from the table.

    Raises: `InvalidInput` (`BAD_PAGE_TOKEN`, `BAD_PAGE_SIZE`).
    """
    size = pages.page_size(request.page_size, 100, MAX_PAGE)
    filters = (request.run_id, request.state)
    after = pages.decode(request.page_token, *filters)
    start = after + 1 if isinstance(after, int) else 0
    if active is not None:
        found = list(_from_memory(active, start, request.state, size + 1))
    else:
        found = await reader.run(lambda connection: _from_table(connection, number, start, request.state, size + 1))
    response, matrix = pb.ListCellsResponse(), plan.matrix
    for cell, state, reason in found[:size]:
        case, target = matrix.pair(cell)
        shown = response.cells.add(cell=cell, case_id=cases.case_id(case), reason=reason)
        shown.target_id = plan.summary.targets[target].id
        setattr(shown, "state", state)  # noqa: B010 - the stubs know enums only as their own type
    if len(found) > size:
        response.next_page_token = pages.encode(found[size - 1][0], *filters)
    return response


def _from_memory(active: ActiveRun, start: int, state: int, most: int) -> Iterator[tuple[int, int, str]]:
    cells = active.cells
    for cell in range(start, cells.total):
        if most <= 0:
            return
        if state in (0, cells.states[cell]):
            most -= 1
            ended = cells.states[cell] > CellState.LEASED
            yield cell, cells.states[cell], cells.reasons.get(cell, "") if ended else ""


def _from_table(connection: Connection, number: int, start: int, state: int, most: int) -> list[tuple[int, int, str]]:
    columns = store.cells.c.cell, store.cells.c.state, store.cells.c.reason
    query = sa.select(*columns).where(store.cells.c.run == number, store.cells.c.cell >= start)
    if state:
        query = query.where(store.cells.c.state == state)
    rows = connection.execute(query.order_by(store.cells.c.cell).limit(most))
    return [(cell, found, reason or "") for cell, found, reason in rows]


def stored_states(connection: Connection, refs: list[Ref]) -> dict[Ref, int]:
    """The saved state of each cell whose saved token is the one in its reference."""
    found: dict[Ref, int] = {}
    for ref in refs:
        query = (
            sa.select(store.cells.c.state)
            .select_from(store.cells.join(store.runs, store.runs.c.number == store.cells.c.run))
            .where(store.runs.c.id == ref.run_id, store.cells.c.cell == ref.cell, store.cells.c.token == ref.token)
        )
        state = connection.execute(query).scalar()
        if state is not None:
            found[ref] = int(state)
    return found
