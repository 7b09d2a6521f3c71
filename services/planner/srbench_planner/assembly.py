"""How the parts of the planner about plans and runs hang together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import Engine
from srbench_kit import settings
from srbench_kit.ballast import Ballast
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import SrBenchError

from srbench_planner import restoring, store
from srbench_planner.accounting_client import Facts
from srbench_planner.active import ActiveRun
from srbench_planner.captures import Captures
from srbench_planner.executors import Executors
from srbench_planner.experiments import Experiments
from srbench_planner.freeze import Freezer
from srbench_planner.journal import Journal
from srbench_planner.loop_servicer import LoopParts
from srbench_planner.operator_documents import Folder, Table
from srbench_planner.ownership import Ownership, owner_lease_s
from srbench_planner.plans import Plans
from srbench_planner.ports import Benchmarks, CaseFiles
from srbench_planner.preparation import FOLDER
from srbench_planner.preparation_records import RecordFiles, Records, RecordTable
from srbench_planner.queue_servicer import WorkQueueServicer
from srbench_planner.recoveries import Ledger, Recoveries
from srbench_planner.recovery_servicer import RecoveryServicer
from srbench_planner.replays import Replays
from srbench_planner.runner_book import RunnerBook
from srbench_planner.runs import Runs
from srbench_planner.saved_facts import SavedRuns
from srbench_planner.scheduler import Scheduler
from srbench_planner.target_registry import TargetRegistry

DEFAULT_LEASE_S = 15.0
CLAIM_S = 1.0
_log = logging.getLogger(__name__)


def lease_duration_s() -> float:
    """How long a lease lasts without renewal: `SR_BENCH_LEASE_S`, else 15 s. Raises: `InvalidInput` (`BAD_LEASE`)."""
    return settings.seconds("SR_BENCH_LEASE_S", DEFAULT_LEASE_S, 0.1, 3600, "BAD_LEASE")


@dataclass(slots=True)
class PlanService:
    """The running parts; `start` before serving, `background` beside it, `close` after it."""

    engine: Engine
    writer: GroupWriter
    reader: Reader
    registry: TargetRegistry
    freezer: Freezer
    plans: Plans
    runs: Runs
    scheduler: Scheduler
    executors: Executors
    work_queue: WorkQueueServicer
    recoveries: RecoveryServicer
    lease_s: float
    restored: list[ActiveRun]
    loop: LoopParts
    captures: Captures
    ownership: Ownership
    ready: asyncio.Event
    runners: RunnerBook
    # Called once this planner has the queue, before it answers.
    when_owner: list[Callable[[], Awaitable[None]]]

    async def start(self) -> None:
        """Waits for the right to the queue, then takes in what a former process left."""
        await self.ownership.wait()
        for begin in (self.registry.begin, *self.when_owner):
            await begin()
        await self.executors.load()
        await self._restore()
        self.ready.set()

    async def background(self) -> None:
        """Loads the cases of restored runs, then keeps all runs going until it is cancelled or another planner has them.

        Raises: `Unreachable` (`QUEUE_LOST`).
        """
        if not self.ready.is_set():
            await self.start()
        await asyncio.gather(
            self._load(), self.scheduler.run(), self.loop.replays.resume(), self.ownership.until_lost(), self._claim_rest()
        )

    def close(self) -> None:
        """Commits what waits, and lets another planner go on at once."""
        self.writer.close()
        self.ownership.release()
        self.engine.dispose()

    async def _restore(self) -> None:
        term = self.ownership.term
        parts = self.writer, self.reader, self.plans, self.scheduler
        self.restored += await restoring.restore(*parts, self.lease_s, term)

    async def _load(self) -> None:
        restored, self.restored = self.restored, []
        await restoring.load_cases(restored, self.plans, self.scheduler)

    async def _claim_rest(self) -> None:
        """Takes in, later, the runs whose rows were held by somebody's transaction."""
        while self.engine.dialect.name == "postgresql":
            await asyncio.sleep(CLAIM_S)
            try:
                if await restoring.unclaimed(self.reader, self.ownership.term):
                    await self._restore()
                    await self._load()
            except SrBenchError as error:
                _log.warning("runs that nobody has cannot be taken in yet: %s", error)


class Accounting(Facts, Ledger, SavedRuns, Protocol):
    """All that the planner asks of accounting."""


def assemble(folder: Path, benchmarks: Benchmarks, files: CaseFiles, facts: Accounting, place: str = "") -> PlanService:
    """The parts over the store in `folder`; for `place` see `Ownership`."""
    engine = store.open_store(settings.database_url("planner", folder))
    ownership = Ownership(engine, owner_lease_s(), place)
    # The ends of runs are a few rows; they have to find room on a volume that evidence filled.
    ballast = Ballast(folder / "ballast") if engine.dialect.name == "sqlite" else None
    writer, reader = GroupWriter(engine, guard=ownership.guard, ballast=ballast), Reader(engine)
    journal = Journal(writer)
    scheduler = Scheduler(journal, facts)
    plans = Plans(writer, reader, settings.objects_url(folder), benchmarks, files)
    captures, runners = Captures(), RunnerBook()
    runs = Runs(writer, reader, journal, plans, scheduler, captures, ownership)
    kept = Folder(folder)
    registry = TargetRegistry(kept if engine.dialect.name == "sqlite" else Table(writer, reader, kept))
    freezer = Freezer(benchmarks, files)
    loop = LoopParts(
        registry=registry,
        freezer=freezer,
        plans=plans,
        runs=runs,
        replays=Replays(writer, runs, plans, benchmarks, facts),
        experiments=Experiments(writer, reader),
    )
    executors = Executors(writer, reader)
    lease_s = lease_duration_s()
    return PlanService(
        engine=engine,
        writer=writer,
        reader=reader,
        registry=registry,
        freezer=freezer,
        plans=plans,
        runs=runs,
        scheduler=scheduler,
        executors=executors,
        work_queue=WorkQueueServicer(scheduler, executors, runs, lease_s, captures, runners),
        recoveries=RecoveryServicer(Recoveries(runs, plans, freezer, facts), registry),
        lease_s=lease_s,
        restored=[],
        loop=loop,
        captures=captures,
        ownership=ownership,
        ready=asyncio.Event(),
        runners=runners,
        when_owner=[],
    )


def preparation_records(service: PlanService, folder: Path) -> Records:
    """Where the records of preparations lie."""
    files = RecordFiles(folder / FOLDER)
    return files if service.engine.dialect.name == "sqlite" else RecordTable(service.writer, service.reader, files)
