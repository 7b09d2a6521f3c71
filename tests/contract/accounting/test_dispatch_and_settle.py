"""Dispatch, settle, outcome: what is accepted, what is refused and why, and what the money does."""

from __future__ import annotations

from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb

RUN = "run-0123456789abcdef0123"


def money(spend: pb.Spend) -> tuple[int, int, int, int]:
    return spend.known_cost_picodollars, spend.reserved_picodollars, spend.open_call_count, spend.unknown_cost_count


async def test_a_whole_cell_moves_its_reservation_to_spend(service: Any, writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.dispatch(0)) == [""]
    assert money(await service.spend()) == (0, 100, 1, 0)
    assert await writer.reasons(facts.settle(0), facts.outcome(0)) == ["", ""]
    spend = await service.spend()
    assert money(spend) == (60, 0, 0, 0)
    assert (spend.call_count, spend.max_cost_picodollars) == (1, 1000)


async def test_the_same_facts_again_are_acknowledged_and_change_nothing(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    sent = [facts.dispatch(0), *facts.settle(0, evidence=evidence_of("B")), facts.outcome(0)]
    assert await writer.reasons(sent) == ["", "", ""]
    again = await writer.send(sent)
    assert [ack.reason for ack in again] == ["ALREADY_DISPATCHED", "", ""]
    assert money(await service.spend()) == (60, 0, 0, 0)
    outcomes = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN))
    assert outcomes.total == 1


async def test_a_dispatch_again_with_its_token_is_accepted_and_with_another_is_not(writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.dispatch(0, token=3), facts.dispatch(0, token=3)) == ["", ""]
    later, earlier = await writer.send(facts.dispatch(0, token=4), facts.dispatch(0, token=2))
    assert later.reason == earlier.reason == "ALREADY_DISPATCHED"
    assert later.known_call.status == pb.CALL_STATUS_SENT


async def test_a_known_call_comes_back_with_receipt_and_final_text(writer: Any, facts: Any, evidence_of: Any) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("The answer is B")))
    (ack,) = await writer.send(facts.dispatch(0, token=2))
    assert (ack.reason, ack.known_call.status) == ("ALREADY_DISPATCHED", pb.CALL_STATUS_COMPLETED)
    assert ack.known_call.final_text == "The answer is B"
    assert ack.known_call.receipt == facts.receipt()


async def test_the_next_offer_needs_a_provable_refusal(service: Any, writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.dispatch(0), facts.dispatch(0, offer=1)) == ["", "OUT_OF_ORDER"]
    refused = facts.settle(0, cost=None, status=pb.CALL_STATUS_NOT_ACCEPTED, reason="overloaded")
    assert await writer.reasons(refused, facts.dispatch(0, offer=1)) == ["", ""]
    assert money(await service.spend()) == (0, 100, 1, 0)
    failed = facts.settle(0, offer=1, status=pb.CALL_STATUS_FAILED, reason="stream_cut")
    assert await writer.reasons(failed, facts.dispatch(0, offer=2)) == ["", "OUT_OF_ORDER"]


async def test_the_next_call_needs_the_one_before_and_the_limit_counts_all_roles(
    planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(max_calls=2, max_cost=10_000)
    judge = {"role": pb.CALL_ROLE_JUDGE, "auxiliary_target_id": "judge"}
    assert await writer.reasons(facts.dispatch(0), facts.dispatch(0, ordinal=1, **judge)) == ["", "OUT_OF_ORDER"]
    assert await writer.reasons(facts.settle(0), facts.dispatch(0, ordinal=1, **judge)) == ["", ""]
    assert await writer.reasons(facts.settle(0, 1), facts.dispatch(0, ordinal=2, **judge)) == ["", "CALL_LIMIT"]


async def test_open_reservations_may_come_free_and_held_ones_do_not(service: Any, writer: Any, facts: Any) -> None:
    assert await writer.reasons(*[facts.dispatch(cell) for cell in range(10)]) == [""] * 10
    assert await writer.reasons(facts.dispatch(10)) == ["BUDGET_RESERVED"]
    assert await writer.reasons(facts.settle(0, cost=40)) == [""]
    assert await writer.reasons(facts.dispatch(10)) == ["BUDGET_RESERVED"]
    assert await writer.reasons(facts.dispatch(11, max_output_tokens=60)) == [""]
    unknown = [facts.settle(cell, cost=None) for cell in range(1, 10)]
    assert await writer.reasons(*unknown) == [""] * 9
    assert money(await service.spend()) == (40, 960, 1, 9)
    assert await writer.reasons(facts.dispatch(12, max_output_tokens=61)) == ["BUDGET_EXHAUSTED"]
    assert await writer.reasons(facts.dispatch(12, max_output_tokens=60)) == ["BUDGET_RESERVED"]


async def test_without_a_cost_policy_nothing_is_reserved_and_costs_are_still_known(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(policy="capability_only", max_cost=1)
    assert await writer.reasons(facts.dispatch(0), facts.settle(0)) == ["", ""]
    spend = await service.spend()
    assert money(spend) == (60, 0, 0, 0)
    assert not spend.HasField("max_cost_picodollars")


async def test_a_target_without_prices_is_refused_under_require_priced(writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.dispatch(0, request_byte_count=0)) == ["NO_PRICE"]


async def test_a_halted_run_dispatches_no_more_and_still_settles(service: Any, writer: Any, facts: Any) -> None:
    sent = facts.dispatch(0)
    await writer.send(sent)
    await service.as_planner.HaltRun(pb.HaltRunRequest(run_id=RUN, reason="cancelled"))
    assert await writer.reasons(facts.dispatch(1), sent) == ["RUN_HALTED", ""]
    assert await writer.reasons(facts.settle(0), facts.outcome(0)) == ["", ""]


async def test_a_settlement_of_an_unknown_call_is_refused(writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.settle(5)) == ["NO_SUCH_CALL"]


async def test_an_outcome_waits_for_the_end_of_its_calls(writer: Any, facts: Any) -> None:
    assert await writer.reasons(facts.dispatch(0), facts.outcome(0)) == ["", "CALL_OPEN"]
    assert await writer.reasons(facts.settle(0), facts.outcome(0)) == ["", ""]
    assert await writer.reasons(facts.dispatch(0, ordinal=1)) == ["CELL_ENDED"]


async def test_a_different_receipt_after_a_known_end_is_kept_and_changes_nothing(
    service: Any, writer: Any, facts: Any
) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0, cost=60))
    assert await writer.reasons(facts.settle(0, cost=70), facts.settle(0, cost=70)) == ["", ""]
    assert money(await service.spend()) == (60, 0, 0, 0)
    with service.store.engine.connect() as connection:
        kept = connection.exec_driver_sql("SELECT cost FROM receipts_apart").fetchall()
    assert kept == [(70,)]


