"""The part of the fake planner that is about replays, candidates, experiments and recipes."""

from __future__ import annotations

from typing import Any

from srbench.v1 import experiment_pb2, plan_pb2, recipe_pb2, replay_pb2
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_kit import auth, jsonview, pages
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.values import to_value

EXPERIMENT_ID = "exp-" + "a" * 32
ENDED = ("completed", "failed", "cancelled", "interrupted")


class FakeLoop(planner_rpc.PlannerServiceServicer):
    """Holds experiments; `reasons` speak against every replay."""

    runs: dict[str, planner.Run]

    def _init_loop(self) -> None:
        self.experiments: dict[str, experiment_pb2.Experiment] = {}
        self.members: list[planner.ExperimentMember] = []
        self.experiment_keys: list[str] = []
        self.reasons: list[replay_pb2.ReplayRejection] = []

    async def _enter(self, request: Any, context: Any) -> auth.Actor:
        raise NotImplementedError

    def _run(self, run_id: str, actor: auth.Actor) -> planner.Run:
        raise NotImplementedError

    async def CreateReplay(self, request: Any, context: Any) -> planner.Run:
        actor = await self._enter(request, context)
        self._run(request.preview_run_id, actor)
        if self.reasons:
            raise InvalidInput("REPLAY_INELIGIBLE", "these runs cannot be replayed")
        return self._run(request.baseline_run_id, actor)

    async def CheckReplay(self, request: Any, context: Any) -> replay_pb2.ReplayCheck:
        await self._enter(request, context)
        return replay_pb2.ReplayCheck(eligible=not self.reasons, reasons=self.reasons)

    async def ListReplayOptions(self, request: Any, context: Any) -> planner.ListReplayOptionsResponse:
        actor = await self._enter(request, context)
        found = planner.ListReplayOptionsResponse(scanned_pairs=1)
        if request.baseline_run_id:
            found.baseline.CopyFrom(self._run(request.baseline_run_id, actor))
            found.empty_reason = "no_compatible_saved_runs"
        else:
            found.baselines.extend(self.runs.values())
        return found

    async def CreateCandidatePlan(self, request: Any, context: Any) -> plan_pb2.Plan:
        actor = await self._enter(request, context)
        self._run(request.baseline_run_id, actor)
        plan = plan_pb2.Plan(plan_sha256="1" * 64, case_sha256="c" * 64, total=2, case_count=1)
        manifest = {
            "version": "sr-bench-1.0",
            "name": "candidate",
            "mode": request.mode,
            "targets": [],
            "limits": jsonview.to_json(plan_pb2.Limits()),
        }
        plan.manifest.CopyFrom(to_value(manifest | {"baseline_run_id": request.baseline_run_id}))
        return plan

    def _experiment(self, identifier: str) -> experiment_pb2.Experiment:
        if identifier not in self.experiments:
            raise NotFound("NO_SUCH_EXPERIMENT", f"there is no experiment {identifier!r}")
        return self.experiments[identifier]

    async def CreateExperiment(self, request: Any, context: Any) -> experiment_pb2.Experiment:
        actor = await self._enter(request, context)
        if not request.name.strip():
            raise InvalidInput("BAD_NAME", "name is empty", field="name")
        identifier = EXPERIMENT_ID if not self.experiments else f"exp-{len(self.experiments):032x}"
        found = experiment_pb2.Experiment(id=identifier, owner=actor.id, name=request.name)
        found.create_time.FromSeconds(1_700_000_000)
        found.update_time.FromSeconds(1_700_000_000)
        self.experiments[identifier] = found
        self.experiment_keys.append(request.idempotency_key)
        return found

    async def GetExperiment(self, request: Any, context: Any) -> experiment_pb2.Experiment:
        await self._enter(request, context)
        return self._experiment(request.id)

    async def ListExperiments(self, request: Any, context: Any) -> experiment_pb2.ListExperimentsResponse:
        await self._enter(request, context)
        first, size = int(pages.decode(request.page_token, "experiments") or 0), request.page_size
        found = list(self.experiments.values())[first : first + size]
        token = pages.encode(first + size, "experiments") if first + size < len(self.experiments) else ""
        return experiment_pb2.ListExperimentsResponse(experiments=found, next_page_token=token)

    async def DeleteExperiment(self, request: Any, context: Any) -> experiment_pb2.DeletedExperiment:
        await self._enter(request, context)
        found = self._experiment(request.id)
        if any(self.runs[member.run.id].status not in ENDED for member in self.members):
            raise Conflict("EXPERIMENT_ACTIVE_RUNS", "a run has not ended")
        del self.experiments[request.id]
        deleted = experiment_pb2.DeletedExperiment(id=found.id, name=found.name, run_count=len(self.members))
        deleted.delete_time.FromSeconds(1_700_000_001)
        return deleted

    async def ListExperimentRuns(self, request: Any, context: Any) -> planner.ListExperimentRunsResponse:
        await self._enter(request, context)
        return planner.ListExperimentRunsResponse(experiment=self._experiment(request.id), members=self.members)

    async def AttachExperimentRun(self, request: Any, context: Any) -> planner.ExperimentMember:
        actor = await self._enter(request, context)
        self._experiment(request.id)
        member = planner.ExperimentMember(run=self._run(request.run_id, actor), role=request.role)
        member.hypothesis = request.hypothesis
        member.create_time.FromSeconds(1_700_000_002)
        self.members.append(member)
        return member

    async def ListRunRecipes(self, request: Any, context: Any) -> recipe_pb2.ListRunRecipesResponse:
        actor = await self._enter(request, context)
        self._run(request.run_id, actor)
        found = recipe_pb2.ListRunRecipesResponse(recipes=[_recipe()])
        found.recipes[0].recipe.ClearField("document")
        found.recipes.add(target_id="other", status="unavailable", reason="not_requested")
        return found

    async def GetRunRecipe(self, request: Any, context: Any) -> recipe_pb2.RunRecipe:
        actor = await self._enter(request, context)
        self._run(request.run_id, actor)
        if request.target_id != "r/1":
            raise NotFound("RECIPE_UNAVAILABLE", f"the recipe of {request.target_id} was not captured")
        return _recipe()


def _recipe() -> recipe_pb2.RunRecipe:
    found = recipe_pb2.RunRecipe(target_id="r/1", status="captured", config_hash="f" * 64)
    found.recipe.source_config_hash = "e" * 64
    found.recipe.recipe_sha256 = "d" * 64
    found.recipe.redactions.append("routing.url")
    found.recipe.capture_time.FromSeconds(1_700_000_003)
    found.recipe.document.CopyFrom(to_value({"routing": {"url": "<redacted>"}}))
    return found
