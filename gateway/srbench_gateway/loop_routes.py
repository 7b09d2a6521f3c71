"""Routes about the loop that improves a router: replays, candidate plans, experiments, recipes."""

from __future__ import annotations

import json
import re

from srbench.v1 import experiment_pb2, recipe_pb2, replay_pb2
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import pages, views
from srbench_kit.errors import InvalidInput
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json, to_value
from starlette.responses import Response

from srbench_gateway import answers
from srbench_gateway.fields import fill, unknown
from srbench_gateway.params import Param
from srbench_gateway.planning_routes import AFTER, AFTER_NUMBER, CHECKED_PLAN, FREEZE_TIMEOUT_S
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.run_routes import START_TIMEOUT_S
from srbench_gateway.schema import BOOLEAN, INTEGER, NO_MODEL_REQUESTS, TEXT, listed, nullable, record, ref

_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")


async def create_replay(ask: Ask) -> Object | Response:
    """A refusal lists everything that stands against the replay, case by case."""
    try:
        run = await ask.planner(ask.plans.CreateReplay, ask.body, START_TIMEOUT_S)
    except InvalidInput as error:
        if error.reason != "REPLAY_INELIGIBLE":
            raise
        request = replay_pb2.CheckReplayRequest(
            baseline_run_id=ask.body.baseline_run_id, preview_run_id=ask.body.preview_run_id
        )
        check = await ask.planner(ask.plans.CheckReplay, request, START_TIMEOUT_S)
        return answers.refusal(error, more={"reasons": views.replay_check(check)["reasons"]})
    return await ask.manifests.complete(run, ask.actor)


async def replay_options(ask: Ask) -> Object:
    request = planner.ListReplayOptionsRequest(
        baseline_run_id=ask.text("baseline_run_id"), page_size=ask.number("limit"), page_token=ask.text("after")
    )
    return views.replay_options(await ask.planner(ask.plans.ListReplayOptions, request, START_TIMEOUT_S))


async def candidate_plan(ask: Ask) -> Object:
    ask.body.baseline_run_id = ask.ids["run_id"]
    return views.plan_checked(await ask.planner(ask.plans.CreateCandidatePlan, ask.body, FREEZE_TIMEOUT_S))


async def experiments(ask: Ask) -> Object:
    token = pages.from_number(ask.number("after"))
    request = experiment_pb2.ListExperimentsRequest(page_size=ask.number("limit"), page_token=token)
    found = await ask.planner(ask.plans.ListExperiments, request)
    shown: list[Json] = [views.plain(item) for item in found.experiments]
    return {"experiments": shown, **_further(found.next_page_token)}


def _further(token: str) -> Object:
    """Whether there is more, and where it goes on."""
    return {"next_cursor": pages.as_number(token), "has_more": bool(token)}


async def create_experiment(ask: Ask) -> Object:
    found = await ask.planner(ask.plans.CreateExperiment, ask.body)
    return views.plain(found)


async def experiment(ask: Ask) -> Object:
    request = experiment_pb2.GetExperimentRequest(id=ask.ids["experiment_id"])
    found = await ask.planner(ask.plans.GetExperiment, request)
    return views.plain(found)


async def delete_experiment(ask: Ask) -> Object:
    request = experiment_pb2.DeleteExperimentRequest(id=ask.ids["experiment_id"])
    found = await ask.planner(ask.plans.DeleteExperiment, request)
    return views.experiment_deletion(found)


async def experiment_runs(ask: Ask) -> Object:
    request = experiment_pb2.ListExperimentRunsRequest(
        id=ask.ids["experiment_id"], page_size=ask.number("limit"), page_token=pages.from_number(ask.number("after"))
    )
    found = await ask.planner(ask.plans.ListExperimentRuns, request)
    members: list[Json] = [views.experiment_member(item) for item in found.members]
    return {"experiment": views.plain(found.experiment), "members": members, **_further(found.next_page_token)}


async def attach_run(ask: Ask) -> Object:
    """The link, with the experiment as it is now: released clients read the latter."""
    ask.body.id = ask.ids["experiment_id"]
    member = views.experiment_member(await ask.planner(ask.plans.AttachExperimentRun, ask.body))
    return {**await experiment(ask), **member}


async def recipes(ask: Ask) -> Object:
    request = recipe_pb2.ListRunRecipesRequest(run_id=ask.ids["run_id"])
    found = await ask.planner(ask.plans.ListRunRecipes, request)
    shown: list[Json] = [views.run_recipe(item) for item in found.recipes]
    return {"recipes": shown}


