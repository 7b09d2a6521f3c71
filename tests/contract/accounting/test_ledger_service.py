"""Settlement by operators, facts by cell, and the whole ledger as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth, wire
from srbench_kit.values import to_value

RUN = "run-0123456789abcdef0123"
UNKNOWN = pb.CALL_STATUS_SENT_UNKNOWN


async def lost(service: Any, writer: Any, facts: Any, cell: int = 0, **changes: Any) -> str:
    """A call whose end nobody saw; its id."""
    lost = {"status": UNKNOWN, "cost": None, "usage_final": False, "http_status": None} | changes
    outcome = facts.outcome(cell, state=queue_pb.CELL_STATE_INTERRUPTED, reason="executor_lost", correct=None, score=None)
    assert not any(await writer.reasons(facts.dispatch(cell), facts.settle(cell, **lost), outcome))
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    return next(str(call.id) for call in calls if call.case_id == f"case-{cell // 2}")


def settle(service: Any, call_id: str, verdict: int, **more: Any) -> Any:
    request = ledger_pb.SettleCallRequest(run_id=RUN, call_id=call_id, verdict=verdict, **more)  # type: ignore[arg-type]
    return service.ledger().SettleCall(request)


def happened(service: Any, call_id: str, cost: int = 40, **more: Any) -> Any:
    usage = to_value({"in": 3, "out": 4, "cost": cost})
    return settle(service, call_id, pb.SETTLEMENT_VERDICT_HAPPENED, usage=usage, **more)


async def money(service: Any) -> tuple[int, int, int]:
    spend = await service.spend()
    return spend.known_cost_picodollars, spend.reserved_picodollars, spend.unknown_cost_count


async def columns(service: Any) -> Any:
    await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    return service.deriving.calls


async def whole(service: Any, *, evidence: bool = False) -> ledger_pb.StreamLedgerResponse:
    found = ledger_pb.StreamLedgerResponse()
    async for part in service.ledger().StreamLedger(ledger_pb.StreamLedgerRequest(run_id=RUN, evidence=evidence)):
        found.MergeFrom(part)
    return found


async def test_a_call_that_happened_costs_what_its_usage_says_and_its_receipt_stays(
    service: Any, writer: Any, facts: Any
) -> None:
    call_id = await lost(service, writer, facts)
    assert await money(service) == (0, 100, 1)
    call = await happened(service, call_id, note="from the console")
    assert (call.settlement.cost_picodollars, call.settlement.actor, call.settlement.note) == (
        40,
        "local",
        "from the console",
    )
    assert (call.status, call.HasField("cost_picodollars")) == (UNKNOWN, False)
    assert await money(service) == (40, 0, 0)
    calls = await columns(service)
    assert (calls.end.tolist(), calls.cost.tolist(), calls.output_tokens.tolist()) == ([pb.CALL_STATUS_FAILED], [40], [4])


async def test_a_call_that_did_not_happen_costs_nothing_and_is_no_call(service: Any, writer: Any, facts: Any) -> None:
    call_id = await lost(service, writer, facts)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN)
    assert await money(service) == (0, 0, 0)
    assert (await columns(service)).end.tolist() == [pb.CALL_STATUS_NOT_ACCEPTED]
    cells = [cell async for part in cell_ledgers(service) for cell in part.cells]
    assert [(cell.outcome, cell.call_count, cell.ambiguous_count) for cell in cells] == [(6, 0, 0)]


async def test_a_later_settlement_takes_force_and_all_of_them_stay(service: Any, writer: Any, facts: Any) -> None:
    call_id = await lost(service, writer, facts)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN)
    await happened(service, call_id)
    await happened(service, call_id)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_STILL_UNKNOWN)
    assert await money(service) == (0, 100, 1)
    (call,) = (await whole(service)).calls
    assert [one.verdict for one in call.settlements] == [2, 1, 3], "the same again changes nothing"


async def test_what_happened_with_unknown_usage_stays_reserved_and_is_no_longer_ambiguous(
    service: Any, writer: Any, facts: Any
) -> None:
    call_id = await lost(service, writer, facts)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_HAPPENED)
    assert await money(service) == (0, 100, 1)
    (cell,) = [cell async for part in cell_ledgers(service) for cell in part.cells]
    assert (cell.call_count, cell.ambiguous_count, cell.unknown_cost_count) == (1, 0, 1)
    assert (cell.known_spend_picodollars, cell.spend_upper_picodollars) == (0, 100)


@pytest.mark.parametrize("settled", [True, False])
async def test_late_truth_wins_over_what_an_operator_said(service: Any, writer: Any, facts: Any, settled: bool) -> None:
    call_id = await lost(service, writer, facts)
    if settled:
        await happened(service, call_id, cost=99)
    await writer.send(facts.settle(0, cost=60))
    assert await money(service) == (60, 0, 0)
    assert (await columns(service)).cost.tolist() == [60]
    with pytest.raises(grpc.RpcError) as caught:
        await happened(service, call_id)
    assert wire.reason(caught.value) == "COST_KNOWN"


async def test_a_late_end_without_a_cost_shows_that_the_call_did_happen(service: Any, writer: Any, facts: Any) -> None:
    call_id = await lost(service, writer, facts)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN)
    await writer.send(facts.settle(0, cost=None, status=pb.CALL_STATUS_FAILED, reason="stream_cut"))
    assert await money(service) == (0, 100, 1)
    assert (await columns(service)).end.tolist() == [pb.CALL_STATUS_FAILED]
    await happened(service, call_id)
    assert await money(service) == (40, 0, 0)


async def test_what_contradicts_the_facts_is_refused(
    service: Any, writer: Any, facts: Any, evidence_of: Callable[[str], bytes]
) -> None:
    did_not = pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN
    failed = await lost(service, writer, facts, 0, status=pb.CALL_STATUS_FAILED)
    partial = await lost(service, writer, facts, 2, evidence=evidence_of("par"))
    await writer.send(facts.dispatch(4))
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, case_id="case-2"))).calls
    for call_id, reason in ((failed, "NOT_SENT_UNKNOWN"), (partial, "EVIDENCE_CONTRADICTS"), (calls[0].id, "CALL_OPEN")):
        with pytest.raises(grpc.RpcError) as caught:
            await settle(service, call_id, did_not)
        assert wire.reason(caught.value) == reason
    with pytest.raises(grpc.RpcError) as caught:
        await settle(service, "call-" + "0" * 32, did_not)
    assert wire.reason(caught.value) == "NO_SUCH_CALL"


@pytest.mark.parametrize("verdict", [pb.SETTLEMENT_VERDICT_HAPPENED, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN])
async def test_a_settled_call_stays_in_the_list_of_unknown_costs_where_it_can_be_settled_anew(
    service: Any, writer: Any, facts: Any, verdict: int
) -> None:
    await writer.send(facts.dispatch(4), facts.settle(4), facts.outcome(4), facts.dispatch(6))
    call_id = await lost(service, writer, facts)
    asked = pb.ListCallsRequest(run_id=RUN, unknown_cost=True)
    assert [call.id for call in (await service.gateway.ListCalls(asked)).calls] == [call_id]
    await (happened(service, call_id) if verdict == pb.SETTLEMENT_VERDICT_HAPPENED else settle(service, call_id, verdict))
    assert [call.id for call in (await service.gateway.ListCalls(asked)).calls] == [call_id]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"verdict": 0}, "verdict"),
        ({"verdict": 2, "usage": to_value({"in": 1})}, "usage"),
        ({"verdict": 1, "usage": to_value([1])}, "usage"),
        ({"verdict": 1, "note": "n" * 1001}, "note"),
        ({"verdict": 1, "model": "m" * 257}, "model"),
    ],
)
async def test_a_settlement_that_says_nothing_sound_names_its_field(
    service: Any, writer: Any, facts: Any, changes: dict[str, Any], field: str
) -> None:
    call_id = await lost(service, writer, facts)
    with pytest.raises(grpc.RpcError) as caught:
        await settle(service, call_id, **changes)
    assert wire.reason(caught.value) == "BAD_FIELD"
    assert wire.to_error(caught.value).facts["field"] == field


async def test_only_operators_settle(service: Any, writer: Any, facts: Any) -> None:
    call_id = await lost(service, writer, facts)
    metadata = tuple(auth.actor_metadata(auth.Actor(id="eve", role="write")).items())
    request = ledger_pb.SettleCallRequest(run_id=RUN, call_id=call_id, verdict=pb.SETTLEMENT_VERDICT_HAPPENED)
    with pytest.raises(grpc.RpcError) as caught:
        await service.ledger().SettleCall(request, metadata=metadata)
    assert wire.reason(caught.value) == "OPERATOR_ONLY"


def cell_ledgers(service: Any, role: str = "planner") -> Any:
    return service.ledger(role).StreamCellLedgers(ledger_pb.StreamCellLedgersRequest(run_id=RUN))


async def test_facts_by_cell_are_for_the_planner_and_count_what_was_accepted(service: Any, writer: Any, facts: Any) -> None:
    refused = facts.settle(0, cost=None, status=pb.CALL_STATUS_NOT_ACCEPTED, reason="rate_limited")
    await writer.send(facts.dispatch(0), refused)
    await writer.send(facts.dispatch(0, offer=1), facts.settle(0, offer=1), facts.outcome(0))
    await writer.send(facts.dispatch(3))
    cells = [cell async for part in cell_ledgers(service) for cell in part.cells]
    assert [(cell.case_index, cell.target_index, cell.outcome, cell.call_count, cell.open_count) for cell in cells] == [
        (0, 0, queue_pb.CELL_STATE_DONE, 1, 0),
        (1, 1, queue_pb.CELL_STATE_UNSPECIFIED, 1, 1),
    ]
    assert (cells[0].known_spend_picodollars, cells[0].spend_upper_picodollars) == (60, 60)
    with pytest.raises(grpc.RpcError) as caught:
        await cell_ledgers(service, "gateway").read()
    assert wire.reason(caught.value) == "WRONG_ROLE"


async def test_the_stream_holds_every_row_and_each_evidence_once(
    service: Any, writer: Any, facts: Any, evidence_of: Callable[[str], bytes]
) -> None:
    packed = evidence_of("B")
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=packed), facts.outcome(0))
    await writer.send(facts.dispatch(2), facts.settle(2, evidence=packed, reason="output_limit"))
    await writer.send(facts.settle(2, cost=61, evidence=packed), facts.outcome(2), facts.outcome(2, correct=False))
    found = await whole(service, evidence=True)
    assert [call.sequence for call in found.calls] == [1, 2]
    assert [len(call.receipts_apart) for call in found.calls] == [0, 1]
    first = found.calls[0]
    assert (first.dispatch.max_output_tokens, first.reserved_picodollars) == (100, 100)
    assert (first.receipt.cost_picodollars, first.receipt.usage.output_tokens) == (60, 4)
    assert first.receipt.receipt.response_model == "m"
    assert [(row.sequence, row.outcome.correct) for row in found.outcomes] == [(1, True), (2, True), (0, False)]
    assert found.outcomes[0].outcome.grader_version == "choice-1"
    assert [(part.sha256, part.data) for part in found.evidence] == [(hashlib.sha256(packed).hexdigest(), packed)]
    assert not (await whole(service)).evidence


async def outcome_of(service: Any, **asked: Any) -> pb.Outcome:
    (found,) = (await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, **asked))).results
    return found


async def test_the_list_of_outcomes_shows_settled_costs_as_the_report_does(service: Any, writer: Any, facts: Any) -> None:
    call_id = await lost(service, writer, facts)
    before = await outcome_of(service)
    assert (before.call_count, before.HasField("cost_picodollars")) == (1, False)
    await happened(service, call_id, cost=40)
    found = await outcome_of(service)
    assert (found.cost_picodollars, found.usage.input_tokens, found.usage.output_tokens) == (40, 3, 4)
    assert (found.status, found.call_count) == (before.status, 1)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN)
    undone = await outcome_of(service)
    assert (undone.call_count, undone.HasField("cost_picodollars")) == (0, False)
    await settle(service, call_id, pb.SETTLEMENT_VERDICT_STILL_UNKNOWN)
    assert await outcome_of(service) == before


async def test_a_late_receipt_goes_before_a_settlement_in_the_list_too(service: Any, writer: Any, facts: Any) -> None:
    await happened(service, await lost(service, writer, facts), cost=40)
    await writer.send(facts.settle(0, cost=60))
    assert (await outcome_of(service)).cost_picodollars == 60


async def test_outcomes_are_ordered_by_the_cost_that_they_show(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(2), *facts.settle(2, cost=50), facts.outcome(2))
    await happened(service, await lost(service, writer, facts), cost=70)
    request = pb.ListOutcomesRequest(run_id=RUN, order_by="cost", descending=True)
    found = (await service.gateway.ListOutcomes(request)).results
    assert [row.cost_picodollars for row in found] == [70, 50]
