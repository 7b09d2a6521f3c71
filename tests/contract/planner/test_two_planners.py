"""Several planners over one database: one has the queue, the others pass calls on; one that was outrun saves nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import orjson
import pytest
import sqlalchemy as sa
from grpc import aio
from planner_doubles import case, manifest, target
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb2
from srbench_kit import auth, wire
from srbench_kit.errors import Unreachable
from srbench_kit.values import object_of, to_value
from srbench_planner import store
from srbench_planner.cells import CellState
from srbench_planner.queue import Ref

from tests.waiting import PATIENCE_S, until_async

pytestmark = pytest.mark.postgres_only
DONE = queue_pb2.CELL_STATE_DONE


def cases(count: int) -> dict[str, Any]:
    return manifest(cases=[case(f"q{index}") for index in range(count)], limits={"concurrency": 64})


async def ready(planner: Any) -> None:
    await asyncio.wait_for(planner.service.ready.wait(), PATIENCE_S)


def saved(planner: Any, run_id: str) -> list[tuple[int, int, int]]:
    """State and token of each saved cell."""
    rows = sa.select(store.cells.c.cell, store.cells.c.state, store.cells.c.token).order_by(store.cells.c.cell)
    joined = rows.join(store.runs, store.runs.c.number == store.cells.c.run).where(store.runs.c.id == run_id)
    return planner.service.reader.run_now(lambda c: [tuple(row) for row in c.execute(joined)])


async def test_callers_may_talk_to_any_planner(start: Any) -> None:
    first, second = await start(), await start()
    assert first.service.ready.is_set()
    assert not second.service.ready.is_set()
    run = await second.run(cases(4))
    leases = await second.lease(most=3)
    assert [lease.cell for lease in leases] == [0, 1, 2]
    await second.complete(leases)
    assert (await first.get(run.id)).progress.completed == (await second.get(run.id)).progress.completed == 3
    watched = second.plans().WatchRun(pb.WatchRunRequest(id=run.id), timeout=60)
    assert (await watched.read()).status == "running"
    await first.complete(await first.lease())
    assert [seen.status async for seen in watched][-1] == "completed"
    with pytest.raises(aio.AioRpcError) as caught:
        await second.plans().GetRun(pb.GetRunRequest(id="run-none"))
    assert wire.reason(caught.value) == "NO_SUCH_RUN"
    context = await second.queue().GetRunContext(queue_pb2.GetRunContextRequest(run_id=run.id))
    assert context.run_id == run.id


async def test_an_orderly_end_hands_the_queue_on_before_the_right_to_it_runs_out(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SR_BENCH_OWNER_LEASE_S", "600")
    first, second = await start(), await start()
    run = await first.run(cases(3))
    leases = await first.lease(most=2)
    await first.close()
    await ready(second)
    await second.complete(leases)
    await second.complete(await second.lease(wait_s=10))
    assert (await second.ended(run.id)).status == "completed"


async def test_a_planner_that_lost_the_queue_saves_no_lease_and_no_end(start: Any) -> None:
    first, second = await start(), await start()
    run = await first.run(cases(3))
    kept = await first.lease(most=1)
    first.freeze()
    await ready(second)
    # The first one comes back, and does not know yet.
    scheduler, cells = first.service.scheduler, first.service.scheduler.active[run.id].cells
    for change in (
        lambda: scheduler.queue.lease(1, frozenset({"single_turn"}), 1, scheduler.clock(), 60.0),
        lambda: scheduler.queue.complete(Ref(run.id, 0, 1), CellState.DONE, ""),
        lambda: scheduler.stop(cells, "failed", "deadline", at_once=False),
    ):
        change()
        scheduler.begin(cells)
        with pytest.raises(Unreachable) as caught:
            await scheduler.save()
        assert caught.value.reason == "QUEUE_LOST"
    assert saved(second, run.id) == [(0, 2, 1)]
    (ended,) = await asyncio.wait_for(asyncio.gather(first.ticking, return_exceptions=True), PATIENCE_S)
    assert isinstance(ended, Unreachable)
    # Until its process is gone it passes calls on, too.
    await first.complete(kept)
    leases = await first.lease(wait_s=10)
    assert [(lease.cell, lease.token) for lease in leases] == [(1, 1), (2, 1)]
    await second.complete(leases)
    assert (await second.ended(run.id)).status == "completed"


async def test_a_hand_over_waits_for_what_the_owner_is_saving(start: Any) -> None:
    first, second = await start(), await start()
    first.freeze()
    entered, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: Any) -> int:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(PATIENCE_S)
        event = {"run": 1, "type": "late", "create_us": 1, "data": "{}"}
        connection.execute(store.events.insert(), event)
        return 1

    saving = asyncio.ensure_future(first.service.writer.run(slow))
    await entered.wait()
    await asyncio.sleep(2)
    assert not second.service.ready.is_set(), "the owner's transaction may still be saved"
    leave.set()
    assert await saving == 1
    await ready(second)


async def test_a_run_that_somebody_holds_is_taken_over_later_and_holds_up_no_other(start: Any) -> None:
    first = await start()
    held, free = await first.run(cases(1), "held"), await first.run(cases(1), "free")
    engine = first.service.engine
    with engine.connect() as connection, connection.begin():
        lock = sa.select(store.runs.c.number).where(store.runs.c.id == held.id).with_for_update()
        connection.execute(lock)
        second = await start()
        first.freeze()
        await ready(second)
        assert set(second.service.scheduler.active) == {free.id}
        (lease,) = await second.lease(wait_s=10)
        assert lease.run_id == free.id
    (lease,) = await second.lease(wait_s=10)
    assert lease.run_id == held.id


async def test_three_planners_agree_on_one(start: Any) -> None:
    planners = await asyncio.gather(*[start() for _ in range(3)])
    await until_async(lambda: any(planner.service.ready.is_set() for planner in planners))
    # Time in which another one could be wrong.
    await asyncio.sleep(0.5)
    owners = [planner for planner in planners if planner.service.ready.is_set()]
    assert len(owners) == 1
    run = await planners[0].run(cases(30))
    leases = await asyncio.gather(*[planner.lease(most=4) for planner in planners * 2])
    cells = [lease.cell for part in leases for lease in part]
    assert sorted(cells) == list(range(24))
    assert (await planners[2].get(run.id)).progress.total == 30


async def listed(planner: Any) -> list[str]:
    return [found.id for found in (await planner.plans().ListTargets(pb.ListTargetsRequest())).targets]


async def options(planner: Any) -> dict[str, Any]:
    return object_of((await planner.plans().GetBenchmarkOptions(pb.GetBenchmarkOptionsRequest())).options)


async def test_what_an_operator_registered_at_one_machine_is_known_at_another_after_a_take_over(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SR_BENCH_OBJECTS_URL", f"file://{tmp_path}/objects")
    first, second = await start(tmp_path / "one"), await start(tmp_path / "two")
    targets = pb.RegisterTargetsRequest(document=to_value([target("a"), target("b")]))
    await second.plans().RegisterTargets(targets)
    document = {"hle": {"judge": "a"}}
    await first.plans().RegisterBenchmarkOptions(pb.RegisterBenchmarkOptionsRequest(document=to_value(document)))
    await first.close()
    await ready(second)
    assert await listed(second) == ["a", "b"]
    assert await options(second) == document
    ann = auth.Actor(id="ann", role="write")
    plan = await second.plans(ann).FreezePlan(pb.FreezePlanRequest(manifest=to_value(manifest(targets=[{"id": "b"}]))))
    assert [found.base_url for found in plan.targets] == [target("b")["base_url"]]
    assert not list(tmp_path.glob("*/targets.json"))  # noqa: ASYNC240 - a test


async def test_a_registry_of_files_is_taken_into_the_database_once(start: Any, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, name in ((old, "a"), (new, "stale")):
        folder.mkdir()
        (folder / "targets.json").write_bytes(orjson.dumps([target(name)]))
    (old / "benchmark-options.json").write_bytes(b'{"hle": {"judge": "a"}}')
    first = await start(old)
    second = await start(new)
    assert await listed(first) == await listed(second) == ["a"]
    await first.close()
    await ready(second)
    assert (await listed(second), await options(second)) == (["a"], {"hle": {"judge": "a"}})


async def test_a_planner_that_lost_the_queue_registers_nothing(start: Any, tmp_path: Path) -> None:
    first, second = await start(tmp_path / "one"), await start(tmp_path / "two")
    await first.plans().RegisterTargets(pb.RegisterTargetsRequest(document=to_value([target("a")])))
    first.freeze()
    await ready(second)
    with pytest.raises(Unreachable) as caught:
        await first.service.registry.replace([target("late")])
    assert caught.value.reason == "QUEUE_LOST"
    assert await listed(second) == ["a"]
    await second.plans().RegisterTargets(pb.RegisterTargetsRequest(document=to_value([target("b")])))
    rows = second.service.reader.run_now(lambda c: c.execute(sa.select(store.operator_documents)).all())
    assert [(row.name, row.revision) for row in rows] == [("targets.json", 2)]


@pytest.mark.parametrize("through", ["owner", "other"])
async def test_of_two_operators_who_change_one_list_the_second_is_told(start: Any, tmp_path: Path, through: str) -> None:
    """Each lists, changes, and registers at another planner; none may undo unseen what the other did."""
    first, second = await start(tmp_path / "one"), await start(tmp_path / "two")
    await ready(first)
    ann, bob = (first, second) if through == "owner" else (second, first)
    revisions = [(await each.plans().ListTargets(pb.ListTargetsRequest())).revision for each in (ann, bob)]
    assert revisions[0] == revisions[1] != ""

    def register(planner: Any, name: str, expected: str) -> Any:
        document = to_value([target(name)])
        return planner.plans().RegisterTargets(pb.RegisterTargetsRequest(document=document, expected_revision=expected))

    found = await register(ann, "a", revisions[0])
    with pytest.raises(aio.AioRpcError) as caught:
        await register(bob, "b", revisions[1])
    assert (caught.value.code(), wire.reason(caught.value)) == (grpc.StatusCode.FAILED_PRECONDITION, "REGISTRY_CHANGED")
    assert await listed(bob) == ["a"]
    assert (await register(bob, "b", found.revision)).targets[0].id == "b"


async def test_many_writers_who_expect_the_same_revision_are_one_winner_and_losers(start: Any, tmp_path: Path) -> None:
    first, second = await start(tmp_path / "one"), await start(tmp_path / "two")
    await ready(first)
    before = (await first.plans().ListTargets(pb.ListTargetsRequest())).revision

    async def register(number: int) -> str:
        document = to_value([target(f"t{number}")])
        request = pb.RegisterTargetsRequest(document=document, expected_revision=before)
        try:
            await (first, second)[number % 2].plans().RegisterTargets(request)
        except aio.AioRpcError as error:
            return wire.reason(error) or ""
        return f"t{number}"

    found = await asyncio.gather(*[register(number) for number in range(8)])
    assert sorted(found)[:7] == ["REGISTRY_CHANGED"] * 7
    assert await listed(second) == [name for name in found if name != "REGISTRY_CHANGED"]
