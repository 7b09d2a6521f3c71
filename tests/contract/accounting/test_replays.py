"""Replays: copies of saved facts under a run of their own; the originals and every spend stay as they were."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import wire
from srbench_kit.values import object_of, to_value

REPLAY = "run-other"


def request(*cells: tuple[int, int], source: str = "run-1") -> pb.RecordReplayRequest:
    """Copies of (cell, source cell); all of the replay's cells are of its first target."""
    asked = pb.RecordReplayRequest(run_id=REPLAY, source_run_id=source, preview_run_id="run-preview")
    for cell, source_cell in cells:
        asked.cells.add(
            cell=cell,
            case_index=cell,
            source_cell=source_cell,
            selected_model="m",
            decision="easy",
            config_hash="h",
        )
    return asked


@pytest.fixture
async def saved(writer: Any, facts: Any, other_facts: Any, evidence_of: Any) -> str:
    """The run whose cells 0 and 3 hold graded answers; cell 0 was judged, cell 3 was offered twice."""
    await writer.send(facts.dispatch(0), *facts.settle(0, evidence=evidence_of("B"), cost=60))
    judge = {"role": pb.CALL_ROLE_JUDGE, "auxiliary_target_id": "judge"}
    await writer.send(facts.dispatch(0, 1, **judge), *facts.settle(0, 1, cost=5))
    await writer.send(facts.outcome(0, details=to_value({"why": "B"})))
    refused = {"status": pb.CALL_STATUS_NOT_ACCEPTED, "reason": "rate_limited", "cost": None}
    await writer.send(facts.dispatch(3), *facts.settle(3, **refused))
    await writer.send(facts.dispatch(3, 0, 1), *facts.settle(3, 0, 1, cost=40))
    await writer.send(facts.outcome(3, correct=False, score=0.0))
    return str(facts.run_id)


async def test_copies_name_their_source_and_nothing_is_spent(service: Any, saved: str, writer: Any) -> None:
    before = await service.spend(saved)
    originals = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=saved))
    answer = await service.as_planner.RecordReplay(request((0, 0), (1, 3), source=saved))
    assert answer.cell_count == 2
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=REPLAY))).calls
    assert [(call.case_id, call.target_id, call.role, call.cost_picodollars) for call in calls] == [
        ("case-0", "fast", pb.CALL_ROLE_SUBJECT, 60),
        ("case-0", "fast", pb.CALL_ROLE_JUDGE, 5),
        ("case-1", "fast", pb.CALL_ROLE_SUBJECT, 40),
    ]
    assert {call.status for call in calls} == {pb.CALL_STATUS_REPLAYED}
    assert {call.source_run_id for call in calls} == {saved}
    assert [call.source_call_id for call in calls] == [originals.calls[place].id for place in (0, 1, 3)]
    assert [(call.selected_model, call.decision, call.config_hash) for call in calls] == [
        ("m", "easy", "h"),
        ("", "", ""),
        ("m", "easy", "h"),
    ]
    assert all(call.id.startswith("cached-") and not call.HasField("reserved_picodollars") for call in calls)
    spend = await service.spend(REPLAY)
    assert (spend.known_cost_picodollars, spend.reserved_picodollars, spend.call_count) == (0, 0, 3)
    assert await service.spend(saved) == before
    assert await service.gateway.ListCalls(pb.ListCallsRequest(run_id=saved)) == originals


async def test_a_copied_call_reads_its_texts_from_the_original_evidence(service: Any, saved: str) -> None:
    await service.as_planner.RecordReplay(request((0, 0), source=saved))
    (call, *_) = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=REPLAY))).calls
    for name in (call.id, call.id.replace("cached-", "call-")):
        whole = await service.gateway.GetCall(pb.GetCallRequest(run_id=REPLAY, call_id=name))
        assert (whole.final, whole.id) == ("B", call.id)


async def test_outcomes_keep_their_grade_and_say_where_it_comes_from(service: Any, saved: str) -> None:
    await service.as_planner.RecordReplay(request((0, 0), (1, 3), source=saved))
    found = (await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=REPLAY))).results
    assert [(item.case_id, item.target_id, item.correct) for item in found] == [
        ("case-0", "fast", True),
        ("case-1", "fast", False),
    ]
    assert object_of(found[0].details) == {
        "why": "B",
        "replay": {
            "source_run_id": saved,
            "source_target_id": "fast",
            "preview_run_id": "run-preview",
            "selected_model": "m",
            "decision": "easy",
        },
    }
    assert object_of(found[1].details)["replay"]["source_target_id"] == "slow"  # type: ignore[index,call-overload]
    assert not found[0].HasField("latency_s"), "nothing was waited for"


async def test_the_same_cells_again_change_nothing(service: Any, saved: str) -> None:
    for _ in range(2):
        await service.as_planner.RecordReplay(request((0, 0), source=saved))
    await service.as_planner.RecordReplay(request((0, 0), (1, 3), source=saved))
    assert (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=REPLAY))).total == 3
    assert (await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=REPLAY))).total == 2


@pytest.mark.parametrize("source_cell", [1, 7])
async def test_a_cell_without_one_graded_answer_is_refused_and_nothing_is_written(
    service: Any, saved: str, writer: Any, facts: Any, source_cell: int
) -> None:
    await writer.send(facts.dispatch(1), *facts.settle(1), facts.outcome(1, correct=None, score=None))
    with pytest.raises(aio.AioRpcError) as caught:
        await service.as_planner.RecordReplay(request((0, 0), (1, source_cell), source=saved))
    assert wire.reason(caught.value) == "BAD_REPLAY"
    assert (await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=REPLAY))).total == 0


async def test_only_the_planner_may_record_a_replay(service: Any, saved: str) -> None:
    for stub in (service.executor, service.gateway):
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.RecordReplay(request((0, 0), source=saved))
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_no_executor_may_settle_a_call_as_replayed(writer: Any, facts: Any) -> None:
    reasons = await writer.reasons(facts.dispatch(0), facts.settle(0, status=pb.CALL_STATUS_REPLAYED))
    assert reasons == ["", "BAD_SETTLE"]
