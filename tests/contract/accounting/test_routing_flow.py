"""Where a run's questions went, over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import routing_flow_pb2 as pb
from srbench.v1 import run_times_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import wire
from srbench_kit.values import to_value

RUN = "run-0123456789abcdef0123"


async def test_cells_are_counted_by_the_way_they_went(service: Any, planner: Any, writer: Any, facts: Any) -> None:
    planner.add_run(max_cost=10**9)
    routed = {"selected_model": "large", "decision": "hard"}
    await writer.send(facts.dispatch(0), facts.settle(0, cost=60, **routed), facts.outcome(0))
    await writer.send(facts.dispatch(4), facts.settle(4, cost=None, **routed), facts.outcome(4))
    failed = {"state": queue_pb.CELL_STATE_FAILED, "reason": "stream_cut", "message": "cut", "correct": None, "score": None}
    await writer.send(facts.dispatch(8), facts.settle(8, cost=5, **routed), facts.outcome(8, **failed))
    flow = await service.gateway.GetRoutingFlow(pb.GetRoutingFlowRequest(run_id=RUN, target_id="fast"))
    assert flow.cell_count == 1000
    assert sum(row.cell_count for row in flow.rows) == 1000
    known = {row.outcome: row for row in flow.rows if row.decision == "hard"}
    assert {name: row.cell_count for name, row in known.items()} == {"right": 2, "failed": 1}
    assert known["right"].known_cost_picodollars == 60
    assert known["right"].unknown_cost_count == 1
    assert known["right"].model == "large"


async def test_a_target_that_the_run_does_not_have_is_not_found(service: Any) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.GetRoutingFlow(pb.GetRoutingFlowRequest(run_id=RUN, target_id="nobody"))
    assert wire.reason(caught.value) == "NO_SUCH_TARGET"


def previewed(cell: int, model: str, decision: str) -> dict[str, Any]:
    routing: Any = {"selected_model": model, "decision_result": {"decision_name": decision}}
    return {"correct": None, "score": None, "details": to_value({"routing": routing})}


async def test_a_preview_flows_and_is_narrowed_by_what_the_router_would_do(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(max_cost=10**9)
    routes = {0: ("large", "hard"), 4: ("small", "everyday"), 8: ("large", "everyday"), 12: ("everyday", "hard")}
    await writer.send(*(facts.outcome(cell, **previewed(cell, *route)) for cell, route in routes.items()))
    flow = await service.gateway.GetRoutingFlow(pb.GetRoutingFlowRequest(run_id=RUN, target_id="fast"))
    assert flow.cell_count == sum(row.cell_count for row in flow.rows) == 1000
    ways = {(row.decision, row.model): (row.cell_count, row.outcome) for row in flow.rows if row.model}
    assert ways == {(decision, model): (1, "ungraded") for model, decision in routes.values()}

    async def cells(**asked: str) -> list[int]:
        request = accounting_pb.ListOutcomesRequest(run_id=RUN, **asked)
        return [row.cell for row in (await service.gateway.ListOutcomes(request)).results]

    assert await cells(model="large") == [0, 8]
    assert await cells(decision="everyday") == [4, 8]
    assert await cells(model="everyday") == [12]
    assert await cells(model="large", decision="hard") == [0]
    assert await cells(model="nobody") == []
    # What comes later is found, too.
    await writer.send(facts.outcome(16, **previewed(16, "nobody", "hard")))
    assert await cells(model="nobody") == [16]


async def test_times_are_given_by_target_in_the_order_of_the_plan(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    planner.add_run(max_cost=10**9)
    await writer.send(facts.dispatch(0), facts.settle(0, cost=60), facts.outcome(0))
    found = await service.gateway.GetRunTimes(run_times_pb2.GetRunTimesRequest(run_id=RUN))
    assert [(row.target_id, row.answer_count, row.first_token_count) for row in found.targets] == [
        ("fast", 1, 1),
        ("slow", 0, 0),
    ]
    fast, slow = found.targets
    assert (set(fast.answer_quantiles_s), set(fast.first_token_quantiles_s)) == ({0.6}, {0.2})
    assert (len(fast.answer_quantiles_s), len(slow.answer_quantiles_s)) == (101, 0)
