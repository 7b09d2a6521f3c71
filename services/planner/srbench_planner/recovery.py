"""After a start: the runs that had not ended are taken in again, with every lease and every stop as it was saved."""

from __future__ import annotations

import functools
import logging
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.db import Reader
from srbench_kit.errors import SrBenchError

from srbench_planner import runs, store
from srbench_planner.active import ActiveRun
from srbench_planner.plans import Plans, StoredPlan
from srbench_planner.scheduler import Scheduler

_log = logging.getLogger(__name__)
AT_ONCE = frozenset({"cancelled", "deadline"})


async def restore(reader: Reader, plans: Plans, scheduler: Scheduler, lease_s: float) -> list[ActiveRun]:
    """Takes in the runs that had not ended; their cases are still to be loaded.

    Executors that lived on renew their leases within `lease_s`; the others' cells are judged by accounting then.
    """
    rows = await reader.run(_open_runs)
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


def _open_runs(connection: Connection) -> list[Any]:
    # A replay is worked on by nobody but the planner itself.
    open_run = store.runs.c.status.not_in(sorted(runs.TERMINAL)) & (store.runs.c.mode != "replay")
    return list(connection.execute(sa.select(store.runs).where(open_run).order_by(store.runs.c.number)).all())


def _cells(connection: Connection, number: int) -> tuple[list[Any], int]:
    columns = (store.cells.c.cell, store.cells.c.state, store.cells.c.token, store.cells.c.holder, store.cells.c.reason)
    saved = connection.execute(sa.select(*columns).where(store.cells.c.run == number)).all()
    failed = sa.select(sa.func.count()).select_from(store.events)
    failed = failed.where(store.events.c.run == number, store.events.c.type.in_(("case_failed", "case_sent_unknown")))
    return list(saved), int(connection.execute(failed).scalar_one())
