"""Runs over the wire: keys, owners, lists, events, cancel."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa
from planner_doubles import case, manifest, target
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb2
from srbench_kit import auth
from srbench_kit.values import object_of, to_value
from srbench_planner import store

from tests.contract.refusals import reason

ANN, BOB = auth.Actor(id="ann", role="write"), auth.Actor(id="bob", role="read")
ROOT = auth.Actor(id="root", role="admin")


def cases(count: int) -> dict[str, Any]:
    return manifest(cases=[case(f"q{index}") for index in range(count)], limits={"concurrency": 64})


async def events(planner: Any, run_id: str, **fields: Any) -> list[Any]:
    answer = await planner.plans().ListRunEvents(pb.ListRunEventsRequest(run_id=run_id, **fields))
    return list(answer.events)


async def test_a_key_starts_one_run_and_another_manifest_under_it_is_a_conflict(planner: Any) -> None:
    first, second = await asyncio.gather(planner.run(cases(2)), planner.run(cases(2)))
    assert first.id == second.id
    assert (await planner.run(cases(2), key="other")).id != first.id
    for change in ({"limits": {"concurrency": 2}}, {"limits": {"max_cost_usd": 9}}, {"name": "x"}):
        assert await reason(planner.run(cases(2) | change)) == "IDEMPOTENCY_CONFLICT"
    for key in ("", "k" * 201):
        assert await reason(planner.run(cases(2), key=key)) == "BAD_IDEMPOTENCY_KEY"
    assert (await planner.run(cases(2), key="k" * 200)).idempotency_key == "k" * 200


async def test_a_reviewed_plan_that_changed_is_refused(planner: Any) -> None:
    plan = await planner.plans().FreezePlan(pb.FreezePlanRequest(manifest=to_value(cases(1))))
    frozen = object_of(plan.manifest)
    assert (await planner.run(frozen)).plan.plan_sha256 == plan.plan_sha256
    assert await reason(planner.run(frozen | {"seed": 1}, key="k2")) == "REVIEWED_PLAN_CHANGED"


async def test_runs_of_other_owners_are_not_there_but_for_admins(planner: Any) -> None:
    local = await planner.run(cases(1))
    await planner.plans().RegisterTargets(pb.RegisterTargetsRequest(document=to_value([target()])))
    mine = await planner.run(cases(1), actor=ANN)
    assert mine.owner == "ann"
    assert mine.id != local.id, "the key is the owner's own"
    for call in (
        lambda stub: stub.GetRun(pb.GetRunRequest(id=mine.id)),
        lambda stub: stub.CancelRun(pb.CancelRunRequest(id=mine.id)),
        lambda stub: stub.ListRunEvents(pb.ListRunEventsRequest(run_id=mine.id)),
        lambda stub: stub.ListCells(pb.ListCellsRequest(run_id=mine.id)),
        lambda stub: stub.WatchRun(pb.WatchRunRequest(id=mine.id)).read(),
    ):
        assert await reason(call(planner.plans(BOB))) == "NO_SUCH_RUN"
        await call(planner.plans(ROOT))
    assert (await planner.plans(BOB).ListRuns(pb.ListRunsRequest())).total == 0
    assert [run.id for run in (await planner.plans(ANN).ListRuns(pb.ListRunsRequest())).runs] == [mine.id]
    assert (await planner.plans(ROOT).ListRuns(pb.ListRunsRequest())).total == 2


async def test_lists_page_newest_first_and_filter(planner: Any) -> None:
    ids = [(await planner.run(cases(1) | {"name": f"Run {index}"}, key=str(index))).id for index in range(5)]
    stub = planner.plans()
    await stub.CancelRun(pb.CancelRunRequest(id=ids[0]))
    first = await stub.ListRuns(pb.ListRunsRequest(page_size=2))
    second = await stub.ListRuns(pb.ListRunsRequest(page_size=2, page_token=first.next_page_token))
    third = await stub.ListRuns(pb.ListRunsRequest(page_size=2, page_token=second.next_page_token))
    assert [run.id for page in (first, second, third) for run in page.runs] == ids[::-1]
    assert (first.total, third.next_page_token) == (5, "")
    assert not first.runs[0].plan.HasField("manifest")
    for filters, expected in (
        ({"query": "RUN 3"}, [ids[3]]),
        ({"query": "%"}, []),
        ({"status": "cancelled"}, [ids[0]]),
        ({"mode": "preview"}, []),
        ({"query": ids[2]}, [ids[2]]),
        ({"query": f"{first.runs[0].plan.targets[0].model}\n"}, []),
        ({"query": first.runs[0].plan.targets[0].model.upper()}, ids[::-1]),
        ({"query": "single"}, ids[::-1]),
        ({"profile": first.runs[0].plan.profile}, ids[::-1]),
        ({"profile": "standard"}, []),
    ):
        assert [run.id for run in (await stub.ListRuns(pb.ListRunsRequest(**filters))).runs] == expected
    changed = pb.ListRunsRequest(page_size=2, page_token=first.next_page_token, status="queued")
    assert await reason(stub.ListRuns(changed)) == "BAD_PAGE_TOKEN"
    assert await reason(stub.ListRuns(pb.ListRunsRequest(page_size=-1))) == "BAD_PAGE_SIZE"
    for name in ("status", "mode", "profile"):
        assert await reason(stub.ListRuns(pb.ListRunsRequest(**{name: "lost"}))) == "BAD_FIELD"


async def test_runs_of_an_older_store_are_found_by_what_newer_ones_are(start: Any) -> None:
    first = await start()
    run = await first.run(cases(1) | {"name": "Old"})
    with first.service.engine.connect() as opened:
        connection = opened.execution_options(srbench_write=True)
        with connection.begin():
            connection.execute(store.runs.update().values(searchable="old"))
            connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN profile")
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0006_dataset_preparations'")
    await first.close()
    stub = (await start()).plans()
    for filters in ({"query": "old"}, {"query": run.plan.targets[0].model}, {"profile": run.plan.profile}):
        assert [found.id for found in (await stub.ListRuns(pb.ListRunsRequest(**filters))).runs] == [run.id], filters


async def test_a_run_goes_from_queued_to_completed_and_events_tell_it(planner: Any) -> None:
    run = await planner.run(cases(3))
    assert (run.status, run.progress.total) == ("queued", 3)
    leases = await planner.lease()
    assert (await planner.get(run.id)).progress.running == 3
    await planner.complete(leases[:2])
    await planner.complete(leases[2:], queue_pb2.CELL_STATE_FAILED, "http_error")
    ended = await planner.get(run.id)
    assert (ended.status, ended.reason) == ("completed", "")
    assert (ended.progress.completed, ended.progress.failed, ended.progress.running) == (2, 1, 0)
    found = await events(planner, run.id)
    assert [item.type for item in found] == ["created", "running", "failure_observed", "case_failed", "completed"]
    assert object_of(found[3].data) == {"cell": 2, "target_id": "a", "case_id": "q2", "reason": "http_error"}
    page = await planner.plans().ListRunEvents(pb.ListRunEventsRequest(run_id=run.id, page_size=2))
    assert page.has_more
    rest = await planner.plans().ListRunEvents(pb.ListRunEventsRequest(run_id=run.id, after=page.events[-1].seq))
    assert (len(rest.events), rest.has_more) == (3, False)
    assert [item.type for item in await events(planner, run.id, type="case_failed")] == ["case_failed"]
    both = await events(planner, run.id, type="case_failed,created")
    assert [item.type for item in both] == ["created", "case_failed"]
    full = await planner.plans().GetRun(pb.GetRunRequest(id=run.id))
    assert object_of(full.provenance)["fingerprint"]
    assert object_of(full.plan.manifest)["version"] == "sr-bench-1.0"


async def test_watching_shows_changes_and_ends_with_the_run(planner: Any) -> None:
    run = await planner.run(cases(1))
    seen: list[str] = []

    async def watch() -> None:
        async for found in planner.plans().WatchRun(pb.WatchRunRequest(id=run.id)):
            seen.append(found.status)

    watching = asyncio.create_task(watch())
    await planner.complete(await planner.lease(wait_s=5))
    await asyncio.wait_for(watching, 60)
    assert seen[-1] == "completed"


async def test_cancel_ends_queued_cells_at_once_and_tells_executors(planner: Any) -> None:
    run = await planner.run(cases(20) | {"limits": {"concurrency": 2}})
    leases = await planner.lease()
    assert len(leases) == 2
    stopped = await planner.plans().CancelRun(pb.CancelRunRequest(id=run.id))
    assert (stopped.status, stopped.progress.cancelled, stopped.progress.running) == ("running", 18, 2)
    refs = [queue_pb2.LeaseRef(run_id=item.run_id, cell=item.cell, token=item.token) for item in leases]
    renewed = await planner.queue().RenewLeases(
        queue_pb2.RenewLeasesRequest(executor_id="e1", incarnation="i1", leases=refs)
    )
    assert [(item.run_id, item.reason) for item in renewed.stopped_runs] == [(run.id, "cancelled")]
    again = await planner.plans().CancelRun(pb.CancelRunRequest(id=run.id))
    assert again.progress == stopped.progress
    await planner.complete(leases, queue_pb2.CELL_STATE_CANCELLED, "cancelled")
    ended = await planner.plans().CancelRun(pb.CancelRunRequest(id=run.id))
    assert (ended.status, ended.reason, ended.progress.cancelled) == ("cancelled", "cancelled", 20)
    types = [item.type for item in await events(planner, run.id)]
    assert types == ["created", "running", "cancellation_requested", "cancelled"]
    assert planner.ledger.halted == {run.id: "cancelled"}


async def test_cells_are_listed_with_states_and_reasons_while_running_and_after(planner: Any) -> None:
    run = await planner.run(cases(5))
    leases = await planner.lease(2)
    await planner.complete(leases[:1], queue_pb2.CELL_STATE_FAILED, "idle_timeout")
    stub = planner.plans()
    for _ in range(2):
        listed = await stub.ListCells(pb.ListCellsRequest(run_id=run.id, page_size=3))
        rest = await stub.ListCells(pb.ListCellsRequest(run_id=run.id, page_size=3, page_token=listed.next_page_token))
        cells = [*listed.cells, *rest.cells]
        assert [(item.cell, item.case_id, item.target_id) for item in cells[:2]] == [(0, "q0", "a"), (1, "q1", "a")]
        assert (len(cells), rest.next_page_token, cells[0].reason) == (5, "", "idle_timeout")
        failed = await stub.ListCells(pb.ListCellsRequest(run_id=run.id, state=queue_pb2.CELL_STATE_FAILED))
        assert [item.cell for item in failed.cells] == [0]
        await stub.CancelRun(pb.CancelRunRequest(id=run.id))
        await planner.complete(leases[1:], queue_pb2.CELL_STATE_CANCELLED, "cancelled")
    assert {item.state for item in cells[1:]} == {queue_pb2.CELL_STATE_CANCELLED}
    assert {item.reason for item in cells[1:]} == {"cancelled"}
    token = listed.next_page_token
    wrong = pb.ListCellsRequest(run_id=run.id, page_token=token, state=queue_pb2.CELL_STATE_DONE)
    assert await reason(stub.ListCells(wrong)) == "BAD_PAGE_TOKEN"


async def test_a_run_of_16000_cells_is_written_with_as_many_statements_as_one_of_a_single_cell(planner: Any) -> None:
    written: list[str] = []

    @sa.event.listens_for(planner.service.engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # What the planner reads meanwhile, every second or so, is not this call's.
        if statement.startswith("INSERT"):
            written.append(statement)

    targets = [target(f"t{index}") for index in range(4)]
    assert (await planner.run(manifest(cases=[case("q0")], targets=targets[:1]), "small")).progress.total == 1
    for_one = list(written)
    written.clear()
    big = manifest(cases=[case(f"q{index}") for index in range(4000)], targets=targets)
    assert (await planner.run(big, "big")).progress.total == 16_000
    assert written == for_one


async def test_a_run_is_given_without_its_inline_cases_when_asked(planner: Any) -> None:
    run = await planner.run(cases(2))
    whole = await planner.plans().GetRun(pb.GetRunRequest(id=run.id))
    lean = await planner.plans().GetRun(pb.GetRunRequest(id=run.id, without_cases=True))
    kept = [member for member in whole.plan.manifest.object_value.members if member.key != "cases"]
    assert len(whole.plan.manifest.object_value.members) == len(kept) + 1
    assert list(lean.plan.manifest.object_value.members) == kept
    assert lean.provenance == whole.provenance
