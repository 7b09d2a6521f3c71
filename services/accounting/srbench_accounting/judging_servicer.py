"""The RPCs about how well a run's judges judge: their agreement, and people's audits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from grpc import aio
from srbench.v1 import judging_pb2 as pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.errors import Conflict, InvalidInput

from srbench_accounting import audit_store, views
from srbench_accounting.judging import Cell, Judged, judged_cells
from srbench_accounting.lineage_runs import lineage_runs
from srbench_accounting.reconciling import TERMINAL
from srbench_accounting.store import Store

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
MAX_LABELS = 10_000
MAX_AUDITOR = 200


class JudgingServicer:
    """Looks at judges; grades stay as they are."""

    def __init__(self, store: Store) -> None:
        self._kept = store

    async def GetJudging(self, request: pb.GetJudgingRequest, context: Context) -> pb.Judging:
        store, lineage = self._kept, await lineage_runs(self._kept, request.run_id)
        cases = await store.registry.cases(lineage[0][0])
        report = await store.reader.run(lambda connection: views.report(store, connection, lineage, cases))
        return report.judging if report.HasField("judging") else pb.Judging(run_id=request.run_id)

    async def ImportAudit(self, request: pb.ImportAuditRequest, context: Context) -> pb.Judging:
        registry, kept = self._kept.registry, self._kept
        run, known = await asyncio.gather(registry.planner_run(request.run_id, summary=True), registry.run(request.run_id))
        check_over(run)
        cases = await registry.cases(known)
        found = await kept.reader.run(lambda connection: judged_cells(kept, connection, known, cases))
        check(request, found)
        now_us = time.time_ns() // 1000
        await kept.writer.run(lambda connection: audit_store.append(connection, known.run_no, request, now_us))
        return await self.GetJudging(pb.GetJudgingRequest(run_id=request.run_id), context)


def check_over(run: planner_pb.Run) -> None:
    """Raises: `InvalidInput` (`NOT_LIVE`), `Conflict` (`RUN_NOT_OVER`) unless `run` is a live run that has ended."""
    if run.plan.mode not in ("", "live"):
        raise InvalidInput("NOT_LIVE", f"run {run.id} is a {run.plan.mode}; only live runs have grades of their own")
    if run.status not in TERMINAL:
        raise Conflict("RUN_NOT_OVER", f"run {run.id} is {run.status}; it can be audited when it has ended")


def check(request: pb.ImportAuditRequest, judged: Sequence[Judged]) -> None:
    """Raises: `InvalidInput` (`BAD_FIELD`, `NO_LABELS`, `LISTED_TWICE`, `NOT_JUDGED`)."""
    if not request.auditor.strip() or len(request.auditor) > MAX_AUDITOR:
        raise InvalidInput(
            "BAD_FIELD", f"auditor is {request.auditor[:40]!r}; expected 1 to {MAX_AUDITOR} characters", field="auditor"
        )
    if not 1 <= len(request.labels) <= MAX_LABELS:
        count = len(request.labels)
        raise InvalidInput("NO_LABELS", f"labels has {count} entries; expected 1 to {MAX_LABELS}", field="labels")
    known = {(one.case_id, one.target_id): one for one in judged}
    seen: set[Cell] = set()
    for place, label in enumerate(request.labels):
        cell, where = (label.case_id, label.target_id), f"labels[{place}]"
        if not label.HasField("correct"):
            raise InvalidInput("BAD_FIELD", f"{where}.correct is missing; expected true or false", field=f"{where}.correct")
        if cell in seen:
            raise InvalidInput("LISTED_TWICE", f"{where} labels {cell[0]!r} of {cell[1]!r} a second time", field=where)
        seen.add(cell)
        if cell not in known or known[cell].correct is None:
            sentence = f"{where} labels {cell[0][:200]!r} of {cell[1][:200]!r}, which has no grade by a judge in this run"
            raise InvalidInput("NOT_JUDGED", sentence, field=where)
