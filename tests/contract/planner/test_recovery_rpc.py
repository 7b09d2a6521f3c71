"""Recovery over the wire: reviewed plans, claims, child runs, lineage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from grpc import aio
from planner_doubles import case, manifest, target
from srbench.v1 import experiment_pb2
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import recovery_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth, wire
from srbench_kit.values import object_of, to_value

from tests.contract.refusals import reason

ANN, BOB = auth.Actor(id="ann", role="write"), auth.Actor(id="bob", role="write")


def four(**more: Any) -> dict[str, Any]:
    return manifest(cases=[case(f"q{index}") for index in range(4)], limits={"concurrency": 64}, **more)


async def parent_of(planner: Any, actor: auth.Actor | None = None, key: str = "k", **more: Any) -> str:
    """A run of four cells: one done, one failed, one interrupted, one cancelled before it was sent."""
    run = await planner.run(four(**more), key=key, actor=actor)
    leases = sorted(await planner.lease(), key=lambda lease: lease.cell)
    await planner.complete(leases[:1])
    await planner.complete(leases[1:2], queue_pb.CELL_STATE_FAILED, "http_error")
    await planner.complete(leases[2:3], queue_pb.CELL_STATE_INTERRUPTED, "executor_lost")
    await planner.complete(leases[3:], queue_pb.CELL_STATE_CANCELLED, "run_stopped")
    await planner.ended(run.id)
    states = (queue_pb.CELL_STATE_DONE, queue_pb.CELL_STATE_FAILED, queue_pb.CELL_STATE_INTERRUPTED)
    reasons = ("", "http_error", "executor_lost")
    planner.ledger.cells[run.id] = [
        ledger_pb.CellLedger(
            case_index=index,
            outcome=state,
            reason=why,
            call_count=1,
            ambiguous_count=int(index == 2),
            unknown_cost_count=int(index > 0),
            spend_upper_picodollars=100,
        )
        for index, (state, why) in enumerate(zip(states, reasons, strict=True))
    ]
    return str(run.id)


async def plan(planner: Any, run_id: str, mode: str = "", actor: auth.Actor | None = None) -> Any:
    return await planner.recoveries(actor).PlanRecovery(pb.PlanRecoveryRequest(run_id=run_id, mode=mode))


def recover(planner: Any, found: Any, key: str = "r", actor: auth.Actor | None = None, **changes: Any) -> Any:
    cells = [pb.RecoveryCell(case_id=cell.case_id, target_id=cell.target_id) for cell in found.eligible_cells]
    values: dict[str, Any] = {
        "run_id": found.parent_run_id,
        "mode": found.mode,
        "plan_sha256": found.plan_sha256,
        "cells": cells,
        "idempotency_key": key,
        "acknowledge_new_attempt": found.requires_new_attempt_acknowledgment,
    }
    return planner.recoveries(actor).RecoverRun(pb.RecoverRunRequest(**(values | changes)))


def names(cells: Any) -> list[str]:
    return [cell.case_id for cell in cells]


async def test_a_plan_judges_every_cell_once(planner: Any) -> None:
    run_id = await parent_of(planner)
    undispatched, failed = await plan(planner, run_id), await plan(planner, run_id, "failed")
    assert (undispatched.mode, names(undispatched.eligible_cells)) == ("undispatched", ["q3"])
    assert {cell.case_id: cell.reason for cell in undispatched.excluded} == {
        "q0": "completed_evidence_is_preserved",
        "q1": "already_dispatched_requires_explicit_new_attempt",
        "q2": "ambiguous_dispatch_requires_reconciliation",
    }
    assert [(cell.case_id, cell.state) for cell in failed.eligible_cells] == [("q1", "failed"), ("q2", "interrupted")]
    assert not undispatched.requires_new_attempt_acknowledgment
    assert undispatched.parent.progress.total == 4
    assert undispatched.plan_sha256 != failed.plan_sha256


async def test_a_child_has_the_chosen_cells_alone_and_the_parent_stays_as_it_was(planner: Any) -> None:
    run_id = await parent_of(planner)
    before = await planner.get(run_id)
    child = await recover(planner, await plan(planner, run_id))
    assert (child.parent_run_id, child.progress.total, child.plan.name) == (run_id, 1, f"recovery of {before.plan.name}")
    assert [lease.public_case.case_id for lease in await planner.lease()] == ["q3"]
    assert planner.ledger.halted[run_id] == "recovered"
    assert await planner.get(run_id) == before
    whole = await planner.plans().GetRun(planner_pb.GetRunRequest(id=child.id))
    block: Any = object_of(whole.plan.manifest)["recovery"]
    assert (block["parent_run_id"], block["mode"], block["recovery_subset"]) == (run_id, "undispatched", True)
    assert block["selected_cells"] == [{"case_id": "q3", "target_id": whole.plan.targets[0].id}]
    assert whole.plan.limits == before.plan.limits
    parent = await planner.plans().GetRun(planner_pb.GetRunRequest(id=run_id))
    assert list(parent.child_run_ids) == [child.id]


async def test_a_new_attempt_must_be_acknowledged(planner: Any) -> None:
    found = await plan(planner, await parent_of(planner), "failed")
    assert await reason(recover(planner, found, acknowledge_new_attempt=False)) == "ACKNOWLEDGMENT_REQUIRED"
    assert await planner.lease() == []
    assert (await recover(planner, found)).progress.total == 2


async def test_the_same_key_with_the_same_cells_is_the_same_child(planner: Any) -> None:
    run_id = await parent_of(planner)
    found = await plan(planner, run_id, "failed")
    at_once = await asyncio.gather(*(recover(planner, found) for _ in range(4)))
    child = await recover(planner, found)
    assert {one.id for one in at_once} == {child.id}
    assert await reason(recover(planner, found, cells=[pb.RecoveryCell(case_id="q1", target_id="t")])) == (
        "IDEMPOTENCY_CONFLICT"
    )
    await planner.run(four(), key="plain")
    assert await reason(recover(planner, found, key="plain")) == "IDEMPOTENCY_CONFLICT"


async def test_each_cell_is_claimed_once_for_ever(planner: Any) -> None:
    run_id = await parent_of(planner)
    found = await plan(planner, run_id, "failed")
    races = await asyncio.gather(
        *(recover(planner, found, key=f"race-{number}") for number in range(4)), return_exceptions=True
    )
    won = [one for one in races if not isinstance(one, Exception)]
    assert len(won) == 1
    assert {wire.reason(one) for one in races if isinstance(one, aio.AioRpcError)} == {"RECOVERY_PLAN_REQUIRED"}
    later = await plan(planner, run_id, "failed")
    claimed = {cell.case_id for cell in later.excluded if cell.reason == "already_claimed_by_child_attempt"}
    assert claimed == {"q1", "q2"}
    assert names((await plan(planner, run_id)).eligible_cells) == ["q3"]
    # The losers left nothing behind.
    runs = (await planner.plans().ListRuns(planner_pb.ListRunsRequest())).runs
    assert {run.id for run in runs} == {run_id, won[0].id}


async def test_what_changed_since_the_review_needs_a_new_one(planner: Any) -> None:
    run_id = await parent_of(planner)
    found = await plan(planner, run_id, "failed")
    planner.ledger.cells[run_id][1].outcome = queue_pb.CELL_STATE_DONE
    assert await reason(recover(planner, found)) == "RECOVERY_PLAN_REQUIRED"
    fresh = await plan(planner, run_id, "failed")
    other = [pb.RecoveryCell(case_id="q0", target_id=fresh.eligible_cells[0].target_id)]
    assert await reason(recover(planner, fresh, cells=other)) == "RECOVERY_PLAN_REQUIRED"
    assert await reason(recover(planner, fresh, plan_sha256="")) == "RECOVERY_PLAN_REQUIRED"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cells": []}, "MISSING_FIELD"),
        ({"cells": [pb.RecoveryCell(case_id="q3", target_id="t")] * 2}, "DUPLICATE_CELL"),
        ({"idempotency_key": ""}, "BAD_IDEMPOTENCY_KEY"),
        ({"idempotency_key": "   "}, "BAD_IDEMPOTENCY_KEY"),
        ({"idempotency_key": "k" * 201}, "BAD_IDEMPOTENCY_KEY"),
        ({"mode": "everything"}, "BAD_FIELD"),
        ({"run_id": "run-none"}, "NO_SUCH_RUN"),
    ],
)
async def test_a_bad_request_is_refused_with_its_reason(planner: Any, changes: dict[str, Any], expected: str) -> None:
    found = await plan(planner, await parent_of(planner))
    assert await reason(recover(planner, found, **changes)) == expected


async def test_a_run_that_goes_on_is_not_recovered(planner: Any) -> None:
    run = await planner.run(four())
    assert await reason(plan(planner, run.id)) == "RUN_NOT_OVER"


async def test_a_ledger_that_is_away_decides_nothing(planner: Any) -> None:
    run_id = await parent_of(planner)
    planner.ledger.away = True
    assert await reason(plan(planner, run_id)) == "STORAGE_UNAVAILABLE"


async def test_only_the_owner_recovers_and_only_with_the_operators_targets(planner: Any) -> None:
    await planner.plans().RegisterTargets(planner_pb.RegisterTargetsRequest(document=to_value([target()])))
    run_id = await parent_of(planner, actor=ANN)
    assert await reason(plan(planner, run_id, actor=BOB)) == "NO_SUCH_RUN"
    found = await plan(planner, run_id, actor=ANN)
    moved = target() | {"base_url": "https://elsewhere.example/v1"}
    await planner.plans().RegisterTargets(planner_pb.RegisterTargetsRequest(document=to_value([moved])))
    assert await reason(recover(planner, found, actor=ANN)) == "TARGET_CHANGED"
    await planner.plans().RegisterTargets(planner_pb.RegisterTargetsRequest(document=to_value([target()])))
    child = await recover(planner, found, actor=ANN)
    assert child.owner == "ann"


async def test_a_recovery_can_be_recovered_and_lineage_lists_all_of_them(planner: Any) -> None:
    run_id = await parent_of(planner)
    child = await recover(planner, await plan(planner, run_id, "failed"))
    leases = await planner.lease()
    await planner.complete(leases, queue_pb.CELL_STATE_FAILED, "stream_cut")
    await planner.ended(child.id)
    planner.ledger.cells[child.id] = [
        ledger_pb.CellLedger(case_index=index, outcome=4, reason="stream_cut", call_count=1) for index in (1, 2)
    ]
    grandchild = await recover(planner, await plan(planner, child.id, "failed"), key="r2")
    other = await recover(planner, await plan(planner, run_id), key="r3")
    lineage = await planner.recoveries().GetLineage(pb.GetLineageRequest(run_id=run_id))
    assert [run.id for run in lineage.runs] == [run_id, child.id, grandchild.id, other.id]
    assert [run.parent_run_id for run in lineage.runs] == ["", run_id, child.id, run_id]
    assert grandchild.plan.name == child.plan.name
    part = await planner.recoveries().GetLineage(pb.GetLineageRequest(run_id=child.id))
    assert [run.id for run in part.runs] == [child.id, grandchild.id]


async def test_claims_and_lineage_survive_a_restart(planner: Any, start: Any) -> None:
    run_id = await parent_of(planner)
    found = await plan(planner, run_id, "failed")
    child = await recover(planner, found)
    await planner.close()
    again = await start()
    assert (await recover(again, found)).id == child.id
    assert [lease.public_case.case_id for lease in await again.lease()] == ["q1", "q2"]
    assert names((await plan(again, run_id, "failed")).eligible_cells) == []


async def test_a_run_whose_experiment_was_deleted_is_recovered_all_the_same(planner: Any) -> None:
    experiments, local = planner.service.loop.experiments, auth.Actor(id=auth.LOCAL, role=auth.LOCAL)
    made = await experiments.create(local, experiment_pb2.CreateExperimentRequest(name="n", idempotency_key="k"))
    parents = []
    for key in ("kept", "deleted"):
        block = {"experiment": {"id": made.id, "role": "baseline"}}
        parents.append(await parent_of(planner, key=key, **block))
    child = await recover(planner, await plan(planner, parents[0]), key="r1")
    assert [link.role for link in (await planner.get(child.id)).experiment_roles] == ["recovery"]
    await planner.complete(await planner.lease())
    await planner.ended(child.id)
    await experiments.delete(local, made.id)
    child = await recover(planner, await plan(planner, parents[1]), key="r2")
    assert child.parent_run_id == parents[1]
    assert not (await planner.get(child.id)).experiment_roles
    again = await recover(planner, await plan(planner, parents[1], "failed"), key="r3")
    assert again.parent_run_id == parents[1]
