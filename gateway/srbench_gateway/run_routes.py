"""Routes that start runs, list them and steer them."""

from __future__ import annotations

from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import views
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import to_value

from srbench_gateway.bodies import kind_of
from srbench_gateway.fields import fill, unknown
from srbench_gateway.params import Param
from srbench_gateway.planning_routes import AFTER, cursor
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.schema import INTEGER, TEXT, listed, nullable, record, ref

START_TIMEOUT_S = 120.0
STATUSES = ("queued", "running", "completed", "failed", "cancelled", "interrupted")
MODES = ("live", "preview", "replay")
PROFILES = ("smoke", "quick", "standard")


async def runs(ask: Ask) -> Object:
    request = planner.ListRunsRequest(
        page_size=ask.number("limit"),
        page_token=ask.text("after"),
        status=ask.text("status"),
        query=ask.text("q"),
        mode=ask.text("mode"),
        profile=ask.text("profile"),
    )
    found = await ask.planner(ask.plans.ListRuns, request)
    return {
        "runs": [views.run_row(item) for item in found.runs],
        "total": found.total,
        "limit": ask.number("limit"),
        "next_cursor": cursor(found.next_page_token),
    }


async def create_run(ask: Ask) -> Object:
    try:
        run = await ask.planner(ask.plans.CreateRun, ask.body, START_TIMEOUT_S)
    except Unreachable as error:
        sentence = f"{error.message}; the run may have started: look at the list of runs before sending it again"
        raise Unreachable(error.reason, sentence, idempotency_key=ask.body.idempotency_key) from None
    return await ask.manifests.complete(run, ask.actor)


async def run(ask: Ask) -> Object:
    return await ask.manifests.show(ask.ids["run_id"], ask.actor)


async def cancel_run(ask: Ask) -> Object:
    request = planner.CancelRunRequest(id=ask.ids["run_id"])
    found = await ask.planner(ask.plans.CancelRun, request)
    return await ask.manifests.complete(found, ask.actor)


async def pause_run(ask: Ask) -> Object:
    found = await ask.planner(ask.plans.PauseRun, planner.PauseRunRequest(id=ask.ids["run_id"]))
    return await ask.manifests.complete(found, ask.actor)


async def resume_run(ask: Ask) -> Object:
    found = await ask.planner(ask.plans.ResumeRun, planner.ResumeRunRequest(id=ask.ids["run_id"]))
    return await ask.manifests.complete(found, ask.actor)


async def set_concurrency(ask: Ask) -> Object:
    request = planner.SetRunConcurrencyRequest(id=ask.ids["run_id"], concurrency=ask.body.concurrency)
    found = await ask.planner(ask.plans.SetRunConcurrency, request)
    return await ask.manifests.complete(found, ask.actor)


def _run_body(body: Object) -> planner.CreateRunRequest:
    """A start without a key gets one of its own, as in the released service: it is a new run each time."""
    unknown(body, ["manifest", "idempotency_key"], "field")
    check_required(body, ["manifest"])
    if not isinstance(body["manifest"], dict):
        raise InvalidInput("BAD_TYPE", f"manifest is {kind_of(body['manifest'])}; expected an object", field="manifest")
    key = body.get("idempotency_key")
    if key is None:
        key = uuid7_hex()
    request = fill(planner.CreateRunRequest(), {"idempotency_key": key})
    if not 1 <= len(request.idempotency_key) <= 200:
        length = len(request.idempotency_key)
        raise InvalidInput(
            "BAD_IDEMPOTENCY_KEY", f"idempotency_key has {length} characters; expected 1 to 200", field="idempotency_key"
        )
    request.manifest.CopyFrom(to_value(body["manifest"]))
    return request


def _empty_body(body: Object) -> planner.CancelRunRequest:
    unknown(body, [], "field")
    return planner.CancelRunRequest()


def _concurrency_body(body: Object) -> planner.SetRunConcurrencyRequest:
    unknown(body, ["concurrency"], "field")
    check_required(body, ["concurrency"])
    return fill(planner.SetRunConcurrencyRequest(), body)


CONCURRENCY = Body(
    message=planner.SetRunConcurrencyRequest,
    make=_concurrency_body,
    required=("concurrency",),
    schema=record(concurrency={**INTEGER, "minimum": 1, "maximum": 100_000}),
)
START = Body(message=planner.CreateRunRequest, make=_run_body, carries_plan=True, required=("manifest",))
NOTHING = Body(message=planner.CancelRunRequest, make=_empty_body, may_be_empty=True, schema=record())
ROUTES = [
    Route(
        method="GET",
        path="/runs",
        about="Lists runs, newest first, with the short part of their manifests.",
        answer=runs,
        params=(
            AFTER,
            Param("limit", "int", "Most to return.", 1, 500, default=50),
            Param("status", "text", "Only this status.", choices=STATUSES),
            Param("mode", "text", "Only this mode.", choices=MODES),
            Param("profile", "text", "Only this profile.", choices=PROFILES),
            Param("q", "text", "Only runs whose id or name, or a target's id, kind or model holds this.", high=200),
        ),
        shows=record(runs=listed(ref("RunRow")), total=INTEGER, limit=INTEGER, next_cursor=nullable(TEXT)),
    ),
    Route(
        method="POST",
        path="/runs",
        about="Starts a run. The same key with the same manifest gives the run that exists; without a key it is a new run.",
        answer=create_run,
        body=START,
        status=201,
        shows=ref("Run"),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}",
        about="Gives a run and its frozen manifest, without the cases.",
        answer=run,
        shows=ref("Run"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/cancel",
        about="Stops a run. A run that has ended is given as it is.",
        answer=cancel_run,
        body=NOTHING,
        shows=ref("Run"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/pause",
        about="Leases no more cells of a run; those in hand go on to their end. The run's deadline goes on.",
        answer=pause_run,
        body=NOTHING,
        shows=ref("Run"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/resume",
        about="Leases cells of a paused run again.",
        answer=resume_run,
        body=NOTHING,
        shows=ref("Run"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/concurrency",
        about="Changes how many cells of a run may be in hand at once; the frozen plan keeps its number.",
        answer=set_concurrency,
        body=CONCURRENCY,
        shows=ref("Run"),
    ),
]
