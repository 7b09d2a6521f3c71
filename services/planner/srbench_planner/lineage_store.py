"""Recoveries and their claims in the tables."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.errors import Conflict

from srbench_planner import store

MAX_LISTED = 1000


def child_ids(connection: Connection, number: int) -> list[str]:
    """The ids of a run's recoveries, oldest first."""
    recoveries = store.recoveries
    query = (
        sa.select(store.runs.c.id)
        .select_from(recoveries.join(store.runs, store.runs.c.number == recoveries.c.run))
        .where(recoveries.c.parent == number)
        .order_by(recoveries.c.run)
    )
    return list(connection.execute(query).scalars())


def descendants(connection: Connection, number: int) -> list[int]:
    """The numbers of all recoveries of a run, of their recoveries and so on, in the order of creation."""
    found: list[int] = []
    level = [number]
    while level:
        query = sa.select(store.recoveries.c.run).where(store.recoveries.c.parent.in_(level))
        level = list(connection.execute(query).scalars())
        found += level
    return sorted(found)


def claimed(connection: Connection, number: int) -> set[int]:
    """The cells of a run that recoveries have."""
    query = sa.select(store.recovery_claims.c.cell).where(store.recovery_claims.c.parent == number)
    return set(connection.execute(query).scalars())


def states(connection: Connection, number: int) -> dict[int, tuple[int, str]]:
    """State and reason of each saved cell of a run."""
    cells = store.cells
    query = sa.select(cells.c.cell, cells.c.state, cells.c.reason).where(cells.c.run == number)
    return {cell: (state, reason or "") for cell, state, reason in connection.execute(query)}


def recovery_of(connection: Connection, number: int) -> tuple[int, str, str] | None:
    """Parent, mode and digest of the chosen cells; `None` when the run is no recovery."""
    table = store.recoveries
    row = connection.execute(
        sa.select(table.c.parent, table.c.mode, table.c.cells_sha256).where(table.c.run == number)
    ).first()
    return None if row is None else (row.parent, row.mode, row.cells_sha256)


def claim(connection: Connection, child: int, parent: int, mode: str, cells_sha256: str, cells: Sequence[int]) -> None:
    """Makes the run `child` a recovery of `parent` and gives it the cells, all or none.

    Raises: `Conflict` (`RECOVERY_PLAN_REQUIRED`) when another recovery has one of them.
    """
    connection.execute(
        store.recoveries.insert(), {"run": child, "parent": parent, "mode": mode, "cells_sha256": cells_sha256}
    )
    try:
        connection.execute(
            store.recovery_claims.insert(), [{"parent": parent, "cell": cell, "run": child} for cell in cells]
        )
    except sa.exc.IntegrityError as error:
        sentence = "another recovery has claimed some of these cells meanwhile; make a new recovery plan"
        raise Conflict("RECOVERY_PLAN_REQUIRED", sentence) from error
