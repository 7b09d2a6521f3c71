"""The RPCs of `PlannerService` about the loop that improves a router: replays, candidates, experiments, recipes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from grpc import aio
from srbench.v1 import experiment_pb2, plan_pb2, recipe_pb2, replay_pb2, target_pb2
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench_kit import auth, pages
from srbench_kit.documents import received
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_planner import candidate, convert, experiments, manifest, store
from srbench_planner.experiments import MAX_PAGE, PAGE, Experiments
from srbench_planner.freeze import Freezer, FrozenPlan, Registry
from srbench_planner.plans import Plans, StoredPlan
from srbench_planner.replays import Replays
from srbench_planner.runs import TERMINAL, Runs
from srbench_planner.target_registry import TargetRegistry

Context: TypeAlias = "aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What these RPCs work with."""

    registry: TargetRegistry
    freezer: Freezer
    plans: Plans
    runs: Runs
    replays: Replays
    experiments: Experiments


class LoopServicer(rpc.PlannerServiceServicer):
    """Replays, candidates, experiments, recipes."""

    def __init__(self, parts: LoopParts) -> None:
        self._loop = parts

    async def CreateReplay(self, request: replay_pb2.CreateReplayRequest, context: Context) -> pb.Run:
        return await self._loop.replays.create(auth.actor(context), request)

    async def CheckReplay(self, request: replay_pb2.CheckReplayRequest, context: Context) -> replay_pb2.ReplayCheck:
        return await self._loop.replays.check(auth.actor(context), request.baseline_run_id, request.preview_run_id)

    async def ListReplayOptions(
        self, request: pb.ListReplayOptionsRequest, context: Context
    ) -> pb.ListReplayOptionsResponse:
        return await self._loop.replays.options(auth.actor(context), request)

    async def CreateCandidatePlan(self, request: pb.CreateCandidatePlanRequest, context: Context) -> plan_pb2.Plan:
        actor, parts = auth.actor(context), self._loop
        row = await parts.runs.row(actor, request.baseline_run_id)
        baseline = await parts.plans.by_number(row.plan)
        _check_baseline(parts.runs.message(row), baseline)
        cases: list[Json] | None = None
        if "dataset" not in baseline.manifest:
            cases = list((await parts.plans.cases(baseline.summary.case_sha256)).cases)

        def freeze() -> FrozenPlan:
            options = parts.registry.benchmark_options()
            registry = Registry(targets=parts.registry.load(), options=options, binding=True)
            wanted = candidate.candidate_manifest(
                baseline.manifest,
                cases,
                registry.targets,
                baseline_run_id=row.id,
                target_ids=list(request.target_ids),
                mode=request.mode,
                name=request.name,
                experiment=received(request.experiment, "experiment"),
            )
            frozen = parts.freezer.freeze(wanted, registry if actor.role != auth.LOCAL else None)
            candidate.check_unchanged(baseline.manifest, frozen)
            return frozen

        frozen = await asyncio.to_thread(freeze)
        experiment = frozen.manifest.get("experiment")
        if isinstance(experiment, dict):
            # Else the plan would be refused only when somebody wants to run it.
            await parts.experiments.row(actor, str(experiment["id"]))
        stored = await parts.plans.save(frozen)
        return await parts.plans.show(stored, whole=True)

    async def CreateExperiment(
        self, request: experiment_pb2.CreateExperimentRequest, context: Context
    ) -> experiment_pb2.Experiment:
        return await self._loop.experiments.create(auth.actor(context), request)

    async def GetExperiment(
        self, request: experiment_pb2.GetExperimentRequest, context: Context
    ) -> experiment_pb2.Experiment:
        return await self._loop.experiments.get(auth.actor(context), request.id)

    async def ListExperiments(
        self, request: experiment_pb2.ListExperimentsRequest, context: Context
    ) -> experiment_pb2.ListExperimentsResponse:
        return await self._loop.experiments.list(auth.actor(context), request)

    async def DeleteExperiment(
        self, request: experiment_pb2.DeleteExperimentRequest, context: Context
    ) -> experiment_pb2.DeletedExperiment:
        return await self._loop.experiments.delete(auth.actor(context), request.id)

    async def ListExperimentRuns(
        self, request: experiment_pb2.ListExperimentRunsRequest, context: Context
    ) -> pb.ListExperimentRunsResponse:
        actor, parts = auth.actor(context), self._loop
        row = await parts.experiments.row(actor, request.id)
        size = pages.page_size(request.page_size, PAGE, MAX_PAGE)
        before = pages.decode(request.page_token, "experiment-runs", request.id)
        links = await parts.experiments.members(row, size, int(before) if before is not None else None)
        response = pb.ListExperimentRunsResponse(experiment=experiments.message(row))
        for link in links[:size]:
            response.members.append(await self._member(link.run_id, link))
        if len(links) > size:
            response.next_page_token = pages.encode(links[size - 1].number, "experiment-runs", request.id)
        return response

    async def AttachExperimentRun(
        self, request: experiment_pb2.AttachExperimentRunRequest, context: Context
    ) -> pb.ExperimentMember:
        actor, parts = auth.actor(context), self._loop
        row = await parts.runs.row(actor, request.run_id)
        stored = await parts.plans.by_number(row.plan)
        plan = stored.summary
        kinds = {"mom" if target.kind == target_pb2.TARGET_KIND_MOM else "single" for target in plan.targets}
        recovery = "recovery" in stored.manifest
        manifest.check_role(request.role, manifest.fitting_roles(plan.mode, plan.profile, kinds, recovery=recovery), "role")
        hypothesis = manifest.hypothesis(request.hypothesis, "hypothesis")
        link = await parts.experiments.attach(actor, request.id, row.number, request.role, hypothesis)
        return await self._member(row.id, link)

    async def ListRunRecipes(
        self, request: recipe_pb2.ListRunRecipesRequest, context: Context
    ) -> recipe_pb2.ListRunRecipesResponse:
        recipes = await self._recipes(auth.actor(context), request.run_id)
        for entry in recipes:
            entry.recipe.ClearField("document") if entry.HasField("recipe") else None
        return recipe_pb2.ListRunRecipesResponse(recipes=recipes)

    async def GetRunRecipe(self, request: recipe_pb2.GetRunRecipeRequest, context: Context) -> recipe_pb2.RunRecipe:
        for entry in await self._recipes(auth.actor(context), request.run_id):
            if entry.target_id == request.target_id:
                if entry.HasField("recipe"):
                    return entry
                raise NotFound(
                    "RECIPE_UNAVAILABLE",
                    f"the recipe of {entry.target_id} was not captured with run {request.run_id} ({entry.reason}); "
                    "no other run's stands in for it",
                    cause=entry.reason,
                )
        raise NotFound("NO_SUCH_TARGET", f"run {request.run_id} has no router {request.target_id!r}")

    async def _recipes(self, actor: auth.Actor, run_id: str) -> list[recipe_pb2.RunRecipe]:
        parts = self._loop
        row = await parts.runs.row(actor, run_id)
        query = sa.select(store.recipes.c.target_id, store.recipes.c.recipe).where(store.recipes.c.run == row.number)
        found = dict(await parts.runs.reader.run(lambda c: list(c.execute(query).all())))
        plan = plan_pb2.Plan.FromString(row.summary)
        routers = [target for target in plan.targets if target.kind == target_pb2.TARGET_KIND_MOM]
        return [_recipe(target, found.get(target.id), plan.mode) for target in routers]

    async def _member(self, run_id: str, link: Any) -> pb.ExperimentMember:
        row = await self._loop.runs.row(None, run_id)
        return pb.ExperimentMember(
            run=self._loop.runs.message(row),
            role=link.role,
            hypothesis=link.hypothesis,
            create_time=convert.timestamp(link.create_us),
        )


def _recipe(target: target_pb2.Target, saved: bytes | None, mode: str) -> recipe_pb2.RunRecipe:
    entry = recipe_pb2.RunRecipe(target_id=target.id, config_hash=target.config_hash)
    if saved is not None:
        entry.status = "captured"
        entry.recipe.ParseFromString(saved)
    else:
        entry.status = "unavailable"
        entry.reason = "replay_reads_no_router" if mode == "replay" else "not_requested"
    return entry


def _check_baseline(run: pb.Run, stored: StoredPlan) -> None:
    problem = ""
    if run.status not in TERMINAL or run.plan.mode != "live":
        problem = f"it is {run.status} in mode {run.plan.mode}; expected a live run that has ended"
    elif not any(target.kind == target_pb2.TARGET_KIND_SINGLE for target in run.plan.targets):
        problem = "it has no single model; expected one at least"
    elif stored.matrix.picked is not None or "recovery" in stored.manifest:
        problem = "it has only some of its cells; expected the whole matrix"
    if problem:
        raise InvalidInput("BASELINE_NOT_ELIGIBLE", f"run {run.id} cannot be a baseline: {problem}", run_id=run.id)
