"""What of a plan must be equal in two runs."""

from __future__ import annotations

from srbench.v1 import plan_pb2
from srbench_accounting.rules_input import rules


def plan(*prices: int) -> plan_pb2.Plan:
    """A plan with one target for each input price of the model `m`."""
    made = plan_pb2.Plan()
    for number, price in enumerate(prices):
        target = made.targets.add(id=f"t{number}", model="m")
        target.prices["m"].input_picodollars = price
    return made


def test_two_prices_of_one_model_are_a_list_that_a_refusal_can_show() -> None:
    assert rules(plan(5)).prices == rules(plan(5, 5)).prices == {"m": {"input_picodollars": 5}}
    several = {"m": [{"input_picodollars": 5}, {"input_picodollars": 7}]}
    assert rules(plan(7, 5)).prices == rules(plan(5, 7, 5)).prices == several
