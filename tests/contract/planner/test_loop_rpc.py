"""Replays, candidate plans, experiments and recipes over real gRPC, with a small ledger on the other side."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from planner_doubles import PRICE, case, target
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import experiment_pb2, planner_service_pb2, planner_service_pb2_grpc, recipe_pb2, replay_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb2
from srbench_kit import auth, wire
from srbench_kit.errors import Unreachable
from srbench_kit.serving import Server
from srbench_kit.values import from_value, to_value
from srbench_planner.grader_client import GraderClient
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.loop_servicer import LoopServicer
from srbench_planner.ports import Benchmarks
from srbench_planner.replays import request_digests
from srbench_planner.servicer import PlanServicer

from tests.contract.refusals import reason

HASH = "a" * 64
PREVIEW_URL = "http://127.0.0.1:1/api/v1/routing/preview"
ROUTER = target("r", kind="mom", model="r", preview_url=PREVIEW_URL, config_hash=HASH, max_inference_calls=1)
CASES = [case("q1"), case("q2")]
LIMITS = {"concurrency": 8}
BASE = {
    "version": "sr-bench-1.0",
    "cost_policy": "capability_only",
    "limits": LIMITS,
    "cases": CASES,
    "targets": [target("a")],
}
PREVIEW = BASE | {"mode": "preview", "targets": [ROUTER]}
ALICE = auth.Actor(id="alice", role="write")


class Loop:
    """The planner with the RPCs of the loop, and a ledger that holds saved facts."""

    def __init__(self, planner: Any, server: Server) -> None:
        self.planner = planner
        self.server = server
        self.channels: list[aio.Channel] = []

    def stub(self, actor: auth.Actor | None = None) -> Any:
        metadata = auth.service_metadata("gateway") | (auth.actor_metadata(actor) if actor else {})
        channel = wire.channel(f"127.0.0.1:{self.server.port}", metadata)
        self.channels.append(channel)
        return planner_service_pb2_grpc.PlannerServiceStub(channel)

    async def completed(self, manifest: dict[str, Any], key: str, driver: str = "single_turn") -> str:
        """A run all of whose cells were given back done."""
        run = await self.planner.run(manifest, key)
        asked = queue_pb2.LeaseCellsRequest(executor_id="e1", incarnation="i1", max_cells=100, drivers=[driver])
        leases = (await self.planner.queue().LeaseCells(asked)).leases
        assert {lease.driver for lease in leases} == {driver}
        await self.planner.complete(list(leases))
        assert (await self.planner.ended(run.id)).status == "completed"
        return str(run.id)

    async def pair(self) -> tuple[str, str]:
        """A baseline and a preview with everything that a replay needs."""
        baseline = await self.completed(BASE, "b")
        preview = await self.completed(PREVIEW, "p", "preview")
        run = await self.stub().GetRun(planner_service_pb2.GetRunRequest(id=baseline))
        digest = request_digests({"temperature": 0, "max_tokens": 4096})
        for index, asked in enumerate(CASES):
            self.planner.ledger.saved.setdefault(baseline, []).append(
                accounting_pb.Outcome(cell=index, case_id=asked["id"], target_id="a", status="completed", correct=True)
            )
            self.planner.ledger.calls.setdefault(baseline, []).append(
                accounting_pb.Call(
                    case_id=asked["id"],
                    target_id="a",
                    role=accounting_pb.CALL_ROLE_SUBJECT,
                    status=accounting_pb.CALL_STATUS_COMPLETED,
                    model="m",
                    request_sha256=digest(run.plan.targets[0], asked),
                )
            )
            routing = {
                "selected_model": "m",
                "selection_status": "selected",
                "selection_method": "static",
                "decision_result": {"decision_name": "d", "plugins": []},
            }
            self.planner.ledger.saved.setdefault(preview, []).append(
                accounting_pb.Outcome(
                    cell=index, case_id=asked["id"], status="completed", details=to_value({"routing": routing})
                )
            )
        return baseline, preview


@pytest.fixture
async def loop(planner: Any, tmp_path: Path) -> AsyncIterator[Loop]:
    server = Server("127.0.0.1:0")

    class Both(PlanServicer, LoopServicer):
        def __init__(self, service: Any) -> None:
            PlanServicer.__init__(
                self,
                *(service.registry, service.freezer, service.plans, service.runs, service.scheduler),
                benchmarks=Benchmarks(specs={}, built_in=frozenset()),
                hidden=HiddenParts(tmp_path),
                grader=GraderClient(""),
                runners=service.runners,
            )
            LoopServicer.__init__(self, service.loop)

    server.add(
        Both(planner.service), planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService"
    )
    await server.start()
    found = Loop(planner, server)
    yield found
    for channel in found.channels:
        await channel.close()
    await server.drain(0)


def replay_request(baseline: str, preview: str, key: str = "k1") -> replay_pb2.CreateReplayRequest:
    return replay_pb2.CreateReplayRequest(baseline_run_id=baseline, preview_run_id=preview, idempotency_key=key)


async def test_a_replay_is_a_completed_run_that_told_accounting_what_is_copied(loop: Loop) -> None:
    baseline, preview = await loop.pair()
    made = await loop.stub().CreateReplay(replay_request(baseline, preview))
    assert (made.status, made.plan.mode, made.progress.completed, made.progress.total) == ("completed", "replay", 2, 2)
    (told,) = loop.planner.ledger.replays
    assert (told.run_id, told.source_run_id, told.preview_run_id) == (made.id, baseline, preview)
    assert [(cell.cell, cell.source_cell, cell.selected_model, cell.decision) for cell in told.cells] == [
        (0, 0, "m", "d"),
        (1, 1, "m", "d"),
    ]
    shown = await loop.stub().GetRun(planner_service_pb2.GetRunRequest(id=made.id))
    manifest: Any = from_value(shown.plan.manifest)
    assert manifest["replay_sources"]["preview_run_id"] == preview
    again = await loop.stub().CreateReplay(replay_request(baseline, preview))
    assert (again.id, len(loop.planner.ledger.replays)) == (made.id, 1)
    other = replay_request(preview, baseline)
    assert await reason(loop.stub().CreateReplay(other)) == "REPLAY_INELIGIBLE"


async def test_an_ineligible_pair_is_refused_with_all_reasons_in_the_check(loop: Loop) -> None:
    baseline, preview = await loop.pair()
    loop.planner.ledger.saved[preview][0].details.CopyFrom(to_value({}))
    loop.planner.ledger.calls[baseline][1].request_sha256 = hashlib.sha256(b"other").hexdigest()
    assert await reason(loop.stub().CreateReplay(replay_request(baseline, preview))) == "REPLAY_INELIGIBLE"
    check = await loop.stub().CheckReplay(replay_pb2.CheckReplayRequest(baseline_run_id=baseline, preview_run_id=preview))
    assert [(item.code, item.case_id) for item in check.reasons] == [
        ("preview_rows_incomplete", "q1"),
        ("saved_prompt_mismatch", "q2"),
        ("saved_request_parameters_mismatch", "q2"),
    ]
    assert (check.eligible, loop.planner.ledger.replays) == (False, [])


async def test_runs_of_others_are_not_there(loop: Loop) -> None:
    baseline, preview = await loop.pair()
    stub = loop.stub(ALICE)
    assert await reason(stub.CreateReplay(replay_request(baseline, preview))) == "NO_SUCH_RUN"
    asked = planner_service_pb2.ListReplayOptionsRequest(baseline_run_id=baseline)
    assert await reason(stub.ListReplayOptions(asked)) == "NO_SUCH_RUN"
    assert await reason(stub.ListRunRecipes(recipe_pb2.ListRunRecipesRequest(run_id=baseline))) == "NO_SUCH_RUN"
    empty = await stub.ListReplayOptions(planner_service_pb2.ListReplayOptionsRequest())
    assert (list(empty.baselines), empty.empty_reason) == ([], "no_compatible_saved_runs")


async def test_a_replay_that_was_cut_off_is_finished_by_the_next_process(
    loop: Loop, start: Callable[[], Awaitable[Any]]
) -> None:
    baseline, preview = await loop.pair()
    loop.planner.ledger.replay_failure = Unreachable("STORAGE_UNAVAILABLE", "away")
    assert await reason(loop.stub().CreateReplay(replay_request(baseline, preview))) == "STORAGE_UNAVAILABLE"
    loop.planner.ledger.replay_failure = None
    rows = await loop.planner.plans().ListRuns(planner_service_pb2.ListRunsRequest(mode="replay"))
    assert [run.status for run in rows.runs] == ["running"]
    await loop.planner.close()
    second = await start()
    assert (await second.ended(rows.runs[0].id)).status == "completed"
    assert len(second.ledger.replays[-1].cells) == 2


async def test_options_list_what_fits_and_page_by_runs(loop: Loop) -> None:
    baseline, preview = await loop.pair()
    await loop.completed(BASE | {"name": "alone", "cases": [case("q9")]}, "x")
    asked = planner_service_pb2.ListReplayOptionsRequest(page_size=1)
    every = await loop.stub().ListReplayOptions(asked)
    assert [run.id for run in every.baselines] == [baseline]
    one = await loop.stub().ListReplayOptions(planner_service_pb2.ListReplayOptionsRequest(baseline_run_id=baseline))
    assert ([run.id for run in one.options], one.baseline.id, one.scanned_pairs) == ([preview], baseline, 1)


async def test_a_candidate_asks_the_same_or_is_refused(loop: Loop) -> None:
    baseline = await loop.completed(BASE, "b")
    stub = loop.stub()
    await stub.RegisterTargets(planner_service_pb2.RegisterTargetsRequest(document=to_value([ROUTER, target("s")])))

    def asked(**fields: Any) -> planner_service_pb2.CreateCandidatePlanRequest:
        values: dict[str, Any] = {"baseline_run_id": baseline, "target_ids": ["r"], "mode": "preview"} | fields
        return planner_service_pb2.CreateCandidatePlanRequest(**values)

    plan = await stub.CreateCandidatePlan(asked())
    manifest: Any = from_value(plan.manifest)
    assert (plan.mode, manifest["baseline_run_id"], [item["id"] for item in manifest["targets"]]) == (
        "preview",
        baseline,
        ["r"],
    )
    first = await stub.GetRun(planner_service_pb2.GetRunRequest(id=baseline))
    assert (plan.case_sha256, plan.limits) == (first.plan.case_sha256, first.plan.limits)
    assert await reason(stub.CreateCandidatePlan(asked(target_ids=["nobody"]))) == "TARGET_NOT_REGISTERED"
    assert await reason(stub.CreateCandidatePlan(asked(target_ids=["s"]))) == "BAD_FIELD"
    assert await reason(stub.CreateCandidatePlan(asked(target_ids=["r", "r"]))) == "BAD_FIELD"
    assert await reason(stub.CreateCandidatePlan(asked(mode="replay"))) == "BAD_FIELD"
    unknown = to_value({"id": "exp-" + "0" * 32, "role": "preview"})
    assert await reason(stub.CreateCandidatePlan(asked(experiment=unknown))) == "NO_SUCH_EXPERIMENT"
    router_only = await loop.completed(PREVIEW, "p", "preview")
    assert await reason(stub.CreateCandidatePlan(asked(baseline_run_id=router_only))) == "BASELINE_NOT_ELIGIBLE"
    partial = BASE | {"name": "part", "execution_cells": [{"case_id": "q1", "target_id": "a"}]}
    part = await loop.completed(partial, "part")
    assert await reason(stub.CreateCandidatePlan(asked(baseline_run_id=part))) == "BASELINE_NOT_ELIGIBLE"


async def test_experiments_are_created_once_and_leave_a_tombstone(loop: Loop) -> None:
    stub = loop.stub()
    made = await stub.CreateExperiment(experiment_pb2.CreateExperimentRequest(name=" n ", idempotency_key="k"))
    assert made.name == "n"
    same = await stub.CreateExperiment(experiment_pb2.CreateExperimentRequest(name="n", idempotency_key="k"))
    assert same.id == made.id
    for name, key, code in (("m", "k", "IDEMPOTENCY_CONFLICT"), (" ", "x", "BAD_NAME"), ("n", "", "BAD_IDEMPOTENCY_KEY")):
        asked = experiment_pb2.CreateExperimentRequest(name=name, idempotency_key=key)
        assert await reason(stub.CreateExperiment(asked)) == code
    run = await loop.planner.run(
        BASE | {"experiment": {"id": made.id, "role": "baseline", "hypothesis": "h"}}, "in-experiment"
    )
    shown = await stub.GetRun(planner_service_pb2.GetRunRequest(id=run.id))
    assert [(link.role, link.hypothesis) for link in shown.experiment_roles] == [("baseline", "h")]
    counted = await stub.GetExperiment(experiment_pb2.GetExperimentRequest(id=made.id))
    assert (counted.run_count, counted.active_run_count) == (1, 1)
    deleting = experiment_pb2.DeleteExperimentRequest(id=made.id)
    assert await reason(stub.DeleteExperiment(deleting)) == "EXPERIMENT_ACTIVE_RUNS"
    await stub.CancelRun(planner_service_pb2.CancelRunRequest(id=run.id))
    await loop.planner.ended(run.id)
    assert (await stub.GetExperiment(experiment_pb2.GetExperimentRequest(id=made.id))).active_run_count == 0
    assert await reason(loop.stub(ALICE).DeleteExperiment(deleting)) == "NO_SUCH_EXPERIMENT"
    assert (await stub.DeleteExperiment(deleting)).run_count == 1
    gone = experiment_pb2.CreateExperimentRequest(name="n", idempotency_key="k")
    assert await reason(stub.CreateExperiment(gone)) == "EXPERIMENT_DELETED"
    assert (await stub.GetRun(planner_service_pb2.GetRunRequest(id=run.id))).status == "cancelled"


async def test_a_run_of_no_experiment_is_not_started(loop: Loop) -> None:
    manifest = BASE | {"experiment": {"id": "exp-" + "0" * 32, "role": "baseline"}}
    assert await reason(loop.planner.run(manifest, "k")) == "NO_SUCH_EXPERIMENT"
    assert (await loop.planner.plans().ListRuns(planner_service_pb2.ListRunsRequest())).total == 0


async def test_a_link_never_changes_and_members_are_paged(loop: Loop) -> None:
    stub = loop.stub()
    made = await stub.CreateExperiment(experiment_pb2.CreateExperimentRequest(name="n", idempotency_key="k"))
    runs = [(await loop.planner.run(BASE | {"name": str(number)}, str(number))).id for number in range(3)]
    for run in runs:
        link = experiment_pb2.AttachExperimentRunRequest(id=made.id, run_id=run, role="baseline")
        await stub.AttachExperimentRun(link)
        assert (await stub.AttachExperimentRun(link)).role == "baseline"
    other = experiment_pb2.AttachExperimentRunRequest(id=made.id, run_id=runs[0], role="baseline", hypothesis="h")
    assert await reason(stub.AttachExperimentRun(other)) == "ALREADY_ATTACHED"
    wrong = experiment_pb2.AttachExperimentRunRequest(id=made.id, run_id=runs[0], role="candidate")
    assert await reason(stub.AttachExperimentRun(wrong)) == "BAD_FIELD"
    page = await stub.ListExperimentRuns(experiment_pb2.ListExperimentRunsRequest(id=made.id, page_size=2))
    rest = await stub.ListExperimentRuns(
        experiment_pb2.ListExperimentRunsRequest(id=made.id, page_size=2, page_token=page.next_page_token)
    )
    assert [item.run.id for item in [*page.members, *rest.members]] == runs[::-1]
    assert rest.next_page_token == ""
    listed = await stub.ListExperiments(experiment_pb2.ListExperimentsRequest())
    assert [(item.id, item.run_count) for item in listed.experiments] == [(made.id, 3)]


CAPTURED = ROUTER | {"capture_recipe": True}
LIVE = BASE | {"targets": [CAPTURED | {"prices": {"m": PRICE}}]}


async def answer(loop: Loop, **fields: Any) -> Any:
    """Takes the one capture that waits and reports it."""
    taken = await loop.planner.queue().TakeRecipeCaptures(recipe_pb2.TakeRecipeCapturesRequest(executor_id="e1"))
    (wanted,) = taken.captures
    report = recipe_pb2.ReportRecipeCaptureRequest(capture_id=wanted.capture_id, **fields)
    await loop.planner.queue().ReportRecipeCapture(report)
    return wanted


async def test_a_start_waits_for_the_recipe_and_keeps_it(loop: Loop) -> None:
    starting = asyncio.create_task(loop.planner.run(LIVE, "k"))
    recipe = recipe_pb2.Recipe(recipe_sha256="b" * 64, active_runtime_hash=HASH, document=to_value({"routing": {}}))
    wanted = await answer(loop, recipe=recipe)
    assert (wanted.target.id, wanted.target.config_hash) == ("r", HASH)
    run = await starting
    stub = loop.stub()
    (entry,) = (await stub.ListRunRecipes(recipe_pb2.ListRunRecipesRequest(run_id=run.id))).recipes
    assert (entry.status, entry.recipe.HasField("document")) == ("captured", False)
    whole = await stub.GetRunRecipe(recipe_pb2.GetRunRecipeRequest(run_id=run.id, target_id="r"))
    assert from_value(whole.recipe.document) == {"routing": {}}
    provenance: Any = from_value((await stub.GetRun(planner_service_pb2.GetRunRequest(id=run.id))).provenance)
    assert provenance["recipes"]["r"]["recipe_sha256"] == "b" * 64
    # The same key again is the same run, and asks no router anything.
    assert (await loop.planner.run(LIVE, "k")).id == run.id


async def test_any_problem_with_the_recipe_refuses_the_start(loop: Loop) -> None:
    starting = asyncio.create_task(loop.planner.run(LIVE, "k"))
    await answer(loop, reason="etag_mismatch", message="the ETag is another one")
    assert await reason(starting) == "RECIPE_CAPTURE_FAILED"
    assert (await loop.planner.plans().ListRuns(planner_service_pb2.ListRunsRequest())).total == 0


async def test_without_an_executor_a_start_that_needs_a_recipe_is_refused(loop: Loop) -> None:
    loop.planner.service.captures._wait_s = 0.2
    assert await reason(loop.planner.run(LIVE, "k")) == "NO_EXECUTOR"
    late = recipe_pb2.ReportRecipeCaptureRequest(capture_id="capture-nobody")
    await loop.planner.queue().ReportRecipeCapture(late)


async def test_a_recipe_that_was_not_asked_for_is_unavailable_and_never_borrowed(loop: Loop) -> None:
    run = await loop.planner.run(BASE | {"targets": [ROUTER]}, "k")
    stub = loop.stub()
    (entry,) = (await stub.ListRunRecipes(recipe_pb2.ListRunRecipesRequest(run_id=run.id))).recipes
    assert (entry.status, entry.reason, entry.config_hash) == ("unavailable", "not_requested", HASH)
    asked = recipe_pb2.GetRunRecipeRequest(run_id=run.id, target_id="r")
    assert await reason(stub.GetRunRecipe(asked)) == "RECIPE_UNAVAILABLE"
    nobody = recipe_pb2.GetRunRecipeRequest(run_id=run.id, target_id="a")
    assert await reason(stub.GetRunRecipe(nobody)) == "NO_SUCH_TARGET"
