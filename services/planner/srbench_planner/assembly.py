"""How the parts of the planner about plans and runs hang together."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import Engine
from srbench_kit import settings
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import InvalidInput

from srbench_planner import recovery, store
from srbench_planner.accounting_client import Facts
from srbench_planner.active import ActiveRun
from srbench_planner.captures import Captures
from srbench_planner.executors import Executors
from srbench_planner.experiments import Experiments
from srbench_planner.freeze import Freezer
from srbench_planner.journal import Journal
from srbench_planner.loop_servicer import LoopParts
from srbench_planner.plans import Plans
from srbench_planner.ports import Benchmarks, CaseFiles
from srbench_planner.queue_servicer import WorkQueueServicer
from srbench_planner.recoveries import Ledger, Recoveries
from srbench_planner.recovery_servicer import RecoveryServicer
from srbench_planner.replays import Replays
from srbench_planner.runs import Runs
from srbench_planner.saved_facts import SavedRuns
from srbench_planner.scheduler import Scheduler
from srbench_planner.target_registry import TargetRegistry

DEFAULT_LEASE_S = 15.0


def lease_duration_s() -> float:
    """How long a lease lasts without renewal: `SR_BENCH_LEASE_S`, else 15 s. Raises: `InvalidInput` (`BAD_LEASE`)."""
    text = os.environ.get("SR_BENCH_LEASE_S", "")
    try:
        found = float(text) if text else DEFAULT_LEASE_S
    except ValueError:
        found = 0.0
    if not 0.1 <= found <= 3600:
        raise InvalidInput(
            "BAD_LEASE", f"SR_BENCH_LEASE_S is {text!r}; expected seconds from 0.1 to 3600", field="SR_BENCH_LEASE_S"
        )
    return found


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

    async def start(self) -> None:
        """Takes in what a former process left."""
        await self.executors.load()
        self.restored = await recovery.restore(self.reader, self.plans, self.scheduler, self.lease_s)

    async def background(self) -> None:
        """Loads the cases of restored runs, then keeps all runs going until it is cancelled."""
        await recovery.load_cases(self.restored, self.plans, self.scheduler)
        self.restored = []
        await asyncio.gather(self.scheduler.run(), self.loop.replays.resume())

    def close(self) -> None:
        """Commits what waits."""
        self.writer.close()
        self.engine.dispose()


class Accounting(Facts, Ledger, SavedRuns, Protocol):
    """All that the planner asks of accounting."""


def assemble(folder: Path, benchmarks: Benchmarks, files: CaseFiles, facts: Accounting) -> PlanService:
    """The parts over the store in `folder`."""
    engine = store.open_store(settings.database_url("planner", folder))
    writer, reader = GroupWriter(engine), Reader(engine)
    journal = Journal(writer)
    scheduler = Scheduler(journal, facts)
    plans = Plans(writer, reader, folder / "blobs", benchmarks, files)
    captures = Captures()
    runs = Runs(writer, reader, journal, plans, scheduler, captures)
    registry, freezer = TargetRegistry(folder), Freezer(benchmarks, files)
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
        work_queue=WorkQueueServicer(scheduler, executors, runs, lease_s, captures),
        recoveries=RecoveryServicer(Recoveries(runs, plans, freezer, facts), registry),
        lease_s=lease_s,
        restored=[],
        loop=loop,
        captures=captures,
    )
