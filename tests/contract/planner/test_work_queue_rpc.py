"""Leases over the wire: who may, what a lease holds, waiting, losing, restarting."""

from __future__ import annotations

import asyncio
from typing import Any

from planner_doubles import case, manifest, target
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb2
from srbench.v1.operations_service_pb2 import InspectProcessRequest
from srbench_kit.values import from_value, object_of
from srbench_planner import executor_look

from tests.contract.refusals import reason
from tests.waiting import until_async

DONE, FAILED, INTERRUPTED = queue_pb2.CELL_STATE_DONE, queue_pb2.CELL_STATE_FAILED, queue_pb2.CELL_STATE_INTERRUPTED


def cases(count: int, **fields: Any) -> dict[str, Any]:
    return manifest(cases=[case(f"q{index}") for index in range(count)], **({"limits": {"concurrency": 64}} | fields))


async def test_only_executors_and_accounting_may_call(planner: Any) -> None:
    stub = planner.queue("gateway")
    assert await reason(stub.LeaseCells(queue_pb2.LeaseCellsRequest())) == "WRONG_ROLE"
    assert await reason(stub.RenewLeases(queue_pb2.RenewLeasesRequest())) == "WRONG_ROLE"
    assert await reason(stub.CompleteCells(queue_pb2.CompleteCellsRequest())) == "WRONG_ROLE"
    assert await reason(stub.GetRunContext(queue_pb2.GetRunContextRequest())) == "WRONG_ROLE"
    assert (
        await reason(planner.queue("accounting").GetRunContext(queue_pb2.GetRunContextRequest(run_id="x"))) == "NO_SUCH_RUN"
    )


async def test_bad_requests_are_refused_by_field(planner: Any) -> None:
    stub = planner.queue()
    ask = queue_pb2.LeaseCellsRequest(executor_id="e", incarnation="i", max_cells=0)
    assert await reason(stub.LeaseCells(ask)) == "BAD_FIELD"
    assert await reason(stub.LeaseCells(queue_pb2.LeaseCellsRequest(max_cells=1))) == "MISSING_FIELD"
    report = queue_pb2.CompleteCellsRequest()
    report.completions.add(state=queue_pb2.CELL_STATE_LEASED)
    assert await reason(stub.CompleteCells(report)) == "BAD_STATE"


async def test_a_lease_holds_what_a_model_may_see_and_the_context_the_rest(planner: Any) -> None:
    asked = case(
        messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "x"}],
        response_format={"type": "json_object"},
        request_metadata={"k": "v"},
    )
    run = await planner.run(manifest(cases=[asked], targets=[target("a"), target("b")], limits={"concurrency": 9}))
    first, second = await planner.lease()
    assert [(item.cell, item.case_index, item.target_index, item.token) for item in (first, second)] == [
        (0, 0, 0, 1),
        (1, 0, 1, 1),
    ]
    assert (first.run_id, first.driver, first.grader) == (run.id, "single_turn", "choice")
    message = first.public_case.messages[0]
    assert (message.role, from_value(message.content)) == ("user", [{"type": "text", "text": "hi"}])
    assert object_of(message.extra) == {"name": "x"}
    assert object_of(first.public_case.request_fields) == {
        "response_format": {"type": "json_object"},
        "metadata": {"k": "v"},
    }
    context = await planner.queue().GetRunContext(queue_pb2.GetRunContextRequest(run_id=run.id))
    assert [item.id for item in context.targets] == ["a", "b"]
    assert (context.plan_sha256, context.case_sha256) == (run.plan.plan_sha256, run.plan.case_sha256)
    assert (context.cost_policy, context.limits.concurrency) == ("capability_only", 9)
    assert context.deadline_time.seconds - run.create_time.seconds == 1800
    assert 0 < context.time_left.seconds <= 1800


async def test_a_long_poll_gets_the_cell_of_a_run_that_comes_later(planner: Any) -> None:
    waiting = asyncio.create_task(planner.lease(wait_s=20))
    await planner.lease(executor="e2")
    run = await planner.run(cases(1))
    (lease,) = await asyncio.wait_for(waiting, 60)
    assert lease.run_id == run.id


async def test_a_long_poll_gets_the_cell_that_another_end_makes_room_for(planner: Any) -> None:
    await planner.run(cases(2, limits={"concurrency": 1}))
    held = await planner.lease()
    waiting = asyncio.create_task(planner.lease(wait_s=20))
    await planner.complete(held)
    (lease,) = await asyncio.wait_for(waiting, 60)
    assert lease.cell == 1


