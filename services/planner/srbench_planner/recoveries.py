"""Recoveries: what can be tried again is worked out from the ledger, reviewed, and then claimed by a child run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench_kit.auth import Actor
from srbench_kit.errors import Conflict, InvalidInput

from srbench_planner import lineage_store, recovery_manifest
from srbench_planner.accounting_client import LedgerFacts
from srbench_planner.freeze import Freezer, FrozenPlan, Registry
from srbench_planner.plans import Plans, StoredPlan
from srbench_planner.recovery_plan import Proposal, cell_evidence, propose
from srbench_planner.recovery_rules import FAILED, MODES, UNDISPATCHED
from srbench_planner.runs import TERMINAL, Runs, check_key


class Ledger(Protocol):
    """Accounting as recoveries see it."""

    async def ledger(self, run_id: str) -> LedgerFacts:
        """The facts of a whole run."""

    async def seal(self, run_id: str) -> None:
        """Refuses every later dispatch of a run that is about to be recovered."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A run to be recovered: its row, its plan, and the ids by which people name its cells."""

    row: Any
    stored: StoredPlan
    case_ids: list[str]

    @property
    def cells(self) -> dict[tuple[str, str], int]:
        """Each cell's number by (case id, target id)."""
        matrix, targets = self.stored.matrix, [target.id for target in self.stored.summary.targets]
        pairs = (matrix.pair(cell) for cell in range(len(matrix)))
        return {(self.case_ids[case], targets[target]): cell for cell, (case, target) in enumerate(pairs)}


class Recoveries:
    """Plans and starts recoveries."""

    def __init__(self, runs: Runs, plans: Plans, freezer: Freezer, ledger: Ledger) -> None:
        self._runs = runs
        self._plans = plans
        self._freezer = freezer
        self._ledger = ledger

    async def plan(self, actor: Actor, run_id: str, mode: str) -> recovery_pb.RecoveryPlan:
        """What can be tried again. Raises: `NotFound`, `Conflict` (`RUN_NOT_OVER`), `InvalidInput`, `Unreachable`."""
        mode = _checked_mode(mode)
        parent = await self._parent(actor, run_id)
        return (await self._propose(parent, mode)).message

    async def recover(
        self, actor: Actor, request: recovery_pb.RecoverRunRequest, registry: Callable[[], Registry] | None
    ) -> pb.Run:
        """Starts the child run, or gives the one that the key started. `registry` is for callers who may use no others.

        Raises: as `RecoveryService.RecoverRun` says.
        """
        check_key(request.idempotency_key if request.idempotency_key.strip() else "")
        mode, wanted = _checked_mode(request.mode), _checked_cells(request)
        parent = await self._parent(actor, request.run_id)
        existing = await self._runs.by_key(actor, request.idempotency_key)
        if existing is not None:
            return await self._same(existing, parent, mode, wanted)
        if mode == FAILED and not request.acknowledge_new_attempt:
            raise InvalidInput(
                "ACKNOWLEDGMENT_REQUIRED",
                "acknowledge_new_attempt is not true; these cells were sent before and will be paid for again",
                field="acknowledge_new_attempt",
            )
        try:
            return await self._start(actor, request, parent, mode, wanted, registry)
        except Conflict:
            # The same request, sent twice at once: the other one won.
            existing = await self._runs.by_key(actor, request.idempotency_key)
            if existing is None:
                raise
            return await self._same(existing, parent, mode, wanted)

    async def _start(
        self,
        actor: Actor,
        request: recovery_pb.RecoverRunRequest,
        parent: Parent,
        mode: str,
        wanted: list[tuple[str, str]],
        registry: Callable[[], Registry] | None,
    ) -> pb.Run:
        # From here on no executor can dispatch a cell of the parent any more, so the facts that follow are final.
        await self._ledger.seal(parent.row.id)
        proposal = await self._propose(parent, mode)
        cells = _chosen(proposal, request.plan_sha256, wanted)
        frozen = await self._freeze(parent, proposal, cells, registry)
        place = parent.cells
        numbers = [place[pair] for pair in cells]
        digest = recovery_manifest.cells_sha256(cells)
        return await self._runs.create(
            actor,
            request.idempotency_key,
            frozen,
            lambda connection, child: lineage_store.claim(connection, child, parent.row.number, mode, digest, numbers),
        )

    async def lineage(self, actor: Actor, run_id: str) -> recovery_pb.Lineage:
        """The run and every recovery of it and of those. Raises: `NotFound` (`NO_SUCH_RUN`)."""
        row = await self._runs.row(actor, run_id)
        numbers = await self._runs.reader.run(lambda connection: lineage_store.descendants(connection, row.number))
        rows = [row, *await self._runs.rows(numbers)]
        return recovery_pb.Lineage(runs=[self._runs.message(found) for found in rows])

    async def _parent(self, actor: Actor, run_id: str) -> Parent:
        row = await self._runs.row(actor, run_id)
        if row.mode != "live":
            raise InvalidInput("NOT_LIVE", f"run {run_id} is a {row.mode}; only live runs are recovered", run_id=run_id)
        if row.status not in TERMINAL:
            raise Conflict("RUN_NOT_OVER", f"run {run_id} is {row.status}; wait for its end or cancel it", run_id=run_id)
        stored = await self._plans.by_number(row.plan)
        cases = await self._plans.cases(stored.summary.case_sha256)
        return Parent(row, stored, [cases.case_id(index) for index in range(len(cases))])

    async def _propose(self, parent: Parent, mode: str) -> Proposal:
        number, reader = parent.row.number, self._runs.reader
        facts = await self._ledger.ledger(parent.row.id)
        states = await reader.run(lambda connection: lineage_store.states(connection, number))
        claimed = await reader.run(lambda connection: lineage_store.claimed(connection, number))
        evidence = cell_evidence(parent.stored.matrix, states, claimed, facts.cells)
        return propose(self._runs.message(parent.row), list(parent.cells), evidence, facts.spend, mode)

    async def _freeze(
        self,
        parent: Parent,
        proposal: Proposal,
        cells: list[tuple[str, str]],
        registry: Callable[[], Registry] | None,
    ) -> FrozenPlan:
        manifest = parent.stored.manifest
        cases = (await self._plans.cases(parent.stored.summary.case_sha256)).cases
        narrowed = recovery_manifest.child_manifest(manifest, cases, cells)

        def work() -> FrozenPlan:
            frozen = self._freezer.freeze(narrowed, None if registry is None else registry())
            recovery_manifest.check_same_terms(manifest, frozen.manifest)
            return recovery_manifest.with_recovery(frozen, manifest, proposal.block(cells))

        return await asyncio.to_thread(work)

    async def _same(self, row: Any, parent: Parent, mode: str, cells: list[tuple[str, str]]) -> pb.Run:
        """The run of a repeated request. Raises: `Conflict` (`IDEMPOTENCY_CONFLICT`)."""
        known = await self._runs.reader.run(lambda connection: lineage_store.recovery_of(connection, row.number))
        place = parent.cells
        ordered = sorted((pair for pair in cells if pair in place), key=lambda pair: place[pair])
        if known != (parent.row.number, mode, recovery_manifest.cells_sha256(ordered)) or len(ordered) != len(cells):
            raise Conflict(
                "IDEMPOTENCY_CONFLICT",
                f"idempotency_key {row.idempotency_key!r} started run {row.id} with another request; use a new key",
                run_id=row.id,
            )
        return self._runs.message(row)


