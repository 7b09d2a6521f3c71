"""What is not saved stays pending: a failed transaction loses nothing, and nothing counts as ended before it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from srbench.v1 import plan_pb2
from srbench_kit.db import GroupWriter
from srbench_kit.errors import Exhausted
from srbench_planner import store
from srbench_planner.active import ActiveRun
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.journal import Journal
from srbench_planner.rates import TargetLimits
from srbench_planner.run_cells import RunCells
from srbench_planner.scheduler import Scheduler


class FullDisk:
    """A writer whose disk is full until told otherwise."""

    def __init__(self, writer: GroupWriter) -> None:
        self.writer = writer
        self.full = True

    async def run(self, work: Any) -> Any:
        if self.full:
            await asyncio.sleep(0.01)
            raise Exhausted("STORAGE_FULL", "the store has no space left; nothing was recorded")
        return await self.writer.run(work)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[sa.Engine]:
    engine = store.open_store(f"sqlite:///{tmp_path}/planner.sqlite3")
    yield engine
    engine.dispose()


def run() -> RunCells:
    cells = RunCells(
        number=1,
        run_id="run-1",
        matrix=CellMatrix(130, 1),
        targets=[TargetLimits(key=("t",))],
        concurrency=200,
        max_failed_cells=25,
        deadline=1e9,
    )
    cells.build_lanes(["single_turn"] * 130)
    return cells


async def test_a_full_disk_keeps_every_change_for_the_next_save(engine: sa.Engine) -> None:
    writer = GroupWriter(engine)
    disk = FullDisk(writer)
    scheduler = Scheduler(Journal(disk), None)  # type: ignore[arg-type]
    cells = run()
    scheduler.admit(ActiveRun(cells=cells, plan=plan_pb2.Plan(), update_us=0))
    grants, _ = scheduler.queue.lease(7, frozenset({"single_turn"}), 200, 0.0, 15.0)
    scheduler.begin(cells)
    with pytest.raises(Exhausted):
        await scheduler.save()
    for grant in grants:
        cells.end(grant.cell, CellState.DONE, "")
    scheduler.consider(cells)
    with pytest.raises(Exhausted):
        await scheduler.save()
    assert "run-1" in scheduler.active, "it has not ended before its end is durable"
    disk.full = False
    await scheduler.save()
    assert scheduler.active == {}
    with engine.connect() as connection:
        rows = connection.execute(sa.select(store.cells).order_by(store.cells.c.cell)).all()
        kinds = connection.execute(sa.select(store.events.c.type).order_by(store.events.c.seq)).scalars().all()
    assert rows == [(1, cell, CellState.DONE, 1, 7, None) for cell in range(130)]
    assert kinds == ["running", "completed"]
    writer.close()


async def test_a_save_is_not_over_before_another_that_took_its_changes_along(engine: sa.Engine) -> None:
    """Two callers lease at once: the first one's transaction carries both, so neither lease leaves when it fails."""
    writer = GroupWriter(engine)
    disk = FullDisk(writer)
    scheduler = Scheduler(Journal(disk), None)  # type: ignore[arg-type]
    cells = run()
    scheduler.admit(ActiveRun(cells=cells, plan=plan_pb2.Plan(), update_us=0))

    async def lease() -> int:
        grants, _ = scheduler.queue.lease(7, frozenset({"single_turn"}), 10, 0.0, 15.0)
        scheduler.begin(cells)
        await scheduler.save()
        return len(grants)

    refused = await asyncio.gather(lease(), lease(), return_exceptions=True)
    assert [type(one) for one in refused] == [Exhausted, Exhausted]
    disk.full = False
    assert await asyncio.gather(lease(), lease()) == [10, 10]
    with engine.connect() as connection:
        assert len(connection.execute(sa.select(store.cells)).all()) == 40
    writer.close()


async def test_a_journal_is_idle_only_when_all_it_heard_of_is_durable(engine: sa.Engine) -> None:
    """A tick saves nothing while it is idle, so it must not be when anything is pending or on its way."""
    writer = GroupWriter(engine)
    disk = FullDisk(writer)
    journal, cells = Journal(disk), run()  # type: ignore[arg-type]
    assert journal.idle
    journal.touch(cells)
    assert not journal.idle
    await journal.flush()
    assert journal.idle, "nothing of the run had changed"
    cells.lease(0, 7, 15.0)
    journal.touch(cells)
    with pytest.raises(Exhausted):
        await journal.flush()
    assert not journal.idle
    disk.full = False
    saving = asyncio.ensure_future(journal.flush())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not journal.idle, "it is on its way"
    await saving
    assert journal.idle
    writer.close()


def test_the_migrations_make_exactly_the_tables_that_the_code_uses(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), store.metadata)
    assert difference == []
