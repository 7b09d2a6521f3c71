"""Frozen manifests of runs, kept in memory: they never change, and pollers ask for them again and again."""

from __future__ import annotations

from collections import OrderedDict

import orjson
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import views
from srbench_kit.auth import Actor
from srbench_kit.values import Json

from srbench_gateway import answers
from srbench_gateway.backends import Backends

MAX_BYTES = 64 * 1024 * 1024


class Manifests:
    """The JSON of runs' manifests without cases, by run; the least recently used go first."""

    def __init__(self, backends: Backends, max_bytes: int = MAX_BYTES) -> None:
        self._backends = backends
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def show(self, run_id: str, actor: Actor) -> dict[str, Json]:
        """A run as `GET /runs/{id}` shows it. The planner decides each time whether `actor` may see it.

        Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`.
        """
        return await self.complete(await self._ask(run_id, actor, summary=run_id in self._kept), actor)

    async def complete(self, run: planner.Run, actor: Actor) -> dict[str, Json]:
        """`run`, as any call answered it, with its manifest."""
        if run.id not in self._kept:
            full = run.plan.HasField("manifest")
            self._keep(run if full else await self._ask(run.id, actor, summary=False))
        self._kept.move_to_end(run.id)
        manifest: Json = orjson.Fragment(self._kept[run.id])  # type: ignore[assignment]
        return views.run(run, manifest)

    async def _ask(self, run_id: str, actor: Actor, *, summary: bool) -> planner.Run:
        request = planner.GetRunRequest(id=run_id, summary=summary, without_cases=True)
        return await self._backends.planner.ask(self._backends.plans.GetRun, request, actor)

    def _keep(self, run: planner.Run) -> None:
        data = answers.encode(views.frozen_manifest(run))
        self._bytes += len(data) - len(self._kept.pop(run.id, b""))
        self._kept[run.id] = data
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])
