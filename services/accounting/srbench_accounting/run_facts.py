"""What is constant over a run and over a plan: pulled from the planner once and kept.

A run's context is kept in the ledger's own tables, so that facts are recorded while the planner is away. The cases of a
plan, which only readers need, are kept in memory.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import NotFound

from srbench_accounting import schema
from srbench_accounting.derived import Deriving, TargetDeriving
from srbench_accounting.statements import Statement, insert_once

MAX_RUNS = 256
MAX_PLANS = 16
K = TypeVar("K")
V = TypeVar("V")


class Planner(Protocol):
    """What accounting asks of the planner. Raises: `NotFound`, `Unreachable`."""

    async def run_context(self, run_id: str) -> queue_pb.RunContext:
        """What is constant over a run."""
        ...

    async def run(self, run_id: str, *, summary: bool = False) -> planner_pb.Run:
        """A run with its plan, as it stands now; without manifest and provenance when it is a `summary`."""
        ...

    async def lineage(self, run_id: str) -> list[planner_pb.Run]:
        """A run and all its recoveries, oldest first, without manifests."""
        ...

    async def plan_cases(self, plan_sha256: str) -> list[plan_pb2.PlanCase]:
        """The cases of a plan in order."""
        ...


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run as the ledger knows it."""

    run_no: int
    context: queue_pb.RunContext
    targets: tuple[TargetDeriving, ...]
    auxiliaries: dict[str, TargetDeriving]

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.context.run_id


@dataclass(frozen=True)
class PlanCases:
    """The cases of a plan, with the look-ups that lists need."""

    cases: Sequence[plan_pb2.PlanCase]

    @cached_property
    def index_by_id(self) -> dict[str, int]:
        """Position by case id."""
        return {case.case_id: case.index for case in self.cases}

    @cached_property
    def lower_ids(self) -> list[str]:
        """Case ids in lower case, as searches compare them."""
        return [case.case_id.lower() for case in self.cases]

    @cached_property
    def indexes_by_benchmark(self) -> dict[str, list[int]]:
        """Positions by benchmark."""
        found: dict[str, list[int]] = {}
        for case in self.cases:
            found.setdefault(case.benchmark, []).append(case.index)
        return found


class Once(dict[K, "asyncio.Future[V]"]):
    """Runs one loading a key at a time; whoever asks meanwhile waits for the same one."""

    async def get_or_load(self, key: K, load: Callable[[K], Awaitable[V]]) -> V:
        """The value of `key`. A failed loading is told to all that wait for it, and forgotten."""
        task = self.get(key)
        if task is None:
            task = self[key] = asyncio.ensure_future(load(key))
            task.add_done_callback(lambda _done: self.pop(key, None))
        return await asyncio.shield(task)


class RunRegistry:
    """The runs and plans that this process has seen; the least recently used are forgotten first."""

    def __init__(self, engine: Engine, writer: GroupWriter, reader: Reader, planner: Planner, deriving: Deriving) -> None:
        self._writer = writer
        self._reader = reader
        self._planner = planner
        self._deriving = deriving
        self._runs: OrderedDict[str, KnownRun] = OrderedDict()
        self._plans: OrderedDict[str, PlanCases] = OrderedDict()
        self._loading_runs: Once[str, KnownRun] = Once()
        self._loading_plans: Once[str, PlanCases] = Once()
        table = schema.runs
        self._find = Statement(
            sa.select(table.c.run_no, table.c.context).where(table.c.run_id == sa.bindparam("r")), engine.dialect
        )

    def known(self, run_id: str) -> KnownRun | None:
        """The run, if it is in memory."""
        run = self._runs.get(run_id)
        if run is not None:
            self._runs.move_to_end(run_id)
        return run

    async def run(self, run_id: str) -> KnownRun:
        """The run; from memory, from the tables, or from the planner, in which case it gets its row.

        Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`.
        """
        return self.known(run_id) or await self._loading_runs.get_or_load(run_id, self._load_run)

    async def cases(self, run: KnownRun) -> PlanCases:
        """The cases of a run's plan. Raises: `NotFound` (`NO_SUCH_PLAN`), `Unreachable`."""
        sha256 = run.context.plan_sha256
        found = self._plans.get(sha256)
        return found or await self._loading_plans.get_or_load(sha256, self._load_plan)

    async def planner_run(self, run_id: str, *, summary: bool = False) -> planner_pb.Run:
        """Where the run stands in the planner; in short when it is a `summary`. Raises: `NotFound`, `Unreachable`."""
        return await self._planner.run(run_id, summary=summary)

    async def lineage(self, run_id: str) -> list[planner_pb.Run]:
        """The run and all its recoveries. Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`."""
        return await self._planner.lineage(run_id)

    async def _load_run(self, run_id: str) -> KnownRun:
        row = await self._reader.run(lambda connection: self._row(connection, run_id))
        if row is None:
            context = await self._planner.run_context(run_id)
            row = await self._writer.run(lambda connection: self._insert(connection, run_id, context))
        run_no, context = row
        run = KnownRun(
            run_no=run_no,
            context=context,
            targets=tuple(self._deriving.target(target) for target in context.targets),
            auxiliaries={target.id: self._deriving.target(target) for target in context.auxiliary_targets},
        )
        self._runs[run_id] = run
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return run

    def _row(self, connection: Connection, run_id: str) -> tuple[int, queue_pb.RunContext] | None:
        rows = self._find.rows(connection, run_id)
        return (rows[0][0], queue_pb.RunContext.FromString(rows[0][1])) if rows else None

    def _insert(self, connection: Connection, run_id: str, context: queue_pb.RunContext) -> tuple[int, queue_pb.RunContext]:
        found = self._row(connection, run_id)
        if found is not None:
            return found
        if context.run_id != run_id:
            raise NotFound("NO_SUCH_RUN", f"the planner answered for run {context.run_id!r}, not {run_id!r}")
        enforced = context.cost_policy == "require_priced"
        row = {
            "run_id": run_id,
            "context": context.SerializeToString(),
            "max_cost": context.limits.max_cost_picodollars if enforced else None,
            "max_calls_per_case": min(context.limits.max_calls_per_case, 2**31 - 1),
        }
        connection.execute(insert_once(schema.runs, connection.dialect), row)
        inserted = self._row(connection, run_id)
        assert inserted is not None
        return inserted

    async def _load_plan(self, sha256: str) -> PlanCases:
        plan = self._plans[sha256] = PlanCases(await self._planner.plan_cases(sha256))
        while len(self._plans) > MAX_PLANS:
            self._plans.popitem(last=False)
        return plan
