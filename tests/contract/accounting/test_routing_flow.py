"""Where a run's questions went, over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from srbench.v1 import routing_flow_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import wire

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
