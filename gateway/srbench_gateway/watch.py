"""A run's progress and spend as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import views
from srbench_kit.auth import Actor
from srbench_kit.errors import NotFound, SrBenchError, Unreachable
from srbench_kit.values import Json
from starlette.responses import Response, StreamingResponse

from srbench_gateway import answers
from srbench_gateway.backends import Backends

HEARTBEAT_S = 15.0
_HEARTBEAT = b": heartbeat\n\n"


async def watch(backends: Backends, actor: Actor, run_id: str, heartbeat_s: float = HEARTBEAT_S) -> Response:
    """The events of a run until it has ended. A run that is not there is refused before the stream begins.

    Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`.
    """
    changes = backends.planner.stream(backends.plans.WatchRun, planner.WatchRunRequest(id=run_id), actor)
    first = await anext(changes, None)
    stream = _events(backends, actor, first, changes, heartbeat_s)
    headers = answers.API_HEADERS | {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
    return StreamingResponse(stream, headers=headers)


async def _events(
    backends: Backends,
    actor: Actor,
    run: planner.Run | None,
    changes: AsyncIterator[planner.Run],
    heartbeat_s: float,
) -> AsyncIterator[bytes]:
    stopping = asyncio.ensure_future(backends.stopping.wait())
    coming: asyncio.Future[planner.Run | None] | None = None
    try:
        while run is not None:
            yield _event("run", await _run(backends, actor, run))
            coming = asyncio.ensure_future(_next(changes))
            while not (await asyncio.wait({coming, stopping}, timeout=heartbeat_s, return_when="FIRST_COMPLETED"))[0]:
                yield _HEARTBEAT
            if stopping.done():
                return
            run = coming.result()
        yield _event("end", {})
    except SrBenchError as error:
        yield _event("error", {"error": error.message, "code": error.reason.lower(), "reason": error.reason})
    finally:
        stopping.cancel()
        if coming is not None and not coming.done():
            coming.cancel()
            await asyncio.wait({coming})
        await changes.aclose()  # type: ignore[attr-defined]


async def _next(changes: AsyncIterator[planner.Run]) -> planner.Run | None:
    return await anext(changes, None)


async def _run(backends: Backends, actor: Actor, run: planner.Run) -> dict[str, Json]:
    """A run in short with its spend; the spend is null while accounting is away or has heard nothing of the run."""
    request = accounting.GetSpendRequest(run_id=run.id)
    try:
        found = await backends.accounting.ask(backends.facts.GetSpend, request, actor)
        spend: Json = views.plain(found)
    except (NotFound, Unreachable):
        spend = None
    shown = views.plain(run)
    for name in ("plan", "provenance", "idempotency_key"):
        del shown[name]
    return {**shown, "spend": spend}


def _event(name: str, data: dict[str, Json]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + answers.encode(data) + b"\n\n"
