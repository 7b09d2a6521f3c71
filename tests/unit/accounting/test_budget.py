"""The money of a run: no interleaving of calls brings it above its budget, and every reservation comes to an end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from srbench_accounting.budget import MAX_PICODOLLARS, Money

LIMIT = 10_000
OPEN_CALLS = 64


class Interleaved(RuleBasedStateMachine):
    """Up to 64 calls at once that reserve, settle with known or unknown cost, and learn the truth later."""

    opened: Bundle[int] = Bundle("opened")
    unknown: Bundle[int] = Bundle("unknown")

    def __init__(self) -> None:
        super().__init__()
        self.money = Money(LIMIT, 0, 0, 0)
        self.open_calls: list[int] = []
        self.held_calls: list[int] = []
        self.costs: list[int] = []

    @rule(target=opened, reserve=st.integers(0, LIMIT // 8))
    def dispatch(self, reserve: int) -> int:
        refusal = self.money.refusal(reserve)
        taken = self.money.spent + sum(self.held_calls)
        if taken + reserve > LIMIT:
            assert refusal == "BUDGET_EXHAUSTED"
        elif taken + sum(self.open_calls) + reserve > LIMIT:
            assert refusal == "BUDGET_RESERVED"
        else:
            assert refusal == ""
        if refusal or len(self.open_calls) >= OPEN_CALLS:
            return -1
        self.money.dispatch(reserve)
        self.open_calls.append(reserve)
        return reserve

    @rule(target=unknown, reserve=consumes(opened), share=st.none() | st.fractions(0, 1))
    def settle(self, reserve: int, share: object) -> int:
        if reserve < 0:
            return -1
        cost = None if share is None else int(share * reserve)  # type: ignore[operator]
        self.money.settle(reserve, cost)
        self.open_calls.remove(reserve)
        if cost is not None:
            self.costs.append(cost)
            return -1
        self.held_calls.append(reserve)
        return reserve

    @rule(reserve=consumes(unknown), share=st.fractions(0, 1))
    def late_truth(self, reserve: int, share: object) -> None:
        if reserve >= 0:
            cost = int(share * reserve)  # type: ignore[operator]
            self.money.correct(reserve, cost)
            self.held_calls.remove(reserve)
            self.costs.append(cost)

    @invariant()
    def spent_and_reserved_never_exceed_the_budget(self) -> None:
        money = self.money
        assert money.spent + money.open + money.held <= LIMIT

    @invariant()
    def the_sums_are_those_of_the_calls(self) -> None:
        assert self.money == Money(LIMIT, sum(self.costs), sum(self.open_calls), sum(self.held_calls))


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_without_a_limit_nothing_is_refused() -> None:
    assert Money(None, MAX_PICODOLLARS, 0, 0).refusal(MAX_PICODOLLARS) == ""


def test_a_cost_above_its_reservation_is_counted_whole_and_stops_the_next() -> None:
    money = Money(100, 0, 0, 0)
    money.dispatch(50)
    money.settle(50, 120)
    assert money == Money(100, 120, 0, 0)
    assert money.refusal(0) == "BUDGET_EXHAUSTED"


def test_a_sum_beyond_64_bits_stops_there() -> None:
    money = Money(None, MAX_PICODOLLARS - 1, 0, 0)
    money.settle(0, MAX_PICODOLLARS)
    assert money.spent == MAX_PICODOLLARS
