"""After a start: the runs that had not ended are taken in again, with every lease and every stop as it was saved."""

from __future__ import annotations

import functools
import logging
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import SrBenchError

from srbench_planner import runs, store
from srbench_planner.active import ActiveRun
from srbench_planner.plans import Plans, StoredPlan
from srbench_planner.scheduler import Scheduler

_log = logging.getLogger(__name__)
AT_ONCE = frozenset({"cancelled", "deadline"})


async def restore(
    writer: GroupWriter, reader: Reader, plans: Plans, scheduler: Scheduler, lease_s: float, term: int
) -> list[ActiveRun]:
    """Takes in the runs that had not ended, for the planner of `term`; their cases are still to be loaded.

    Executors that lived on renew their leases within `lease_s`; accounting judges the others' cells then. A run whose
    row somebody's open transaction holds is left out: it holds up no other, and is taken in by a later call.
    """
    rows = await writer.run(functools.partial(_claim, term=term))
    restored: list[ActiveRun] = []
    for row in rows:
        stored: StoredPlan = await plans.by_number(row.plan)
        cells = runs.run_cells(row, stored.matrix, stored.summary, scheduler)
        cells.status = row.status
        saved, failures = await reader.run(functools.partial(_cells, number=row.number))
        cells.restore(saved, scheduler.clock() + lease_s)
        run = ActiveRun(cells=cells, plan=stored.summary, update_us=row.update_us, failure_event_count=failures)
        scheduler.admit(run)
        restored.append(run)
        if row.stop_status:
            scheduler.stop(cells, row.stop_status, row.stop_reason, at_once=row.stop_reason in AT_ONCE)
        scheduler.consider(cells)
    await scheduler.save()
    return restored


async def load_cases(restored: list[ActiveRun], plans: Plans, scheduler: Scheduler) -> None:
    """Loads the cases of restored runs, so that their queued cells can be leased. A run without its cases fails."""
    for run in restored:
        if run.cells.run_id not in scheduler.active or run.cells.stop_status:
            continue
        try:
            run.load(await plans.cases(run.plan.case_sha256))
        except (SrBenchError, OSError) as error:
            _log.error("the cases of %s cannot be loaded: %s", run.cells.run_id, error)
            scheduler.stop(run.cells, "failed", "cases_unavailable", at_once=False)
        scheduler.wake()


async def unclaimed(reader: Reader, term: int) -> bool:
    """Whether a run is left that no planner has since `term` began."""
    found = sa.select(store.runs.c.number).where(_left_over(term)).limit(1)
    return bool(await reader.run(lambda connection: connection.execute(found).first()))


def _left_over(term: int) -> sa.ColumnElement[bool]:
    # A replay is worked on by nobody but the planner itself.
    open_run = store.runs.c.status.in_(("queued", "running")) & (store.runs.c.mode != "replay")
    return open_run & (store.runs.c.term < term)


def _claim(connection: Connection, *, term: int) -> list[Any]:
    left = sa.select(store.runs).where(_left_over(term)).order_by(store.runs.c.number)
    rows = list(connection.execute(left.with_for_update(skip_locked=True)).all())
    if rows:
        claimed = store.runs.update().where(store.runs.c.number.in_([row.number for row in rows]))
        connection.execute(claimed.values(term=term))
    return rows


def _cells(connection: Connection, number: int) -> tuple[list[Any], int]:
    columns = (store.cells.c.cell, store.cells.c.state, store.cells.c.token, store.cells.c.holder, store.cells.c.reason)
    saved = connection.execute(sa.select(*columns).where(store.cells.c.run == number)).all()
    failed = sa.select(sa.func.count()).select_from(store.events)
    failed = failed.where(store.events.c.run == number, store.events.c.type.in_(("case_failed", "case_sent_unknown")))
    return list(saved), int(connection.execute(failed).scalar_one())
