"""What saved calls would have cost at other prices, over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import price_estimate_pb2, usage_pb2
from srbench_accounting import price_estimates
from srbench_kit import wire

RUN = "run-0123456789abcdef0123"


def asked(**prices: int) -> price_estimate_pb2.EstimatePricesRequest:
    """A request in which models cost that much a prompt token and a generated one."""
    request = price_estimate_pb2.EstimatePricesRequest(run_id=RUN)
    for model, price in prices.items():
        request.prices[model].CopyFrom(usage_pb2.Price(input_picodollars=price, output_picodollars=price))
    return request


def known(planner: Any) -> None:
    """A run whose first target is the model `m`."""
    planner.add_run(max_cost=10**9)
    planner.contexts[RUN].targets[0].model = "m"


async def test_saved_calls_are_priced_again_and_judges_and_refused_offers_are_left_out(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    known(planner)
    judged = {"role": pb.CALL_ROLE_JUDGE, "auxiliary_target_id": "judge"}
    await writer.send(
        facts.dispatch(0), facts.settle(0, cost=60), facts.dispatch(0, 1, **judged), facts.settle(0, 1, cost=9)
    )
    await writer.send(facts.dispatch(2), facts.settle(2, cost=None, status=pb.CALL_STATUS_NOT_ACCEPTED))
    fast, slow = (await service.gateway.EstimatePrices(asked(m=100))).targets
    assert (fast.target_id, fast.call_count, fast.frozen_cost_picodollars) == ("fast", 1, 60)
    # Three tokens in and four out, as the receipts tell.
    assert fast.estimated_cost_picodollars == 700
    assert (slow.call_count, slow.HasField("frozen_cost_picodollars")) == (0, False)


async def test_without_other_prices_the_estimate_is_what_calls_cost(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    known(planner)
    await writer.send(facts.dispatch(0), facts.settle(0, cost=60), facts.dispatch(2), facts.settle(2, cost=5))
    fast, _ = (await service.gateway.EstimatePrices(asked())).targets
    assert fast.frozen_cost_picodollars == fast.estimated_cost_picodollars == 65


async def test_a_call_that_told_no_tokens_or_has_no_end_leaves_the_sum_unknown(
    service: Any, planner: Any, writer: Any, facts: Any
) -> None:
    known(planner)
    await writer.send(facts.dispatch(0), facts.settle(0, cost=None), facts.dispatch(2), facts.dispatch(4), facts.settle(4))
    fast, _ = (await service.gateway.EstimatePrices(asked(m=100))).targets
    assert (fast.call_count, fast.frozen_unknown_count, fast.estimated_unknown_count) == (3, 2, 2)
    assert not fast.HasField("estimated_cost_picodollars")


@pytest.mark.parametrize("prices", [{"nobody": 1}, {"m": -1}, {"m": 10**13}])
async def test_prices_of_other_models_and_impossible_ones_are_refused(
    service: Any, planner: Any, prices: dict[str, int]
) -> None:
    known(planner)
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.EstimatePrices(asked(**prices))
    assert wire.reason(caught.value) == "BAD_PRICE"


async def test_a_run_of_too_many_calls_is_refused_before_any_is_priced(
    service: Any, planner: Any, writer: Any, facts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(planner)
    await writer.send(facts.dispatch(0), facts.settle(0, cost=60), facts.dispatch(2), facts.settle(2, cost=5))
    monkeypatch.setattr(price_estimates, "MAX_CALLS", 1)
    with pytest.raises(aio.AioRpcError) as caught:
        await service.gateway.EstimatePrices(asked())
    assert wire.reason(caught.value) == "TOO_MANY_CALLS"
    assert "has 2 calls; expected at most 1" in str(caught.value.details())