async def recipe(ask: Ask) -> Response:
    request = recipe_pb2.GetRunRecipeRequest(run_id=ask.ids["run_id"], target_id=ask.text("target_id"))
    found = await ask.planner(ask.plans.GetRunRecipe, request)
    name = _FILE_NAME.sub("_", f"{ask.ids['run_id']}-{found.target_id}-recipe.json")
    text = json.dumps(views.recipe(found), ensure_ascii=False, indent=2) + "\n"
    headers = answers.API_HEADERS | {
        "content-type": "application/json; charset=utf-8",
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Response(text.encode("utf-8", "replace"), headers=headers)


def _replay_body(body: Object) -> replay_pb2.CreateReplayRequest:
    """A replay without a key is a new run each time, as a start without one is."""
    check_required(body, ("baseline_run_id", "preview_run_id"))
    key = body.get("idempotency_key")
    return fill(replay_pb2.CreateReplayRequest(), {**body, "idempotency_key": uuid7_hex() if key is None else key})


def _experiment_body(body: Object) -> experiment_pb2.CreateExperimentRequest:
    """An experiment without a key is a new one each time, as a start without one is."""
    check_required(body, ("name",))
    key = body.get("idempotency_key")
    return fill(experiment_pb2.CreateExperimentRequest(), {**body, "idempotency_key": uuid7_hex() if key is None else key})


def _candidate_body(body: Object) -> planner.CreateCandidatePlanRequest:
    unknown(body, ("target_ids", "mode", "name", "experiment"), "field")
    check_required(body, ("target_ids",))
    request = fill(planner.CreateCandidatePlanRequest(), {key: body[key] for key in body if key != "experiment"})
    if body.get("experiment") is not None:
        request.experiment.CopyFrom(to_value(body["experiment"]))
    return request


def _attach_body(body: Object) -> experiment_pb2.AttachExperimentRunRequest:
    unknown(body, ("run_id", "role", "hypothesis"), "field")
    check_required(body, ("run_id", "role"))
    return fill(
        experiment_pb2.AttachExperimentRunRequest(), {key: value for key, value in body.items() if value is not None}
    )


REPLAY = Body(message=replay_pb2.CreateReplayRequest, make=_replay_body, required=("baseline_run_id", "preview_run_id"))
CANDIDATE = Body(
    message=planner.CreateCandidatePlanRequest,
    make=_candidate_body,
    schema={
        "type": "object",
        "properties": {
            "target_ids": {"type": "array", "items": {"type": "string"}},
            "mode": {"enum": ["live", "preview"]},
            "name": {"type": "string"},
            "experiment": {"type": ["object", "null"]},
        },
        "required": ["target_ids"],
        "additionalProperties": False,
    },
)
EXPERIMENT = Body(message=experiment_pb2.CreateExperimentRequest, make=_experiment_body, required=("name",))
ATTACH = Body(
    message=experiment_pb2.AttachExperimentRunRequest,
    make=_attach_body,
    schema={
        "type": "object",
        "properties": {
            "run_id": {"type": "string"},
            "role": {"type": "string"},
            "hypothesis": {"type": ["string", "null"]},
        },
        "required": ["run_id", "role"],
        "additionalProperties": False,
    },
)
_LIMIT_25 = Param("limit", "int", "Most to return.", 1, 25, default=10)
_LIMIT_50 = Param("limit", "int", "Most to return.", 1, 50, default=20)
_RUN_OPTIONS = listed(ref("RunOption"))

ROUTES = [
    Route(
        method="POST",
        path="/replays",
        about="Makes a run of saved single answers that a preview selects. No model is called.",
        answer=create_replay,
        body=REPLAY,
        status=201,
        shows=ref("Run"),
    ),
    Route(
        method="GET",
        path="/replay-options",
        about="Lists baselines that have a fitting preview or, for one baseline, the previews that fit it.",
        answer=replay_options,
        params=(Param("baseline_run_id", "text", "List the previews that fit this run.", high=64), AFTER, _LIMIT_25),
        shows=record(
            baseline=nullable(ref("RunOption")),
            baselines=_RUN_OPTIONS,
            options=_RUN_OPTIONS,
            next_cursor=nullable(TEXT),
            has_more=BOOLEAN,
            scanned_pairs=INTEGER,
            model_requests=NO_MODEL_REQUESTS,
            scan_limited=BOOLEAN,
            unverified_pairs=INTEGER,
            unverified_baselines=INTEGER,
            empty_reason=nullable(TEXT),
        ),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/candidate-plan",
        about="Freezes a plan that asks registered routers exactly what a baseline asked its targets.",
        answer=candidate_plan,
        body=CANDIDATE,
        shows=CHECKED_PLAN,
    ),
    Route(
        method="GET",
        path="/experiments",
        about="Lists experiments, newest first.",
        answer=experiments,
        params=(AFTER_NUMBER, _LIMIT_50),
        shows=record(experiments=listed(ref(experiment_pb2.Experiment)), next_cursor=nullable(INTEGER), has_more=BOOLEAN),
    ),
    Route(
        method="POST",
        path="/experiments",
        about="Creates an experiment; the same key with the same name gives the one that exists.",
        answer=create_experiment,
        body=EXPERIMENT,
        status=201,
        shows=ref(experiment_pb2.Experiment),
    ),
    Route(
        method="GET",
        path="/experiments/{experiment_id}",
        about="Gives one experiment.",
        answer=experiment,
        shows=ref(experiment_pb2.Experiment),
    ),
    Route(
        method="DELETE",
        path="/experiments/{experiment_id}",
        about="Deletes an experiment and keeps its runs; refused while one of them has not ended.",
        answer=delete_experiment,
        shows=ref("DeletedExperiment"),
    ),
    Route(
        method="GET",
        path="/experiments/{experiment_id}/runs",
        about="Lists the runs of an experiment, newest link first.",
        answer=experiment_runs,
        params=(AFTER_NUMBER, _LIMIT_50),
        shows=record(
            experiment=ref(experiment_pb2.Experiment),
            members=listed(ref("ExperimentMember")),
            next_cursor=nullable(INTEGER),
            has_more=BOOLEAN,
        ),
    ),
    Route(
        method="POST",
        path="/experiments/{experiment_id}/runs",
        about="Links a run to an experiment. The same link again changes nothing.",
        answer=attach_run,
        body=ATTACH,
        shows=ref("AttachedRun"),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/recipes",
        about="Says, for every router of a run, whether its recipe was captured.",
        answer=recipes,
        shows=record(recipes=listed(ref(recipe_pb2.RunRecipe))),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/recipes/download",
        about="Downloads the recipe of one router of a run; 404 when it was not captured.",
        answer=recipe,
        params=(Param("target_id", "text", "The router.", high=256, required=True),),
        shows=ref(recipe_pb2.Recipe),
    ),
]