def _checked_mode(mode: str) -> str:
    if (mode or UNDISPATCHED) not in MODES:
        raise InvalidInput("BAD_FIELD", f"mode is {mode[:100]!r}; expected {' or '.join(MODES)}", field="mode")
    return mode or UNDISPATCHED


def _checked_cells(request: recovery_pb.RecoverRunRequest) -> list[tuple[str, str]]:
    cells = [(cell.case_id, cell.target_id) for cell in request.cells]
    if not cells:
        raise InvalidInput("MISSING_FIELD", "cells is empty; expected the cells to try again", field="cells")
    if len(set(cells)) != len(cells):
        raise InvalidInput("DUPLICATE_CELL", "cells repeats a cell; expected each pair once", field="cells")
    return cells


def _chosen(proposal: Proposal, reviewed_sha256: str, wanted: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The wanted cells in dispatch order. Raises: `Conflict` (`RECOVERY_PLAN_REQUIRED`)."""
    now = proposal.message.plan_sha256
    if reviewed_sha256 != now:
        sentence = "what can be recovered has changed since the plan was made, or plan_sha256 is not of this plan"
        raise Conflict("RECOVERY_PLAN_REQUIRED", f"{sentence}; make a new recovery plan", reviewed=reviewed_sha256, now=now)
    eligible = [(cell.case_id, cell.target_id) for cell in proposal.message.eligible_cells]
    strange = sorted(set(wanted) - set(eligible))
    if strange:
        case, target = strange[0]
        sentence = f"the cell of case {case!r} and target {target!r} is not among the eligible cells of the plan"
        raise Conflict("RECOVERY_PLAN_REQUIRED", f"{sentence}; make a new recovery plan", case_id=case, target_id=target)
    chosen = set(wanted)
    return [pair for pair in eligible if pair in chosen]
