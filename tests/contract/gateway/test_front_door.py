"""The gRPC front door: what passes, what does not exist, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import ledger_service_pb2 as ledger
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import recovery_service_pb2 as recovery
from srbench_gateway.front_door import DOORS
from srbench_kit import wire
from srbench_kit.errors import Conflict
from srbench_kit.values import to_value


@pytest.fixture
async def channel(stand: Any) -> Any:
    async with wire.channel(f"127.0.0.1:{stand.grpc_port}") as channel:
        yield channel


def methods(service: Any) -> dict[str, Any]:
    return {f"/{service.full_name}/{method.name}": method for method in service.methods}


INSIDE = {
    *("StreamReferences", "StreamSealedCases", "StreamHiddenTests"),
    *("RecordFacts", "FenceCells", "HaltRun", "StreamCellLedgers", "RecordReplay"),
}


def test_every_method_has_a_door_but_those_between_services() -> None:
    plans = methods(planner.DESCRIPTOR.services_by_name["PlannerService"])
    facts = methods(accounting.DESCRIPTOR.services_by_name["AccountingService"])
    plans |= methods(recovery.DESCRIPTOR.services_by_name["RecoveryService"])
    facts |= methods(ledger.DESCRIPTOR.services_by_name["LedgerService"])
    expected = {name for name in plans | facts if name.rpartition("/")[2] not in INSIDE}
    assert set(DOORS) == expected
    for name, door in DOORS.items():
        assert door.streams == (plans | facts)[name].server_streaming, name
        assert not (plans | facts)[name].client_streaming
        if door.request is not None:
            assert door.request.DESCRIPTOR is (plans | facts)[name].input_type


@pytest.mark.parametrize(
    "method",
    [
        "/srbench.v1.PlannerService/StreamReferences",
        "/srbench.v1.PlannerService/StreamHiddenTests",
        "/srbench.v1.PlannerService/StreamSealedCases",
        "/srbench.v1.AccountingService/RecordFacts",
        "/srbench.v1.AccountingService/FenceCells",
        "/srbench.v1.AccountingService/HaltRun",
        "/srbench.v1.LedgerService/StreamCellLedgers",
        "/srbench.v1.WorkQueueService/LeaseCells",
        "/srbench.v1.WorkQueueService/GetRunContext",
        "/srbench.v1.GraderService/Grade",
        "/srbench.v1.ExecutorService/DrainExecutor",
        "/srbench.v1.PlannerService/getcatalog",
        "//srbench.v1.PlannerService/GetCatalog",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
async def test_all_else_does_not_exist(channel: aio.Channel, method: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await channel.unary_unary(method)(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_run_goes_through_from_its_plan_to_its_report(channel: aio.Channel) -> None:
    plans, facts = planner_rpc.PlannerServiceStub(channel), accounting_rpc.AccountingServiceStub(channel)
    plan = await plans.FreezePlan(planner.FreezePlanRequest(manifest=to_value({"version": "sr-bench-1.0"})))
    run = await plans.CreateRun(planner.CreateRunRequest(manifest=plan.manifest, idempotency_key="k"))
    assert run.plan.plan_sha256 == plan.plan_sha256
    seen = [shown.status async for shown in plans.WatchRun(planner.WatchRunRequest(id=run.id))]
    assert seen == ["running", "running", "completed"]
    cases = plans.StreamPlanCases(planner.StreamPlanCasesRequest(plan_sha256=plan.plan_sha256))
    assert [case.case_id async for part in cases for case in part.cases] == ["c0", "c1", "c2"]
    outcomes = await facts.ListOutcomes(accounting.ListOutcomesRequest(run_id=run.id, page_size=2))
    rest = accounting.ListOutcomesRequest(run_id=run.id, page_size=9, page_token=outcomes.next_page_token)
    assert [row.sequence for row in (await facts.ListOutcomes(rest)).results] == [3, 4, 5]
    evidence = facts.ReadEvidence(accounting.ReadEvidenceRequest(run_id=run.id, call_id=f"call-{1:032x}"))
    chunks = [chunk async for chunk in evidence]
    assert [chunk.offset for chunk in chunks] == [50 * n for n in range(len(chunks))]
    assert (await facts.GetReport(accounting.GetReportRequest(run_id=run.id))).run_id == run.id


async def test_errors_pass_untouched(stand: Any, channel: aio.Channel) -> None:
    stand.planner.failure = Conflict("NOT_NOW", "it is not the time, 3 was expected", wanted=3)
    with pytest.raises(aio.AioRpcError) as caught:
        await planner_rpc.PlannerServiceStub(channel).GetCatalog(planner.GetCatalogRequest())
    error = wire.to_error(caught.value)
    assert isinstance(error, Conflict)
    assert (error.reason, error.message) == ("NOT_NOW", "it is not the time, 3 was expected")
    assert error.facts == {"wanted": "3"}


async def test_errors_of_streams_pass_untouched(channel: aio.Channel) -> None:
    watched = planner_rpc.PlannerServiceStub(channel).WatchRun(planner.WatchRunRequest(id="run-none"))
    with pytest.raises(aio.AioRpcError) as caught:
        await watched.read()
    assert (caught.value.code(), wire.reason(caught.value)) == (grpc.StatusCode.NOT_FOUND, "NO_SUCH_RUN")


async def test_a_bug_behind_the_door_shows_nothing_of_the_inside(stand: Any, channel: aio.Channel) -> None:
    stand.planner.failure = RuntimeError("the inside")
    with pytest.raises(aio.AioRpcError) as caught:
        await planner_rpc.PlannerServiceStub(channel).GetCatalog(planner.GetCatalogRequest())
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "the inside" not in (caught.value.details() or "")


async def test_a_service_that_is_away_keeps_its_address_to_itself(stand: Any, channel: aio.Channel) -> None:
    port = stand.planner_server.port
    await stand.planner_server.drain(0)
    with pytest.raises(aio.AioRpcError) as caught:
        await planner_rpc.PlannerServiceStub(channel).GetCatalog(planner.GetCatalogRequest(), timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert wire.reason(caught.value) == "SERVICE_AWAY"
    assert str(port) not in (caught.value.details() or "")


async def test_the_callers_deadline_is_passed_on(stand: Any, channel: aio.Channel) -> None:
    plans = planner_rpc.PlannerServiceStub(channel)
    await plans.GetCatalog(planner.GetCatalogRequest(), timeout=60)
    # On the wire a deadline is rounded up.
    assert 30 < stand.planner.deadlines[-1] < 62
    await plans.GetCatalog(planner.GetCatalogRequest())
    assert 100 < stand.planner.deadlines[-1] < 122
    stand.planner.pause_s = 30
    with pytest.raises(aio.AioRpcError) as caught:
        await plans.GetCatalog(planner.GetCatalogRequest(), timeout=0.3)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_stream_that_its_reader_leaves_is_cancelled_behind_the_door(stand: Any, channel: aio.Channel) -> None:
    stand.planner.hold_watch = True
    run_id = await stand.run()
    watched = planner_rpc.PlannerServiceStub(channel).WatchRun(planner.WatchRunRequest(id=run_id))
    await watched.read()
    watched.cancel()
    await asyncio.wait_for(stand.planner.watched_until_cancelled.wait(), 60)


async def test_bytes_that_are_no_message_are_refused_where_they_are_read(channel: aio.Channel) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await channel.unary_unary("/srbench.v1.AccountingService/GetSpend")(b"\xff\xff\xff")
    assert (caught.value.code(), wire.reason(caught.value)) == (grpc.StatusCode.INVALID_ARGUMENT, "BAD_MESSAGE")


async def test_an_answer_of_many_megabytes_passes(channel: aio.Channel) -> None:
    manifest = {"version": "sr-bench-1.0", "cases": [{"id": str(n), "text": "x" * 1000} for n in range(20_000)]}
    plan = await planner_rpc.PlannerServiceStub(channel).FreezePlan(planner.FreezePlanRequest(manifest=to_value(manifest)))
    assert plan.ByteSize() > 20_000_000


async def test_health_answers_without_a_token(start: Any) -> None:
    stand = await start("a-token-for-callers-from-outside")
    async with wire.channel(f"127.0.0.1:{stand.grpc_port}") as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
