"""Null routers and regret against slow, plain re-implementations and against what must hold for any data."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from srbench_accounting.columns import Labels
from srbench_accounting.routers import (
    NO_POOL_COST,
    NOT_CHEAP_ENOUGH,
    ROUTER_COST_UNKNOWN,
    Policy,
    Pool,
    Routed,
    null_routers,
    oracle,
    regret,
    split_test,
    static_mix,
)


def pool_of(right: list[list[int]], cost: list[list[float]] | None = None, weight: list[float] | None = None) -> Pool:
    count = len(right[0])
    return Pool(
        names=tuple(f"m{row}" for row in range(len(right))),
        right=np.array(right, dtype=np.int64),
        cost=np.array(cost if cost is not None else [[float(10 * row + 10)] * count for row in range(len(right))]),
        weight=np.array(weight if weight is not None else [1 / count] * count),
    )


def routed_of(right: list[int], choice: list[int], cost: int | None = 40, decisions: list[str] | None = None) -> Routed:
    return Routed(
        name="r",
        right=np.array(right, dtype=np.int64),
        cost=cost,
        choice=np.array(choice, dtype=np.int64),
        decision=Labels.of(decisions or [""] * len(right)),
    )


PRICED = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 1000)), min_size=1, max_size=5)


@given(PRICED, st.integers(0, 1200))
@settings(max_examples=60, deadline=None)
def test_the_best_static_mix_is_the_linear_programmes(models: list[tuple[int, int]], spend: int) -> None:
    always = [Policy(name=str(n), quality=q / 100, cost=c) for n, (q, c) in enumerate(models)]
    mix, reason = static_mix(always, spend)
    solved = linprog(
        [-one.quality for one in always],
        A_ub=[[one.cost for one in always]],
        b_ub=[spend],
        A_eq=[[1.0] * len(always)],
        b_eq=[1],
        bounds=(0, 1),
        method="highs",
    )
    if not solved.success:
        assert (mix, reason) == (None, NOT_CHEAP_ENOUGH)
        return
    assert mix is not None
    assert mix.quality == pytest.approx(-solved.fun, abs=1e-9)
    assert sum(share for _, share in mix.shares) == pytest.approx(1)
    assert mix.cost is not None
    assert mix.cost <= spend + 1


def test_there_is_no_mix_without_costs() -> None:
    assert static_mix([Policy(name="a", quality=1, cost=5)], None) == (None, ROUTER_COST_UNKNOWN)
    assert static_mix([Policy(name="a", quality=1, cost=None)], 5) == (None, NO_POOL_COST)


def exact_p(right: list[list[int]], choice: list[int]) -> float:
    """The share of all deals of the choices that do at least as well."""
    deals = list(itertools.permutations(choice))
    observed = sum(right[model][case] for case, model in enumerate(choice))
    as_good = sum(sum(right[model][case] for case, model in enumerate(deal)) >= observed for deal in deals)
    return as_good / len(deals)


def test_the_permutation_p_value_is_that_of_all_deals() -> None:
    right = [[1, 1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 1, 0]]
    choice = [0, 0, 1, 1, 1, 1, 0]
    made = split_test(pool_of(right), np.array(choice), permutations=20_000)
    assert made is not None
    assert made.permutation_p == pytest.approx(exact_p(right, choice), abs=0.01)
    assert made.observed_quality == 1
    assert made.shares == (("m0", 3 / 7), ("m1", 4 / 7))


def test_the_shuffled_quality_is_the_mean_over_all_deals() -> None:
    right, choice, weight = [[1, 0, 1, 0], [0, 1, 1, 0]], [0, 1, 1, -1], [0.4, 0.3, 0.2, 0.1]
    made = split_test(pool_of(right, weight=weight), np.array(choice))
    assert made is not None
    known = [0, 1, 2]
    deals = list(itertools.permutations([choice[case] for case in known]))
    total = sum(weight[case] for case in known)
    mean = sum(sum(weight[case] * right[m][case] for case, m in zip(known, d, strict=True)) for d in deals) / len(deals)
    assert made.shuffled_quality == pytest.approx(mean / total)
    assert (made.known_choices, made.permutations) == (3, 499)


def test_a_router_that_ignores_the_question_is_not_significant_too_often() -> None:
    source = random.Random(1)
    hits = 0
    for trial in range(200):
        right = [[source.randint(0, 1) for _ in range(40)] for _ in range(2)]
        choice = np.array([source.randint(0, 1) for _ in range(40)])
        made = split_test(pool_of(right), choice, permutations=199, seed=trial)
        assert made is not None
        hits += made.permutation_p <= 0.05
    assert hits <= 20


def test_without_known_choices_there_is_no_split() -> None:
    assert split_test(pool_of([[1, 0]]), np.array([-1, -1])) is None


def test_the_oracle_takes_the_cheapest_right_answer() -> None:
    cost = [[1.0, 5.0, 3.0], [2.0, 4.0, 9.0]]
    made = oracle(pool_of([[0, 1, 0], [1, 1, 0]], cost))
    assert (made.quality, made.cost) == (pytest.approx(2 / 3), 2 + 4 + 3)
    unknown = [[1.0, np.nan, 3.0], [2.0, np.nan, 9.0]]
    assert oracle(pool_of([[0, 1, 0], [1, 1, 0]], unknown)).cost is None


CELL = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1), st.sampled_from("ab"))


@given(st.lists(CELL, min_size=1, max_size=30))
@settings(deadline=None)
def test_regret_is_an_exact_split_of_what_is_wrong(cells: list[tuple[int, int, int, int, str]]) -> None:
    first, second, right, choice, decision = (list(column) for column in zip(*cells, strict=True))
    total, rows = regret(pool_of([first, second]), routed_of(right, choice, decisions=decision))
    wrong = total.pool_limit + total.selection_error + total.execution_failure + total.unattributed
    assert total.correct + wrong == pytest.approx(total.weight) == pytest.approx(1)
    for name in ("weight", "correct", "pool_limit", "selection_error", "execution_failure", "unattributed"):
        assert sum(getattr(row, name) for row in rows) == pytest.approx(getattr(total, name))
    assert sum(row.cases for row in rows) == len(cells)
    count = {"pool": 0, "selection": 0, "execution": 0, "unknown": 0}
    for one, two, good, chosen, _ in cells:
        if not good:
            own = [one, two][chosen] if chosen >= 0 else None
            kind = "pool" if not (one or two) else "unknown" if own is None else "execution" if own else "selection"
            count[kind] += 1
    size = len(cells)
    assert total.pool_limit == pytest.approx(count["pool"] / size)
    assert total.selection_error == pytest.approx(count["selection"] / size)
    assert total.execution_failure == pytest.approx(count["execution"] / size)
    assert total.unattributed == pytest.approx(count["unknown"] / size)


def test_always_one_model_is_that_models_own_quality_and_cost() -> None:
    made = null_routers(pool_of([[1, 0], [1, 1]], weight=[0.25, 0.75]), routed_of([1, 1], [0, 1]))
    found: Any = [(one.name, one.quality, one.cost) for one in made.always]
    assert found == [("m0", 0.25, 20), ("m1", 1.0, 40)]
    assert (made.router.quality, made.router.cost) == (1.0, 40)


def test_an_answer_of_unknown_cost_is_not_taken_for_dear() -> None:
    nan = float("nan")
    assert oracle(pool_of([[1], [1]], [[5.0], [nan]])).cost is None
    assert oracle(pool_of([[1], [1]], [[0.0], [nan]])).cost == 0
    assert oracle(pool_of([[1], [0]], [[5.0], [nan]])).cost == 5
    assert oracle(pool_of([[0], [0]], [[5.0], [nan]])).cost is None


def test_spends_beyond_what_a_float_holds_are_exact_to_the_picodollar() -> None:
    big = 9_007_199_254_740_991
    made = null_routers(pool_of([[1, 1, 1]], [[float(big), float(big), 1.0]]), routed_of([1, 1, 1], [0, 0, 0]))
    assert made.always[0].cost == made.oracle.cost == 2 * big + 1


def test_choices_of_cases_that_weigh_nothing_show_nothing() -> None:
    pool = pool_of([[1, 0], [0, 1]], weight=[0.0, 1.0])
    assert split_test(pool, np.array([0, -1])) is None
    assert split_test(pool, np.array([0, 1])) is not None