async def test_completions_are_idempotent_and_outrun_ones_are_named(planner: Any) -> None:
    run = await planner.run(cases(2))
    leases = await planner.lease()
    assert list((await planner.complete(leases)).outrun) == []
    assert list((await planner.complete(leases)).outrun) == [], "after the end of the run, too"
    wrong = await planner.complete(leases[:1], FAILED, "http_error")
    assert [item.cell for item in wrong.outrun] == [0]
    leases[0].token += 1
    assert [item.token for item in (await planner.complete(leases[:1])).outrun] == [2]
    assert (await planner.get(run.id)).progress.completed == 2


async def test_a_lost_executors_cells_are_judged_by_the_facts(planner: Any) -> None:
    run = await planner.run(cases(4))
    leases = await planner.lease()
    planner.ledger.outcomes = {
        (run.id, 0): (DONE, ""),
        (run.id, 1): (FAILED, "http_error"),
        (run.id, 2): (INTERRUPTED, "executor_lost"),
    }
    planner.later()
    again: list[Any] = []

    async def requeued() -> bool:
        again.extend(await planner.lease(executor="e2"))
        return bool(again)

    await until_async(requeued)
    assert [(item.cell, item.token) for item in again] == [(3, 2)]
    assert planner.ledger.fenced == {(run.id, cell): 2 for cell in range(4)}
    assert len((await planner.complete(leases)).outrun) >= 3
    await planner.complete(again)
    ended = await planner.ended(run.id)
    assert (ended.status, ended.reason) == ("interrupted", "executor_lost")
    assert (ended.progress.completed, ended.progress.failed, ended.progress.interrupted) == (2, 2, 1)


async def test_renewed_leases_are_kept(planner: Any) -> None:
    await planner.run(cases(1))
    (lease,) = await planner.lease()
    ref = queue_pb2.LeaseRef(run_id=lease.run_id, cell=lease.cell, token=lease.token)
    request = queue_pb2.RenewLeasesRequest(executor_id="e1", incarnation="i1", leases=[ref])
    for _ in range(4):
        assert list((await planner.queue().RenewLeases(request)).lost) == []
        planner.later(planner.service.lease_s / 2)
        await planner.service.scheduler.tick()
    assert planner.ledger.fenced == {}
    request.incarnation = "i0"
    assert len((await planner.queue().RenewLeases(request)).lost) == 1


async def test_a_new_incarnation_ends_the_leases_of_the_one_before(planner: Any) -> None:
    run = await planner.run(cases(1))
    await planner.lease()
    (again,) = await planner.lease(incarnation="i2", wait_s=10)
    assert (again.cell, again.token) == (0, 2)
    assert planner.ledger.fenced == {(run.id, 0): 2}
    assert await planner.lease(incarnation="i1") == [], "a process that was replaced gets nothing"


async def test_a_cell_that_found_the_budget_reserved_waits_for_another_to_end(planner: Any) -> None:
    await planner.run(cases(2))
    first, second = await planner.lease()
    await planner.complete([second], queue_pb2.CELL_STATE_QUEUED, "budget_wait")
    assert await planner.lease() == []
    await planner.complete([first])
    (again,) = await planner.lease()
    assert again.cell == 1
    await planner.complete([again], queue_pb2.CELL_STATE_QUEUED, "budget_wait")
    (alone,) = await planner.lease(wait_s=10)
    assert alone.token == 3, "with nothing in hand it is offered again after a moment"


async def test_the_budget_ends_a_run_but_lets_cells_in_hand_finish(planner: Any) -> None:
    run = await planner.run(cases(20, limits={"concurrency": 3}))
    leases = await planner.lease()
    await planner.complete(leases[:1], FAILED, "budget_exhausted")
    assert await planner.lease() == []
    await planner.complete(leases[1:])
    ended = await planner.ended(run.id)
    assert (ended.status, ended.reason) == ("failed", "budget_exhausted")
    assert (ended.progress.completed, ended.progress.failed, ended.progress.cancelled) == (2, 18, 17)
    assert planner.ledger.halted == {}


async def test_a_target_that_always_fails_ends_a_run_early(planner: Any) -> None:
    run = await planner.run(cases(100))
    await planner.complete(await planner.lease(10), FAILED, "auth_refused")
    ended = await planner.ended(run.id)
    assert (ended.status, ended.reason, ended.progress.cancelled) == ("failed", "target_failing", 90)