async def test_late_truth_takes_the_place_of_an_unknown_end(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    await writer.send(facts.dispatch(0))
    unknown = facts.settle(0, cost=None, status=pb.CALL_STATUS_SENT_UNKNOWN, reason="executor_lost")
    assert await writer.reasons(unknown) == [""]
    assert money(await service.spend()) == (0, 100, 0, 1)
    assert await writer.reasons(facts.settle(0, cost=60, evidence=evidence_of("late"))) == [""]
    assert money(await service.spend()) == (60, 0, 0, 0)
    assert await writer.reasons(unknown) == [""]
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    assert [call.status for call in calls] == [pb.CALL_STATUS_COMPLETED]
    whole = await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=calls[0].id))
    assert whole.final == "late"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"request_sha256": "xyz"}, "request_sha256"),
        ({"target_index": 2}, "target_index is 2; expected 0 to 1"),
        ({"role": pb.CALL_ROLE_UNSPECIFIED}, "role"),
        ({"role": pb.CALL_ROLE_JUDGE, "auxiliary_target_id": "nobody"}, "auxiliary_target_id is 'nobody'"),
        ({"max_output_tokens": -1}, "max_output_tokens is -1; expected 0 or more"),
        ({"dispatch_time": None}, "dispatch_time"),
    ],
)
async def test_a_bad_dispatch_names_field_value_and_expectation(
    writer: Any, facts: Any, changes: dict[str, Any], named: str
) -> None:
    (ack,) = await writer.send(facts.dispatch(0, **changes))
    assert ack.reason == "BAD_DISPATCH"
    assert named in ack.message


async def test_bad_facts_do_not_harm_their_neighbours(writer: Any, facts: Any) -> None:
    no_end = facts.settle(0, status=pb.CALL_STATUS_SENT)
    bad = [facts.dispatch(-1), facts.dispatch(2**40), no_end, facts.outcome(1, state=2), facts.outcome(1, target_index=9)]
    expected = ["BAD_DISPATCH", "BAD_DISPATCH", "BAD_SETTLE", "BAD_OUTCOME", "BAD_OUTCOME"]
    assert await writer.reasons(facts.dispatch(0), *bad, facts.settle(0)) == ["", *expected, ""]


async def test_a_run_that_the_planner_does_not_know_is_refused(writer: Any, facts: Any) -> None:
    facts.run_id = "run-none"
    assert await writer.reasons(facts.dispatch(0), facts.outcome(0)) == ["NO_SUCH_RUN", "NO_SUCH_RUN"]


async def test_a_new_run_waits_for_the_planner_and_holds_up_no_other(
    service: Any, planner: Any, writer: Any, facts: Any, other_facts: Any, stuck_planner: Any
) -> None:
    await writer.send(facts.dispatch(0))
    waiting = writer.send_later(other_facts.dispatch(0))
    assert await writer.reasons(facts.settle(0)) == [""]
    stuck_planner.set()
    assert [ack.reason for ack in await waiting] == [""]


async def test_the_run_context_is_asked_for_once(service: Any, planner: Any, writer: Any, facts: Any) -> None:
    for cell in range(3):
        await writer.send(facts.dispatch(cell))
    assert planner.asked == [RUN]
