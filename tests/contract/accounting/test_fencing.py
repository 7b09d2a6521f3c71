"""Fences: what the planner learns of a cell, and what an outrun executor may still do."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import wire

RUN = "run-0123456789abcdef0123"


async def test_nothing_is_known_of_a_cell_without_facts_and_its_old_token_is_outrun(
    service: Any, writer: Any, facts: Any
) -> None:
    known = await service.fence(3, 2)
    assert (known.dispatched, known.open, known.outcome) == (False, False, queue_pb.CELL_STATE_UNSPECIFIED)
    assert await writer.reasons(facts.dispatch(3, token=1), facts.dispatch(3, token=2)) == ["OUTRUN_TOKEN", ""]


async def test_an_open_dispatch_becomes_unknown_and_its_cell_interrupted(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0))
    known = await service.fence(0, 2)
    assert (known.dispatched, known.open) == (True, True)
    assert (known.outcome, known.reason) == (queue_pb.CELL_STATE_INTERRUPTED, "executor_lost")
    again = await service.fence(0, 2)
    assert (again.open, again.outcome) == (False, queue_pb.CELL_STATE_INTERRUPTED)
    outcomes = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN))
    assert [(row.status, row.reason) for row in outcomes.results] == [("sent_unknown", "executor_lost")]
    spend = await service.spend()
    assert (spend.reserved_picodollars, spend.open_call_count, spend.unknown_cost_count) == (100, 0, 1)


async def test_open_dispatches_may_be_kept_open(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0))
    known = await service.fence(0, 2, keep_open=True)
    assert (known.open, known.outcome) == (True, queue_pb.CELL_STATE_UNSPECIFIED)
    assert await writer.reasons(facts.dispatch(0), facts.settle(0)) == ["OUTRUN_TOKEN", ""]
    assert (await service.spend()).known_cost_picodollars == 60


async def test_a_settled_cell_without_a_grade_goes_on_with_the_next_token(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("C")))
    known = await service.fence(0, 2)
    assert (known.dispatched, known.open, known.outcome) == (True, False, queue_pb.CELL_STATE_UNSPECIFIED)
    (ack,) = await writer.send(facts.dispatch(0, token=2))
    assert (ack.reason, ack.known_call.final_text) == ("ALREADY_DISPATCHED", "C")
    assert await writer.reasons(facts.outcome(0, token=1)) == ["OUTRUN_TOKEN"]
    assert await writer.reasons(facts.outcome(0, token=2)) == [""]
    assert (await service.fence(0, 3)).outcome == queue_pb.CELL_STATE_DONE


async def test_an_unresumable_cell_is_interrupted_by_any_call_that_it_made(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("C")))
    known = await service.fence(0, 2, unresumable=True)
    assert (known.open, known.outcome, known.reason) == (False, queue_pb.CELL_STATE_INTERRUPTED, "executor_lost")
    assert (await service.spend()).known_cost_picodollars == 60
    untouched = await service.fence(1, 2, unresumable=True)
    assert untouched.outcome == queue_pb.CELL_STATE_UNSPECIFIED
    await writer.send(facts.dispatch(3), facts.settle(3), facts.outcome(3))
    assert (await service.fence(3, 2, unresumable=True)).outcome == queue_pb.CELL_STATE_DONE


async def test_a_provably_refused_call_does_not_count_as_dispatched(service: Any, writer: Any, facts: Any) -> None:
    refused = facts.settle(0, cost=None, status=pb.CALL_STATUS_NOT_ACCEPTED, reason="connect_failed")
    await writer.send(facts.dispatch(0), refused)
    known = await service.fence(0, 2)
    assert (known.dispatched, known.open) == (False, False)


async def test_a_late_outcome_is_kept_beside_the_interruption(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0))
    await service.fence(0, 2)
    late = facts.outcome(0)
    assert await writer.reasons(facts.settle(0), late) == ["", "OUTRUN_TOKEN"]
    assert await writer.reasons(late) == ["OUTRUN_TOKEN"]
    outcomes = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN))
    assert [row.status for row in outcomes.results] == ["sent_unknown"]
    with service.store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT cell, state FROM outcomes_apart").fetchall() == [(0, 3)]
    assert (await service.spend()).known_cost_picodollars == 60


async def test_a_partial_stream_fills_an_unknown_end_that_has_none(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    await writer.send(facts.dispatch(0))
    await service.fence(0, 2)
    partial = {"cost": None, "status": pb.CALL_STATUS_SENT_UNKNOWN, "reason": "executor_lost"}
    assert await writer.reasons(facts.settle(0, evidence=evidence_of("par"), **partial)) == [""]
    (call,) = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    assert (call.status, len(call.evidence_sha256)) == (pb.CALL_STATUS_SENT_UNKNOWN, 64)
    assert (await service.spend()).unknown_cost_count == 1


async def test_writing_rpcs_are_for_their_roles_only(service: Any) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.HaltRun(pb.HaltRunRequest(run_id=RUN))
    assert wire.reason(caught.value) == "WRONG_ROLE"
    with pytest.raises(aio.AioRpcError) as caught:
        await service.executor.FenceCells(pb.FenceCellsRequest(run_id=RUN))
    assert wire.reason(caught.value) == "WRONG_ROLE"


async def test_a_fence_that_makes_no_sense_is_refused(service: Any) -> None:
    request = pb.FenceCellsRequest(run_id=RUN, fences=[pb.CellFence(cell=-1, token=1)])
    with pytest.raises(aio.AioRpcError) as caught:
        await service.as_planner.FenceCells(request)
    assert wire.reason(caught.value) == "BAD_FENCE"