async def test_a_run_over_its_time_is_stopped(planner: Any) -> None:
    limits = {"concurrency": 1, "max_run_seconds": 30, "total_timeout_s": 30, "idle_timeout_s": 30}
    run = await planner.run(cases(3, limits=limits))
    (lease,) = await planner.lease()
    planner.later(30)

    async def halted() -> bool:
        return run.id in planner.ledger.halted

    await until_async(halted)
    await planner.complete([lease], FAILED, "deadline_exceeded")
    ended = await planner.ended(run.id)
    assert (ended.status, ended.reason, ended.progress.cancelled) == ("failed", "deadline", 2)


async def test_a_restarted_planner_keeps_leases_tokens_and_ends(start: Any) -> None:
    first = await start()
    run = await first.run(cases(4))
    leases = await first.lease(3)
    await first.complete(leases[:1])
    await first.close()
    second = await start()
    found = await second.get(run.id)
    assert (found.status, found.progress.completed, found.progress.running) == ("running", 1, 2)
    assert list((await second.complete(leases[:1])).outrun) == [], "a report that was acknowledged is right again"
    assert list((await second.complete(leases[1:2])).outrun) == []
    (fresh,) = await second.lease(executor="e2", wait_s=5)
    assert (fresh.cell, fresh.token) == (3, 1)
    await second.complete([fresh])
    second.later()
    (again,) = await second.lease(executor="e2", wait_s=10)
    assert (again.cell, again.token) == (2, 2), "nobody renewed it, and the ledger knew of no dispatch"
    await second.complete([again])
    assert (await second.ended(run.id)).status == "completed"
    await second.close()
    third = await start()
    assert (await third.get(run.id)).progress.completed == 4
    assert (await third.run(cases(4))).id == run.id, "the key still names the run"


async def test_a_cancel_survives_a_restart(start: Any) -> None:
    first = await start()
    run = await first.run(cases(3, limits={"concurrency": 1}))
    (lease,) = await first.lease()
    await first.plans().CancelRun(pb.CancelRunRequest(id=run.id))
    first.ledger.halted.clear()
    await first.close()
    second = await start()
    assert (await second.get(run.id)).progress.cancelled == 2
    second.ledger.outcomes[run.id, lease.cell] = (queue_pb2.CELL_STATE_INTERRUPTED, "executor_lost")
    second.later()
    ended = await second.ended(run.id)
    assert (ended.status, ended.progress.cancelled, ended.progress.interrupted) == ("cancelled", 2, 1)
    assert second.ledger.halted == {run.id: "cancelled"}


async def test_a_run_whose_dataset_is_gone_after_a_restart_fails_with_a_reason(start: Any, files: Any) -> None:
    first = await start()
    digest = files.put("/d/cases.jsonl", [case("q0"), case("q1")])
    run = await first.run(manifest(cases=None, dataset={"path": "/d/cases.jsonl", "sha256": digest}))
    await first.close()
    del files.rows["/d/cases.jsonl"]
    second = await start()
    ended = await second.ended(run.id)
    assert (ended.status, ended.reason, ended.progress.cancelled) == ("failed", "cases_unavailable", 2)


async def test_while_accounting_is_away_a_cell_in_doubt_waits_and_is_judged_later(planner: Any) -> None:
    run = await planner.run(cases(1))
    await planner.lease()
    planner.ledger.away = True
    await planner.lease(incarnation="i2")

    async def asked() -> bool:
        return planner.ledger.refused > 0

    await until_async(asked)
    assert await planner.lease(incarnation="i2") == []
    assert (await planner.get(run.id)).progress.running == 1
    planner.ledger.outcomes[run.id, 0] = (DONE, "")
    planner.ledger.away = False
    assert (await planner.ended(run.id)).status == "completed"


async def test_a_run_that_no_executor_can_take_says_what_it_waits_for(planner: Any) -> None:
    run = await planner.run(cases(2))
    assert list((await planner.get(run.id)).waiting_for) == ["an executor"]

    async def known() -> bool:
        return not (await planner.get(run.id)).waiting_for

    asked = queue_pb2.LeaseCellsRequest(executor_id="e1", incarnation="i1", max_cells=1, drivers=["preview"])
    assert not (await planner.queue().LeaseCells(asked)).leases
    assert list((await planner.get(run.id)).waiting_for) == ["an executor that knows single_turn"]
    listed = await planner.plans().ListRuns(pb.ListRunsRequest())
    assert [list(found.waiting_for) for found in listed.runs] == [["an executor that knows single_turn"]]
    checks = await executor_look.look(planner.service.scheduler, planner.service.ready)[1](InspectProcessRequest())
    (check,) = checks
    assert (check.name, check.detail) == ("executors", f"run {run.id} waits for an executor that knows single_turn")
    leases = await planner.lease(executor="e2")
    assert len(leases) == 2
    await planner.complete(leases)
    await until_async(known)
