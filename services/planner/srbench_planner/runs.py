"""Runs: created once a key, seen by their owner, listed, cancelled."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import pages
from srbench_kit.auth import Actor
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.values import fill_value

from srbench_planner import convert, experiments, lineage_store, provenance, run_rows, store
from srbench_planner.active import ActiveRun, target_limits
from srbench_planner.benchmark import PROFILES
from srbench_planner.captures import Captures
from srbench_planner.case_set import CaseSet
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.freeze import FrozenPlan
from srbench_planner.journal import Journal, now_us
from srbench_planner.manifest import MODES
from srbench_planner.ownership import Ownership
from srbench_planner.plans import Plans
from srbench_planner.run_cells import RunCells
from srbench_planner.scheduler import Scheduler

MAX_KEY = 200
TERMINAL = frozenset({"completed", "failed", "cancelled", "interrupted"})
# What runs are narrowed by, and the values that there are.
FILTERS: Mapping[str, Sequence[str]] = {
    "status": ("queued", "running", *sorted(TERMINAL)),
    "mode": (*MODES, "replay"),
    "profile": PROFILES,
}
_COUNTS = {
    CellState.DONE: "done_count",
    CellState.FAILED: "failed_count",
    CellState.CANCELLED: "cancelled_count",
    CellState.INTERRUPTED: "interrupted_count",
}


def check_key(key: str) -> None:
    """Raises: `InvalidInput` (`BAD_IDEMPOTENCY_KEY`) unless `key` is one."""
    if not 1 <= len(key) <= MAX_KEY:
        raise InvalidInput("BAD_IDEMPOTENCY_KEY", f"idempotency_key has {len(key)} characters; expected 1 to {MAX_KEY}")


class Runs:
    """The runs of a store."""

    def __init__(
        self,
        writer: GroupWriter,
        reader: Reader,
        journal: Journal,
        plans: Plans,
        scheduler: Scheduler,
        captures: Captures,
        ownership: Ownership,
    ) -> None:
        self._writer = writer
        self._ownership = ownership
        self._captures = captures
        self.reader = reader
        self._journal = journal
        self._plans = plans
        self._scheduler = scheduler
        # Held from the insert of a run to its admission, so that a cancel in between is not lost.
        self._admission = asyncio.Lock()

    async def create(self, actor: Actor, key: str, frozen: FrozenPlan, claim: run_rows.Claim | None = None) -> pb.Run:
        """Starts a run of the frozen plan; the same key with the same manifest gives the run that exists.

        Args:
            claim: what else the transaction must do with the number of the new run, or fail.

        Raises: `InvalidInput` (`BAD_IDEMPOTENCY_KEY`), `Conflict` (`IDEMPOTENCY_CONFLICT`, `REVIEWED_PLAN_CHANGED`,
        `RECIPE_CAPTURE_FAILED`), `NotFound` (`NO_SUCH_EXPERIMENT`), `Unreachable` (`NO_EXECUTOR`), and what `claim` raises.
        """
        existing = await self.same_by_key(actor, key, frozen)
        if existing is not None:
            return self.message(existing)
        if frozen.reviewed_sha256 not in ("", frozen.plan_sha256):
            raise Conflict(
                "REVIEWED_PLAN_CHANGED",
                f"plan_sha256 is {frozen.reviewed_sha256}, but the manifest freezes to {frozen.plan_sha256}; review again",
                reviewed=frozen.reviewed_sha256,
                frozen=frozen.plan_sha256,
            )
        stored = await self._plans.save(frozen)
        cases = await self._plans.cases(frozen.case_sha256)
        recipes = await self._captures.capture([target for target in stored.summary.targets if target.capture_recipe])
        facts = await asyncio.to_thread(provenance.capture)
        new = run_rows.NewRun(
            actor=actor,
            key=key,
            stored=stored,
            provenance=json.dumps({**facts, **provenance.of_recipes(recipes)}),
            recipes=recipes,
            experiment=frozen.manifest.get("experiment"),
            claim=claim,
            term=self._ownership.term,
        )
        async with self._admission:
            row, fresh = await self._writer.run(lambda connection: run_rows.insert(connection, new))
            if not fresh:
                return self.message(self._same(row, frozen))
            self._admit(row, stored.matrix, stored.summary, cases)
        return self.message(row)

    async def by_key(self, actor: Actor, key: str) -> Any:
        """The row of the run that the actor started with `key`; `None` when there is none."""
        return await self.reader.run(lambda connection: run_rows.by_key(connection, actor.id, key))

    async def same_by_key(self, actor: Actor, key: str, frozen: FrozenPlan) -> Any:
        """The row of the run that was started with `key`, which must be of the same manifest; `None` when there is none.

        Raises: `InvalidInput` (`BAD_IDEMPOTENCY_KEY`), `Conflict` (`IDEMPOTENCY_CONFLICT`).
        """
        check_key(key)
        existing = await self.by_key(actor, key)
        return None if existing is None else self._same(existing, frozen)

    async def get(self, actor: Actor, run_id: str, *, summary: bool = False, with_cases: bool = True) -> pb.Run:
        """One run; with manifest and provenance unless `summary`. Raises: `NotFound` (`NO_SUCH_RUN`)."""
        row = await self.row(actor, run_id)
        message = self.message(row)
        if not summary:
            stored = await self._plans.by_number(row.plan)
            message.plan.CopyFrom(await self._plans.show(stored, whole=False, with_cases=with_cases))
            facts = await self.reader.run(
                lambda c: c.execute(sa.select(store.runs.c.provenance).where(store.runs.c.id == run_id)).scalar_one()
            )
            fill_value(message.provenance, json.loads(facts))
            message.child_run_ids.extend(await self.reader.run(lambda c: lineage_store.child_ids(c, row.number)))
        await self._add_roles([(row.number, message)])
        return message

    async def row(self, actor: Actor | None, run_id: str) -> Any:
        """The row of a run with its plan's summary; runs of other owners are not there, but for services (`None`)."""
        row = self._row_now(run_id)
        if row is None or (actor is not None and not actor.sees_all and row.owner != actor.id):
            raise NotFound("NO_SUCH_RUN", f"there is no run {run_id!r}", run_id=run_id)
        return row

    async def rows(self, numbers: Sequence[int]) -> Sequence[Any]:
        """The rows of runs by their numbers, in rising order."""
        query = run_rows.LISTED.where(store.runs.c.number.in_(numbers)).order_by(store.runs.c.number)
        return await self.reader.run(lambda connection: connection.execute(query).all())

    async def list(self, actor: Actor, request: pb.ListRunsRequest) -> pb.ListRunsResponse:
        """Runs, newest first. Raises: `InvalidInput` (`BAD_PAGE_TOKEN`, `BAD_PAGE_SIZE`, `BAD_FIELD`)."""
        size = pages.page_size(request.page_size, 50, 500)
        for name, known in FILTERS.items():
            if (given := getattr(request, name)) and given not in known:
                raise InvalidInput("BAD_FIELD", f"{name} is {given[:100]!r}; expected {', '.join(known)}", field=name)
        filters = (actor.id, actor.sees_all, request.status, request.query, request.mode, request.profile)
        before = pages.decode(request.page_token, *filters)
        conditions = _conditions(actor, request)
        page = run_rows.LISTED.where(*conditions).order_by(store.runs.c.number.desc()).limit(size + 1)
        if before is not None:
            page = page.where(store.runs.c.number < before)
        count = sa.select(sa.func.count()).select_from(store.runs).where(*conditions)

        def work(connection: Connection) -> tuple[list[Any], int]:
            return list(connection.execute(page).all()), int(connection.execute(count).scalar_one())

        rows, total = await self.reader.run(work)
        response = pb.ListRunsResponse(runs=[self.message(row) for row in rows[:size]], total=total)
        await self._add_roles(list(zip((row.number for row in rows), response.runs, strict=False)))
        if len(rows) > size:
            response.next_page_token = pages.encode(rows[size - 1].number, *filters)
        return response

    async def cancel(self, actor: Actor, run_id: str) -> pb.Run:
        """Stops a run; one that has ended or is being cancelled is returned as it is. Raises: `NotFound`."""
        run = await self.in_hand(actor, run_id)
        if run is not None and run.cells.stop_status != "cancelled" and run.cells.open_count:
            self._journal.event(run.cells, "cancellation_requested", {"actor": actor.id})
            self._scheduler.stop(run.cells, "cancelled", "cancelled", at_once=True)
            await self._scheduler.save()
        return self.message(await self.row(actor, run_id))

    async def in_hand(self, actor: Actor, run_id: str) -> ActiveRun | None:
        """A run that has not ended; `None` when it has. Raises: `NotFound` (`NO_SUCH_RUN`)."""
        row = await self.row(actor, run_id)
        if row.status not in TERMINAL and run_id not in self._scheduler.active:
            async with self._admission:
                pass
        return self._scheduler.active.get(run_id)

    def message(self, row: Any) -> pb.Run:
        """The message of a row; what is in hand is told from memory, what has ended from the row."""
        plan = plan_pb2.Plan.FromString(row.summary)
        run = self._scheduler.active.get(row.id)
        if run is None and row.status not in TERMINAL:
            # It ended after the row was read.
            row = self._row_now(row.id)
        status, reason, error, update_us = row.status, row.reason, row.error, row.update_us
        counts: dict[CellState, int] = defaultdict(int)
        if run is not None and row.status not in TERMINAL:
            # The end of a run shows when it is durable, not before.
            status = run.cells.status if run.cells.status not in TERMINAL else "running"
            update_us = run.update_us
            counts.update({state: run.cells.counts[state] for state in CellState})
        else:
            counts.update({state: row._mapping[column] or 0 for state, column in _COUNTS.items()})
        message = pb.Run(id=row.id, owner=row.owner, status=status, reason=reason, error=error)
        message.idempotency_key = row.idempotency_key
        message.parent_run_id = row.parent_id or ""
        message.concurrency = run.cells.concurrency if run is not None else row.concurrency or plan.limits.concurrency
        message.paused = bool(run is not None and run.cells.paused and status not in TERMINAL)
        if run is not None and status not in TERMINAL:
            message.waiting_for.extend(self._scheduler.presence.waiting_for(run.cells))
        message.create_time.CopyFrom(convert.timestamp(row.create_us))
        message.update_time.CopyFrom(convert.timestamp(update_us))
        message.progress.CopyFrom(convert.progress(plan.total, counts))
        message.plan.CopyFrom(plan)
        return message

    async def _add_roles(self, shown: Sequence[tuple[int, pb.Run]]) -> None:
        """Adds to each message the run's parts in experiments."""
        if shown:
            numbers = [number for number, _ in shown]
            roles = await self.reader.run(lambda connection: experiments.roles_of(connection, numbers))
            for number, message in shown:
                message.experiment_roles.extend(roles.get(number, ()))

    def _row_now(self, run_id: str) -> Any:
        query = run_rows.LISTED.where(store.runs.c.id == run_id)
        return self.reader.run_now(lambda connection: connection.execute(query).first())

    @staticmethod
    def _same(row: Any, frozen: FrozenPlan) -> Any:
        if row.manifest_sha256 != frozen.manifest_sha256:
            raise Conflict(
                "IDEMPOTENCY_CONFLICT",
                f"idempotency_key {row.idempotency_key!r} started run {row.id} with another manifest; use a new key",
                run_id=row.id,
            )
        return row

    def _admit(self, row: Any, matrix: CellMatrix, plan: plan_pb2.Plan, cases: CaseSet) -> None:
        cells = run_cells(row, matrix, plan, self._scheduler)
        run = ActiveRun(cells=cells, plan=plan, update_us=row.update_us)
        run.load(cases)
        self._scheduler.admit(run)


