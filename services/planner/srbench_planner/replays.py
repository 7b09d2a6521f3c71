"""Replays: checked against saved facts, stored as runs that no executor works on, told to accounting as copies.

A replay's choices follow from facts that are final, so that one which was cut off is simply checked again and finished.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import plan_pb2, replay_pb2, target_pb2
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import chat_request, pages
from srbench_kit.auth import LOCAL, Actor
from srbench_kit.completion import dump_json
from srbench_kit.db import GroupWriter
from srbench_kit.errors import InvalidInput, SrBenchError
from srbench_kit.values import Json, object_of

from srbench_planner import provenance, replay_rules, run_rows, store
from srbench_planner.case_set import fill_public_case
from srbench_planner.cells import CellState
from srbench_planner.journal import event_row, now_us
from srbench_planner.plans import Plans
from srbench_planner.ports import Benchmarks
from srbench_planner.replay_plan import replay_plan
from srbench_planner.replay_rules import Checked, Choice, Side
from srbench_planner.runs import Runs
from srbench_planner.saved_facts import SavedFacts, SavedRuns

PAGE, MAX_PAGE = 10, 25
MAX_PAIRS = 64
MAX_SCAN_S = 5.0
RECORD_BATCH = 500
MAX_SHOWN_CODES = 5
_log = logging.getLogger(__name__)


class Replays:
    """Makes replays and says which are possible."""

    def __init__(self, writer: GroupWriter, runs: Runs, plans: Plans, benchmarks: Benchmarks, ledger: SavedRuns) -> None:
        self._writer = writer
        self._runs = runs
        self._plans = plans
        self._benchmarks = benchmarks
        self._ledger = ledger
        self._facts = SavedFacts(ledger)
        # One at a time: a replay is work for this process alone, and the same one must not be written twice at once.
        self._writing = asyncio.Lock()

    async def check(self, actor: Actor, baseline_id: str, preview_id: str) -> replay_pb2.ReplayCheck:
        """See `PlannerService.CheckReplay`."""
        baseline, preview = await self._sides(actor, baseline_id, preview_id)
        checked = await self._checked(baseline, preview)
        return _message(checked, len(preview.matrix))

    async def create(self, actor: Actor, request: replay_pb2.CreateReplayRequest) -> pb.Run:
        """See `PlannerService.CreateReplay`."""
        baseline, preview = await self._sides(actor, request.baseline_run_id, request.preview_run_id)
        checked = await self._checked(baseline, preview)
        if checked.rejections:
            raise _ineligible(checked)
        rows = [await self._runs.row(actor, name) for name in (request.baseline_run_id, request.preview_run_id)]
        stored = [await self._plans.by_number(row.plan) for row in rows]
        frozen = replay_plan(
            stored[0].manifest,
            stored[1].manifest,
            [dict(case) for case in preview.cases],
            baseline_run_id=request.baseline_run_id,
            preview_run_id=request.preview_run_id,
        )
        key = request.idempotency_key
        row = await self._runs.same_by_key(actor, key, frozen)
        if row is None:
            new = run_rows.NewRun(
                actor=actor,
                key=key,
                stored=await self._plans.save(frozen),
                status="running",
                provenance=json.dumps(await asyncio.to_thread(provenance.capture)),
            )
            row, _ = await self._writer.run(lambda connection: run_rows.insert(connection, new))
        await self._finish(row, request.baseline_run_id, request.preview_run_id, checked.choices)
        return self._runs.message(await self._runs.row(actor, row.id))

    async def resume(self) -> None:
        """Finishes the replays that a former process left unfinished."""
        open_replay = (store.runs.c.mode == "replay") & (store.runs.c.status == "running")
        rows = await self._runs.reader.run(
            lambda c: list(c.execute(sa.select(store.runs.c.id, store.runs.c.plan).where(open_replay)).all())
        )
        for found in rows:
            try:
                await self._resume(found.id, found.plan)
            except SrBenchError as error:
                _log.warning("the replay %s cannot be finished yet: %s", found.id, error.message)

    async def options(self, actor: Actor, request: pb.ListReplayOptionsRequest) -> pb.ListReplayOptionsResponse:
        """See `PlannerService.ListReplayOptions`."""
        size = pages.page_size(request.page_size, PAGE, MAX_PAGE)
        filters = ("replay-options", request.baseline_run_id, actor.id, actor.sees_all)
        before = pages.decode(request.page_token, *filters)
        scan = _Scan(size, int(before) if before is not None else None)
        response = pb.ListReplayOptionsResponse()
        if request.baseline_run_id:
            row = await self._runs.row(actor, request.baseline_run_id)
            response.baseline.CopyFrom(self._runs.message(row))
            if not _can_be_baseline(response.baseline):
                response.empty_reason = "baseline_not_eligible_live_single"
                return response
            response.options.extend(await self._fitting(actor, row, scan))
        else:
            response.baselines.extend(await self._baselines(actor, scan))
        response.scanned_pairs, response.scan_limited = scan.pair_count, scan.limited
        response.unverified_pairs, response.unverified_baselines = scan.unverified_pairs, scan.unverified_baselines
        response.has_more = scan.more
        if scan.more and scan.last is not None:
            response.next_page_token = pages.encode(scan.last, *filters)
        if not (response.options or response.baselines or scan.more or request.page_token):
            response.empty_reason = "no_compatible_saved_runs"
        return response

    async def _fitting(self, actor: Actor, baseline: Any, scan: _Scan) -> list[pb.Run]:
        found: list[pb.Run] = []
        for row in await self._ended(actor, "preview", scan.before):
            if len(found) >= scan.size or scan.exhausted():
                scan.more = True
                break
            scan.last = row.number
            if await self._fits(actor, baseline, row, scan):
                found.append(self._runs.message(row))
        return found

    async def _baselines(self, actor: Actor, scan: _Scan) -> list[pb.Run]:
        found: list[pb.Run] = []
        previews = await self._ended(actor, "preview", None)
        for row in await self._ended(actor, "live", scan.before):
            if len(found) >= scan.size or scan.exhausted():
                scan.more = True
                break
            scan.last = row.number
            message = self._runs.message(row)
            if not _can_be_baseline(message):
                continue
            unverified = scan.unverified_pairs
            for preview in previews:
                if scan.exhausted():
                    break
                if await self._fits(actor, row, preview, scan):
                    found.append(message)
                    break
            else:
                scan.unverified_baselines += scan.unverified_pairs > unverified
        return found

    async def _fits(self, actor: Actor, baseline: Any, preview: Any, scan: _Scan) -> bool:
        scan.pair_count += 1
        try:
            sides = await self._sides(actor, baseline.id, preview.id)
            return not (await self._checked(*sides)).rejections
        except SrBenchError as error:
            _log.warning("whether %s fits %s cannot be told: %s", preview.id, baseline.id, error.message)
            scan.unverified_pairs += 1
            return False

    async def _ended(self, actor: Actor, mode: str, before: int | None) -> Sequence[Any]:
        query = run_rows.LISTED.where(store.runs.c.mode == mode, store.runs.c.status == "completed")
        if not actor.sees_all:
            query = query.where(store.runs.c.owner == actor.id)
        if before is not None:
            query = query.where(store.runs.c.number < before)
        query = query.order_by(store.runs.c.number.desc()).limit(MAX_PAIRS * 4)
        return await self._runs.reader.run(lambda connection: list(connection.execute(query).all()))

    async def _sides(self, actor: Actor, baseline_id: str, preview_id: str) -> tuple[Side, Side]:
        return await self._side(actor, baseline_id), await self._side(actor, preview_id)

    async def _side(self, actor: Actor, run_id: str) -> Side:
        row = await self._runs.row(actor, run_id)
        stored = await self._plans.by_number(row.plan)
        cases = await self._plans.cases(stored.summary.case_sha256)
        options = stored.manifest.get("benchmark_options")
        return Side(
            run_id=run_id,
            status=self._runs.message(row).status,
            plan=stored.summary,
            options=options if isinstance(options, dict) else {},
            cases=cases.cases,
            matrix=stored.matrix,
        )

    async def _checked(self, baseline: Side, preview: Side) -> Checked:
        found = await asyncio.to_thread(replay_rules.check_runs, baseline, preview, self._benchmarks.specs)
        if found:
            return Checked(tuple(found), ())
        cells = {
            (str(case["id"]), target.id): index * len(baseline.plan.targets) + place
            for index, case in enumerate(baseline.cases)
            for place, target in enumerate(baseline.plan.targets)
        }
        saved = await self._facts.answers(baseline.run_id, lambda case, target: cells[case, target])
        routed = await self._facts.routed(preview.run_id)
        digest = request_digests(object_of(baseline.plan.sampling))
        return await asyncio.to_thread(replay_rules.check_cells, baseline, preview, saved, routed, digest)

    async def _resume(self, run_id: str, plan: int) -> None:
        everybody = Actor(id=LOCAL, role=LOCAL)
        sources = (await self._plans.by_number(plan)).manifest.get("replay_sources")
        assert isinstance(sources, dict), "every replay names its sources"
        baseline_id, preview_id = str(sources["baseline_run_id"]), str(sources["preview_run_id"])
        checked = await self._checked(*await self._sides(everybody, baseline_id, preview_id))
        if checked.rejections:
            raise _ineligible(checked)
        await self._finish(await self._runs.row(None, run_id), baseline_id, preview_id, checked.choices)

    async def _finish(self, row: Any, baseline_id: str, preview_id: str, choices: Sequence[Choice]) -> None:
        """Tells accounting what is copied, then ends the run. Does nothing for one that has ended."""
        async with self._writing:
            if (await self._runs.row(None, row.id)).status != "running":
                return
            for start in range(0, len(choices), RECORD_BATCH):
                request = accounting_pb.RecordReplayRequest(
                    run_id=row.id, source_run_id=baseline_id, preview_run_id=preview_id
                )
                request.cells.extend(_replayed(choice) for choice in choices[start : start + RECORD_BATCH])
                await self._ledger.record_replay(request)
            cells = [choice.cell for choice in choices]
            await self._writer.run(lambda connection: _end(connection, row.number, cells))


class _Scan:
    """How far a search for fitting pairs is."""

    def __init__(self, size: int, before: int | None) -> None:
        self.size = size
        self.before = before
        self.last: int | None = before
        self.more = False
        self.limited = False
        self.pair_count = 0
        self.unverified_pairs = 0
        self.unverified_baselines = 0
        self._until = time.monotonic() + MAX_SCAN_S

    def exhausted(self) -> bool:
        """Whether the page has looked at enough."""
        self.limited = self.limited or self.pair_count >= MAX_PAIRS or time.monotonic() > self._until
        return self.limited


def _can_be_baseline(run: pb.Run) -> bool:
    singles = any(target.kind == target_pb2.TARGET_KIND_SINGLE for target in run.plan.targets)
    return run.status == "completed" and run.plan.mode == "live" and singles


def request_digests(sampling: dict[str, Json]) -> replay_rules.RequestDigest:
    """Works out again what was sent, by the rules that executors send by."""

    def digest(target: target_pb2.Target, case: Mapping[str, Json]) -> str:
        public = plan_pb2.PublicCase()
        fill_public_case(public, case)
        params = chat_request.parameters(sampling, object_of(target.request_params))
        messages = chat_request.chat_messages(public.messages)
        fields = chat_request.request_fields(target, params, messages, object_of(public.request_fields))
        return hashlib.sha256(dump_json(fields)).hexdigest()

    return digest


def _replayed(choice: Choice) -> accounting_pb.ReplayedCell:
    return accounting_pb.ReplayedCell(
        cell=choice.cell,
        case_index=choice.case,
        target_index=choice.target,
        source_cell=choice.source_cell,
        selected_model=choice.model,
        decision=choice.decision,
        config_hash=choice.config_hash,
    )


def _message(checked: Checked, cell_count: int) -> replay_pb2.ReplayCheck:
    found = replay_pb2.ReplayCheck(eligible=not checked.rejections, cell_count=cell_count)
    for item in checked.rejections:
        found.reasons.add(code=item.code, message=item.message, case_id=item.case_id, target_id=item.target_id)
    for choice in checked.choices:
        found.selected_models[choice.model] += 1
    return found


def _ineligible(checked: Checked) -> InvalidInput:
    counts: dict[str, int] = {}
    for item in checked.rejections:
        counts[item.code] = counts.get(item.code, 0) + 1
    shown = ", ".join(f"{code} ({count})" for code, count in list(counts.items())[:MAX_SHOWN_CODES])
    first = checked.rejections[0]
    where = f"case {first.case_id}: " if first.case_id else ""
    return InvalidInput(
        "REPLAY_INELIGIBLE",
        f"these runs cannot be replayed: {shown}; first of all, {where}{first.message}",
        reason_count=len(checked.rejections),
        codes=" ".join(counts),
    )


def _end(connection: Connection, number: int, cells: list[int]) -> None:
    rows: list[store.CellRow] = [(number, cell, int(CellState.DONE), 0, None, None) for cell in cells]
    store.save_cells(connection, rows)
    counts = {"done_count": len(cells), "failed_count": 0, "cancelled_count": 0, "interrupted_count": 0}
    ended = store.runs.update().where(store.runs.c.number == number)
    connection.execute(ended.values(status="completed", update_us=now_us(), **counts))
    facts: dict[str, Json] = {"cells": {"done": len(cells)}, "model_requests": 0}
    connection.execute(store.events.insert(), event_row(number, "completed", facts))
