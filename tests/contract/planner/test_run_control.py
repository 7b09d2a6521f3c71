"""Pause, resume and concurrency of a run that goes on: durable, told as events, and no part of the plan."""

from __future__ import annotations

import asyncio
from typing import Any

from planner_doubles import case, manifest
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import auth
from srbench_kit.values import from_value

from tests.contract.refusals import reason


def cases(count: int, concurrency: int = 4) -> dict[str, Any]:
    return manifest(cases=[case(f"q{index}") for index in range(count)], limits={"concurrency": concurrency})


async def events(planner: Any, run_id: str) -> list[tuple[str, Any]]:
    found = await planner.plans().ListRunEvents(pb.ListRunEventsRequest(run_id=run_id))
    return [(event.type, from_value(event.data)) for event in found.events]


async def pause(planner: Any, run_id: str) -> Any:
    return await planner.plans().PauseRun(pb.PauseRunRequest(id=run_id))


async def resume(planner: Any, run_id: str) -> Any:
    return await planner.plans().ResumeRun(pb.ResumeRunRequest(id=run_id))


async def set_concurrency(planner: Any, run_id: str, count: int) -> Any:
    return await planner.plans().SetRunConcurrency(pb.SetRunConcurrencyRequest(id=run_id, concurrency=count))


async def test_a_paused_run_drains_and_goes_on_where_it_was(planner: Any) -> None:
    run = await planner.run(cases(6))
    leases = await planner.lease(most=2)
    paused = await pause(planner, run.id)
    assert (paused.paused, paused.status, paused.progress.running) == (True, "running", 2)
    assert await planner.lease() == []
    await planner.complete(leases)
    assert [name for name, _ in await events(planner, run.id)] == ["created", "running", "paused", "drained"]
    await pause(planner, run.id)
    assert await planner.lease() == []
    waiting = asyncio.create_task(planner.lease(wait_s=10))
    await asyncio.sleep(0.1)
    assert (await resume(planner, run.id)).paused is False
    assert [lease.cell for lease in await waiting] == [2, 3, 4, 5]
    assert [name for name, _ in await events(planner, run.id)][-1] == "resumed"


async def test_concurrency_changes_at_once_and_the_plan_keeps_its_own(planner: Any) -> None:
    run = await planner.run(cases(20, concurrency=2))
    first = await planner.lease()
    assert len(first) == 2
    waiting = asyncio.create_task(planner.lease(wait_s=10))
    await asyncio.sleep(0.1)
    changed = await set_concurrency(planner, run.id, 5)
    assert (changed.concurrency, changed.plan.limits.concurrency) == (5, 2)
    assert changed.plan.plan_sha256 == run.plan.plan_sha256
    second = await waiting
    assert len(second) == 3
    await set_concurrency(planner, run.id, 1)
    await planner.complete([*first, *second[:2]])
    assert await planner.lease() == [], "one is still in hand"
    await planner.complete(second[2:])
    assert len(await planner.lease()) == 1
    changes = [data for name, data in await events(planner, run.id) if name == "concurrency_changed"]
    assert changes == [{"actor": "local", "from": 2, "to": 5}, {"actor": "local", "from": 5, "to": 1}]


async def test_both_outlive_the_planner(start: Any) -> None:
    first = await start()
    run = await first.run(cases(6))
    await pause(first, run.id)
    await set_concurrency(first, run.id, 3)
    await first.close()
    second = await start()
    found = await second.get(run.id)
    assert (found.paused, found.concurrency) == (True, 3)
    assert await second.lease(wait_s=0.5) == []
    await resume(second, run.id)
    leases = await second.lease(wait_s=10)
    assert len(leases) == 3
    await second.complete([*leases])
    await second.complete(await second.lease(wait_s=10))
    ended = await second.ended(run.id)
    assert (ended.status, ended.paused, ended.concurrency) == ("completed", False, 3)


async def test_what_cannot_be_changed_says_so(planner: Any) -> None:
    run = await planner.run(cases(1))
    for count in (0, -1, 100_001):
        assert await reason(set_concurrency(planner, run.id, count)) == "BAD_FIELD"
    assert await reason(pause(planner, "run-none")) == "NO_SUCH_RUN"
    other = planner.plans(auth.Actor(id="somebody", role="write"))
    assert await reason(other.PauseRun(pb.PauseRunRequest(id=run.id))) == "NO_SUCH_RUN"
    await pause(planner, run.id)
    await planner.plans().CancelRun(pb.CancelRunRequest(id=run.id))
    assert (await planner.ended(run.id)).status == "cancelled"
    for change in (pause, resume):
        assert await reason(change(planner, run.id)) == "RUN_ENDED"
    assert await reason(set_concurrency(planner, run.id, 2)) == "RUN_ENDED"


async def test_a_pause_does_not_stop_the_clock(planner: Any) -> None:
    run = await planner.run(
        manifest(cases=[case("q")], limits={"max_run_seconds": 1, "total_timeout_s": 1, "idle_timeout_s": 1})
    )
    await pause(planner, run.id)
    ended = await planner.ended(run.id)
    assert (ended.status, ended.reason) == ("failed", "deadline")
