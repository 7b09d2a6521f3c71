"""Estimators against SciPy, statsmodels, exact enumeration and Python's own generator."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from srbench_accounting.bootstrap import RELEASED_SEED, Strata, _python_stream, ends, released_interval
from srbench_accounting.columns import distinct, exact_sum, floats, ints, known_sum, sum_if_known
from srbench_accounting.intervals import clipped, hoeffding_radius, wilson
from srbench_accounting.paired import holm, mcnemar_exact, mcnemar_mid_p
from srbench_accounting.percentiles import percentiles
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from tests.goldens import shared_cases


def test_wilson_gives_the_published_values() -> None:
    assert wilson(5, 8) == pytest.approx((0.305742394602627, 0.863155714176397), abs=1e-12)
    assert wilson(0, 10) == pytest.approx((0, 0.277532799862889), abs=1e-12)
    assert wilson(0, 0) is None


@given(st.integers(1, 20_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels_wilson_and_its_ends_are_exact(pair: tuple[int, int]) -> None:
    right, count = pair
    low, high = wilson(right, count) or (math.nan, math.nan)
    assert (low, high) == pytest.approx(proportion_confint(right, count, method="wilson"), abs=1e-12)
    assert 0.0 <= low <= right / count <= high <= 1.0
    assert (low == 0.0) is (right == 0)
    assert (high == 1.0) is (right == count)


@given(st.lists(st.floats(0, 1e4), max_size=60), st.floats(0, 1))
def test_percentiles_are_numpys_linear_ones(values: list[float], share: float) -> None:
    (made,) = percentiles(floats([*values, None]), share)
    assert made == (pytest.approx(np.quantile(values, share), abs=1e-8) if values else None)


def test_percentiles_of_nothing_are_unknown() -> None:
    assert percentiles(floats([]), 0.5, 0.95) == (None, None)
    assert percentiles(floats([None]), 0.5) == (None,)
    assert percentiles(floats([7.0]), 0.95) == (7.0,)


def test_hoeffding_gives_the_published_half_widths() -> None:
    assert hoeffding_radius([1.0], [198]) == pytest.approx(0.193, abs=5e-4)
    assert hoeffding_radius([1.0], [500]) == pytest.approx(0.121, abs=5e-4)
    assert hoeffding_radius([1.0], [2000]) == pytest.approx(0.061, abs=5e-4)
    assert clipped(0.9, 0.2) == (0.7, 1.0)
    assert clipped(-0.9, 0.2) == (-1.0, pytest.approx(-0.7))


def test_hoeffding_covers_at_least_95_percent_by_enumeration() -> None:
    weights, sizes = [0.4, 0.6], [3, 4]
    radius = hoeffding_radius(weights, sizes)
    for chance in (0.5, 0.8):
        covered = 0.0
        for right in itertools.product([-1, 1], repeat=sum(sizes)):
            mean = weights[0] * sum(right[:3]) / 3 + weights[1] * sum(right[3:]) / 4
            probability = math.prod(chance if value > 0 else 1 - chance for value in right)
            covered += probability * (abs(mean - (2 * chance - 1)) <= radius)
        assert covered >= 0.95


@pytest.mark.parametrize("seed", [0, 1, RELEASED_SEED, 2**40])
def test_numpy_draws_the_very_numbers_of_pythons_generator(seed: int) -> None:
    source = random.Random(seed)
    assert _python_stream(seed).random(3000).tolist() == [source.random() for _ in range(3000)]


def slow_interval(differences: list[list[int]], weights: list[float], seed: int, resamples: int) -> tuple[float, float]:
    source, means = random.Random(seed), []
    for _ in range(resamples):
        drawn = [source.choices(part, k=len(part)) for part in differences]
        means.append(sum(w * (sum(part) / len(part)) for w, part in zip(weights, drawn, strict=True)))
    means.sort()
    return means[round(resamples * 0.025) - 1], means[round(resamples * 0.975) - 1]


@pytest.mark.parametrize(("sizes", "candidates"), [([7], 1), ([1, 2, 40], 2), ([30, 5, 11], 9), ([40_000], 2)])
def test_the_released_bootstrap_draws_the_released_cases(sizes: list[int], candidates: int) -> None:
    source = np.random.default_rng(5)
    differences = source.integers(-1, 2, (candidates, sum(sizes)))
    weights = [size / sum(sizes) for size in sizes]
    resamples = 2000 if sum(sizes) < 1000 else 80
    made = released_interval(Strata(differences, sizes, weights), resamples=resamples)
    ends = np.cumsum(sizes)
    for row, interval in zip(differences.tolist(), made, strict=True):
        parts = [row[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        assert interval == pytest.approx(slow_interval(parts, weights, RELEASED_SEED, resamples), abs=1e-12)


def test_the_multinomial_bootstrap_has_the_exact_quantiles() -> None:
    """One stratum of three cases has ten resample counts; their exact distribution gives the quantiles."""
    values = [1, 0, -1, 1]
    chances: dict[float, float] = {}
    for drawn in itertools.product(values, repeat=len(values)):
        mean = sum(drawn) / len(values)
        chances[mean] = chances.get(mean, 0) + 1 / len(values) ** len(values)
    running, exact = 0.0, []
    for share in (0.025, 0.975):
        running = 0.0
        for mean in sorted(chances):
            running += chances[mean]
            if running >= share:
                exact.append(mean)
                break
    (made,) = multinomial_interval(Strata(np.array([values]), [4], [1.0]), seed=3)
    assert made == pytest.approx(tuple(exact))


def multinomial_interval(strata: Strata, seed: int, resamples: int = 100_000) -> list[tuple[float, float]]:
    """The same interval by another way: counts of wins, losses and ties are drawn, which is multinomial, not cases."""
    generator = np.random.default_rng(seed)
    intervals = []
    for row in strata.differences:
        means = np.zeros(resamples)
        for part, weight in zip(np.split(row, np.cumsum(strata.sizes)[:-1]), strata.weights, strict=True):
            shares = [(part > 0).mean(), (part < 0).mean(), (part == 0).mean()]
            counts = generator.multinomial(len(part), shares, size=resamples)
            means += weight * (counts[:, 0] - counts[:, 1]) / len(part)
        intervals.append(ends(means))
    return intervals


def test_the_released_bootstrap_agrees_with_a_multinomial_one_up_to_chance() -> None:
    source = np.random.default_rng(8)
    sizes, weights = [400, 60, 90], [0.5, 0.2, 0.3]
    strata = Strata(source.integers(-1, 2, (3, 550)), sizes, weights)
    for first, second in zip(released_interval(strata), multinomial_interval(strata, seed=4), strict=True):
        assert first == pytest.approx(second, abs=0.012)


def test_a_bootstrap_without_differences_is_zero_wide() -> None:
    strata = Strata(np.zeros((2, 6), dtype=np.int64), [4, 2], [0.5, 0.5])
    assert released_interval(strata) == [(0.0, 0.0), (0.0, 0.0)]


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_the_exact_binomial_test(only_first: int, only_second: int) -> None:
    made = mcnemar_exact(only_first, only_second)
    if only_first + only_second:
        assert made == pytest.approx(stats.binomtest(only_first, only_first + only_second).pvalue, rel=1e-9)
    table = [[5, only_first], [only_second, 5]]
    assert made == pytest.approx(min(1.0, mcnemar(table, exact=True).pvalue), rel=1e-9) or not only_first + only_second
    assert mcnemar_exact(only_second, only_first) == made
    assert mcnemar_mid_p(only_first, only_second) <= made


def test_mcnemars_tests_are_what_enumeration_gives() -> None:
    for only_first, only_second in itertools.product(range(7), repeat=2):
        trials = only_first + only_second
        seen = abs(only_first - only_second)
        coins = [abs(trials - 2 * sum(toss)) for toss in itertools.product([0, 1], repeat=trials)]
        assert mcnemar_exact(only_first, only_second) == pytest.approx(sum(c >= seen for c in coins) / 2**trials)
        beyond = sum(c > seen for c in coins) + sum(c == seen for c in coins) / 2
        assert mcnemar_mid_p(only_first, only_second) == pytest.approx(beyond / 2**trials if trials else 1.0)


def test_mcnemar_of_many_disagreements_stays_exact() -> None:
    assert mcnemar_exact(4200, 3900) == pytest.approx(stats.binomtest(4200, 8100).pvalue, rel=1e-9)
    assert mcnemar_exact(3000, 0) == pytest.approx(0.0, abs=1e-300)
    assert mcnemar_exact(0, 0) == 1.0


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels_holm(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), abs=1e-12)


def test_holm_of_nothing_is_nothing() -> None:
    assert holm([]) == []


def test_answers_are_paired_by_id_whatever_their_order() -> None:
    first = dict(zip([f"q{i:02}" for i in range(20)], [1] * 16 + [0] * 4, strict=True))
    reversed_ids = [f"q{i:02}" for i in reversed(range(20))]
    second = dict(zip(reversed_ids, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, *[1] * 10], strict=True))
    only_first = sum(first[case] > second[case] for case in first)
    only_second = sum(first[case] < second[case] for case in first)
    assert (only_first, only_second) == (6, 1)
    assert mcnemar_exact(only_first, only_second) == 0.125


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1)))
def test_distinct_values_are_those_of_a_set_in_order(values: list[int]) -> None:
    assert distinct(ints([*values, *values[:3]])).tolist() == sorted(set(values))


def test_sums_of_money_are_exact_beyond_64_bits() -> None:
    large = ints([2**62, 2**62, 2**62, 5])
    assert exact_sum(large) == 3 * 2**62 + 5
    assert sum_if_known(ints([3, None])) is None
    assert sum_if_known(ints([])) == 0
    assert known_sum(ints([3, None, 4])) == 7


def test_every_shared_statistics_case_gives_its_expected_value() -> None:
    for case in shared_cases("stats"):
        given_, expected = case["input"], case["expected"]
        if "A" in given_:
            first = dict(zip(given_["ids"], given_["A"], strict=True))
            second = dict(zip(given_["B_reversed_ids"], given_["B_reversed"], strict=True))
            b, c = (sum(first[i] > second[i] for i in first), sum(first[i] < second[i] for i in first))
            assert (b, c) == (expected["b"], expected["c"])
            assert (b - c) / len(first) == expected["difference"]
            assert mcnemar_exact(b, c) == expected["mcnemar_exact_two_sided_p"]
