"""Pages of outcomes and calls: order, filters, totals, tokens, activity; and the columns that the report gets."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import wire

RUN = "run-0123456789abcdef0123"
FAILED = {"state": queue_pb.CELL_STATE_FAILED, "reason": "stream_cut", "message": "cut", "correct": None, "score": None}


@pytest.fixture
async def forty_cells(planner: Any, writer: Any, facts: Any) -> None:
    """Cells 0 to 39 in order: even ones of `fast`, odd ones of `slow`; every fifth failed, every third wrong."""
    planner.add_run(max_cost=10**9)
    for cell in range(40):
        await writer.send(facts.dispatch(cell), facts.settle(cell))
        changes = FAILED if cell % 5 == 0 else {"correct": cell % 3 != 0, "score": float(cell % 3 != 0)}
        await writer.send(facts.outcome(cell, **changes))


async def all_outcomes(service: Any, size: int, **filters: Any) -> tuple[list[pb.Outcome], int]:
    found: list[pb.Outcome] = []
    token, total = "", -1
    while True:
        request = pb.ListOutcomesRequest(run_id=RUN, page_size=size, page_token=token, **filters)
        page = await service.gateway.ListOutcomes(request)
        found.extend(page.results)
        assert total in (-1, page.total)
        token, total = page.next_page_token, page.total
        if not token:
            return found, total


@pytest.mark.usefixtures("forty_cells")
@pytest.mark.parametrize("size", [1, 7, 40, 500])
async def test_pages_cover_every_outcome_once_in_order(service: Any, size: int) -> None:
    found, total = await all_outcomes(service, size)
    assert [row.cell for row in found] == list(range(40))
    assert [row.sequence for row in found] == list(range(1, 41))
    assert total == 40


@pytest.mark.usefixtures("forty_cells")
@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ({"target_id": "slow"}, lambda cell: cell % 2 == 1),
        ({"benchmark": "arc-agi-2"}, lambda cell: cell // 2 % 2 == 1),
        ({"state": queue_pb.CELL_STATE_FAILED}, lambda cell: cell % 5 == 0),
        ({"correct": True}, lambda cell: cell % 5 and cell % 3),
        ({"correct": False}, lambda cell: cell % 5 and not cell % 3),
        ({"correct": False, "target_id": "fast", "benchmark": "mmlu-pro"}, lambda c: c % 5 and not c % 3 and not c % 4),
        ({"target_id": "nobody"}, lambda cell: False),
        ({"benchmark": "nothing"}, lambda cell: False),
    ],
)
async def test_filters_narrow_pages_and_totals_alike(service: Any, filters: dict[str, Any], fits: Any) -> None:
    expected = [cell for cell in range(40) if fits(cell)]
    found, total = await all_outcomes(service, 3, **filters)
    assert [row.cell for row in found] == expected
    assert total == len(expected)


@pytest.mark.usefixtures("forty_cells")
async def test_a_filtered_list_sees_what_came_after_it_was_first_read(service: Any, writer: Any, facts: Any) -> None:
    before, _ = await all_outcomes(service, 100, target_id="slow")
    await writer.send(facts.dispatch(41), facts.settle(41), facts.outcome(41))
    after, total = await all_outcomes(service, 100, target_id="slow")
    assert [row.cell for row in after] == [*[row.cell for row in before], 41]
    assert total == 21


async def test_an_outcome_shows_its_cell_and_the_sums_of_its_subject_calls(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(max_cost=10**6)
    judge = {"role": pb.CALL_ROLE_JUDGE, "auxiliary_target_id": "judge"}
    refused = facts.settle(3, cost=None, status=pb.CALL_STATUS_NOT_ACCEPTED, latency_ns=None, ttft_ns=None)
    await writer.send(facts.dispatch(3), refused, facts.dispatch(3, offer=1), facts.settle(3, offer=1))
    await writer.send(facts.dispatch(3, 1), facts.settle(3, 1), facts.dispatch(3, 2, **judge), facts.settle(3, 2))
    await writer.send(facts.outcome(3, message="fine"))
    ((row,), _) = await all_outcomes(service, 10)
    assert (row.case_id, row.benchmark, row.target_id, row.status) == ("case-1", "arc-agi-2", "slow", "completed")
    assert (row.correct, row.score, row.error, row.call_count) == (True, 1.0, "fine", 2)
    assert (row.latency_s, row.subject_latency_s, row.ttft_s) == (1.5, 1.2, 0.2)
    assert (row.usage.input_tokens, row.usage.output_tokens, row.cost_picodollars) == (6, 8, 120)
    assert not row.usage.HasField("cached_input_tokens")
    assert row.finish_time.ToMicroseconds() == 1_700_000_001_500_000


async def test_one_unknown_cost_makes_the_outcomes_cost_unknown(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(max_cost=10**6)
    await writer.send(facts.dispatch(0), facts.settle(0), facts.dispatch(0, 1), facts.settle(0, 1, cost=None))
    await writer.send(facts.outcome(0))
    ((row,), _) = await all_outcomes(service, 10)
    assert not row.HasField("cost_picodollars")
    assert not row.usage.HasField("input_tokens")


@pytest.mark.usefixtures("forty_cells")
async def test_calls_are_listed_by_dispatch_and_filtered_by_case_and_target(service: Any) -> None:
    every = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))
    assert [call.sequence for call in every.calls] == list(range(1, 41))
    assert (every.total, every.next_page_token) == (40, "")
    one = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, case_id="case-4", target_id="slow"))
    assert [(call.case_id, call.target_id) for call in one.calls] == [("case-4", "slow")]
    none = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, case_id="case-none"))
    assert (none.total, len(none.calls)) == (0, 0)


async def test_a_call_shows_what_was_recorded_and_derived(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(1), facts.settle(1, first_token_lag_ns=5000, selected_model="big", decision="d1"))
    (call,) = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    assert (call.case_id, call.target_id, call.role) == ("case-0", "slow", pb.CALL_ROLE_SUBJECT)
    assert (call.status, call.finish_reason, call.model, call.selected_model) == (2, "stop", "m", "big")
    assert (call.cost_picodollars, call.reserved_picodollars, call.usage.output_tokens) == (60, 100, 4)
    assert (call.ttft_s, call.latency_s, call.first_token_lag_s, call.first_token_clock) == (0.2, 0.6, 5e-6, "kernel")
    assert call.start_time.ToMicroseconds() == 1_700_000_000_000_001
    assert call.finish_time.ToMicroseconds() == 1_700_000_000_600_500
    assert [member.key for member in call.raw_usage.object_value.members] == ["in", "out", "cost"]
    assert call.id.startswith("call-")
    assert len(call.id) == 37


async def test_an_open_call_has_no_end_and_shows_what_it_is_doing(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0), facts.dispatch(1), facts.settle(1))
    doing = pb.CallActivity(key=facts.key(0), phase="streaming", received_bytes=77)
    report = pb.Fact(activity=pb.ActivityReport(executor_id="e1", calls=[doing]))
    await writer.send(report, facts.dispatch(2))
    async with asyncio.timeout(30):
        while True:
            active = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, active=True))
            if active.calls[0].HasField("activity"):
                break
            await asyncio.sleep(0.02)
    assert [(call.ordinal, call.status, call.case_id) for call in active.calls] == [(0, 1, "case-0"), (0, 1, "case-1")]
    assert (active.calls[0].activity.phase, active.calls[0].activity.received_bytes) == ("streaming", 77)
    assert not active.calls[1].HasField("activity")
    for name in ("cost_picodollars", "output_complete", "http_status", "ttft_s", "usage", "finish_time"):
        assert not active.calls[0].HasField(name)
    slow = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, active=True, target_id="slow"))
    assert slow.total == 0


@pytest.mark.usefixtures("forty_cells")
async def test_page_tokens_refuse_other_filters_lists_and_nonsense(service: Any) -> None:
    page = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, page_size=5))
    token = page.next_page_token
    bad = [
        pb.ListOutcomesRequest(run_id=RUN, page_size=5, page_token=token, target_id="slow"),
        pb.ListOutcomesRequest(run_id=RUN, page_token="nonsense"),
    ]
    for request in bad:
        with pytest.raises(aio.AioRpcError) as caught:
            await service.gateway.ListOutcomes(request)
        assert wire.reason(caught.value) == "BAD_PAGE_TOKEN"
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, page_token=token))
    assert wire.reason(caught.value) == "BAD_PAGE_TOKEN"
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, page_size=-1))
    assert wire.reason(caught.value) == "BAD_PAGE_SIZE"


async def test_an_unknown_run_is_not_found_by_any_reader(service: Any) -> None:
    stub = service.gateway
    calls = [
        stub.GetSpend(pb.GetSpendRequest(run_id="run-none")),
        stub.GetReport(pb.GetReportRequest(run_id="run-none")),
        stub.ListOutcomes(pb.ListOutcomesRequest(run_id="run-none")),
        stub.ListCalls(pb.ListCallsRequest(run_id="run-none")),
        stub.GetCall(pb.GetCallRequest(run_id="run-none", call_id="call-1")),
    ]
    for call in calls:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        assert wire.reason(caught.value) == "NO_SUCH_RUN"


@pytest.mark.usefixtures("forty_cells")
async def test_the_report_gets_every_row_as_columns_with_unknown_marked(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(40), facts.dispatch(41), facts.settle(41, cost=None, finish_reason=""))
    report = await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    assert (report.run_id, report.status) == (RUN, "running")
    outcomes, calls = service.deriving.outcomes, service.deriving.calls
    assert (len(outcomes), len(calls)) == (40, 42)
    assert outcomes.reason.counts() == {"stream_cut": 8}
    assert list(outcomes.correct[:5]) == [-1, 1, 1, 0, 1]
    assert outcomes.latency_s[0] == 1.5
    assert outcomes.queue_wait_s[0] == 1_700_000_000 - 1000
    assert outcomes.finish_s[0] == 1_700_000_001.5
    assert (calls.end[0], calls.cost[0], calls.model.counts()) == (2, 60, {"m": 41})
    assert (calls.end[40], calls.cost[40], calls.reserved[40]) == (1, -1, 100)
    assert np.isnan(calls.latency_s[40])
    assert (calls.cost[41], calls.input_tokens[41], calls.finish_reason.codes[41]) == (-1, -1, -1)
    assert calls.prompt_tokens[0] == -1


async def test_a_run_without_facts_has_an_empty_report_and_empty_lists(service: Any) -> None:
    await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    assert (len(service.deriving.outcomes), len(service.deriving.calls)) == (0, 0)
    assert (await all_outcomes(service, 10)) == ([], 0)
    assert (await all_outcomes(service, 10, target_id="fast")) == ([], 0)