def run_cells(row: Any, matrix: CellMatrix, plan: plan_pb2.Plan, scheduler: Scheduler) -> RunCells:
    """The cells of a run that has not ended, all queued."""
    # A clock that was set back since the run was saved last gives it no more time than it had then.
    now = max(now_us(), row.update_us)
    cells = RunCells(
        number=row.number,
        run_id=row.id,
        matrix=matrix,
        targets=target_limits(plan),
        concurrency=row.concurrency or plan.limits.concurrency,
        max_failed_cells=plan.limits.max_failed_cells,
        deadline=scheduler.clock() + (row.deadline_us - now) / 1e6,
    )
    cells.paused = bool(row.paused)
    return cells


def _conditions(actor: Actor, request: pb.ListRunsRequest) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if not actor.sees_all:
        conditions.append(store.runs.c.owner == actor.id)
    if request.status:
        conditions.append(store.runs.c.status == request.status)
    if request.mode:
        conditions.append(store.runs.c.mode == request.mode)
    if request.profile:
        conditions.append(store.runs.c.profile == request.profile)
    if request.query:
        words = request.query.lower()
        held = [column.contains(words, autoescape=True) for column in (store.runs.c.searchable, store.runs.c.id)]
        conditions.append(sa.or_(*held))
    return conditions
