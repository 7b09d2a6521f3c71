"""Power before spending: the formulas against exact enumeration, simulation and statsmodels' normal quantiles."""

from __future__ import annotations

from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from srbench_planner.power import Design, sharpness, variance_factor


def exact_power(cases: int, delta: float, discordance: float) -> float:
    """The chance that exact McNemar rejects at 5 %, summed over all outcomes."""
    win = (discordance + delta) / 2 / discordance
    total = 0.0
    for disagreements in range(cases + 1):
        chance = comb(cases, disagreements) * discordance**disagreements * (1 - discordance) ** (cases - disagreements)
        if chance < 1e-15:
            continue
        for wins in range(disagreements + 1):
            fewer = min(wins, disagreements - wins)
            if min(1.0, 2 * binom.cdf(fewer, disagreements, 0.5)) <= 0.05:
                total += chance * float(binom.pmf(wins, disagreements, win))
    return total


def test_the_detectable_difference_is_detected_about_as_often_as_promised() -> None:
    made = sharpness({"mmlu-pro": 150}, {}, Design(discordance=0.2))
    assert made.detectable_difference is not None
    # The exact test is conservative: a little below the asymptotic promise, never above it by much.
    assert 0.68 <= exact_power(150, made.detectable_difference, 0.2) <= 0.83


def test_the_detectable_difference_solves_connors_equation() -> None:
    cases, discordance = 400, 0.15
    delta = sharpness({"a": cases}, {}, Design()).detectable_difference
    assert delta is not None
    alpha, beta = norm.ppf(0.975), norm.ppf(0.8)
    needed = (alpha * sqrt(discordance) + beta * sqrt(discordance - delta**2)) ** 2 / delta**2
    assert needed == pytest.approx(cases)


def test_the_expected_width_is_that_of_simulated_intervals() -> None:
    sizes, weights, discordance = {"a": 300, "b": 60}, {"a": 0.2, "b": 0.1}, 0.15
    made = sharpness(sizes, weights, Design(discordance=discordance))
    generator = np.random.default_rng(3)
    deltas = []
    for _ in range(4000):
        total = 0.0
        for name, size in sizes.items():
            wins, losses, _ = generator.multinomial(size, [discordance / 2, discordance / 2, 1 - discordance])
            total += weights[name] / 0.3 * (wins - losses) / size
        deltas.append(total)
    assert made.expected_half_width == pytest.approx(norm.ppf(0.975) * np.std(deltas), rel=0.05)


@pytest.mark.parametrize(
    ("sizes", "width"),
    [({"a": 198}, 0.193), ({"a": 500}, 0.121), ({"a": 2000}, 0.061)],
)
def test_hoeffdings_width_is_the_one_that_comparisons_report(sizes: dict[str, int], width: float) -> None:
    assert sharpness(sizes, {}, Design()).hoeffding_half_width == pytest.approx(width, abs=0.001)


def test_the_whole_suite_has_the_known_widths() -> None:
    weights = {
        "mmlu-pro": 0.10,
        "gpqa-diamond": 0.15,
        "hle": 0.15,
        "livecodebench": 0.10,
        "scicode": 0.10,
        "terminal-bench-2.1": 0.10,
        "simpleqa-verified": 0.10,
        "arc-agi-2": 0.10,
        "tau3": 0.10,
    }
    standard = dict(zip(weights, (2000, 158, 200, 150, 20, 15, 500, 80, 60), strict=True))
    quick = dict(zip(weights, (500, 40, 40, 30, 3, 3, 100, 12, 12), strict=True))
    assert sharpness(standard, weights, Design()).hoeffding_half_width == pytest.approx(0.115, abs=0.001)
    assert sharpness(quick, weights, Design()).hoeffding_half_width == pytest.approx(0.270, abs=0.001)


def test_more_cases_show_smaller_differences_and_more_comparisons_larger_ones() -> None:
    def found(cases: int, **design: Any) -> float:
        delta = sharpness({"a": cases}, {}, Design(**design)).detectable_difference
        assert delta is not None
        return delta

    assert found(2000) < found(500) < found(500, alpha=0.05 / 5) < found(500, alpha=0.05 / 5, power=0.95)
    assert found(500, discordance=0.05) < found(500, discordance=0.4)


def test_too_few_cases_can_show_nothing() -> None:
    made = sharpness({"a": 3}, {}, Design())
    assert (made.detectable_difference, made.hoeffding_detectable_difference) == (None, None)
    assert made.hoeffding_half_width == 1.0


def test_hoeffding_needs_a_larger_difference_than_the_test() -> None:
    made = sharpness({"a": 2000}, {}, Design())
    assert made.detectable_difference is not None
    assert made.hoeffding_detectable_difference is not None
    assert made.detectable_difference < made.hoeffding_half_width < made.hoeffding_detectable_difference


def test_a_verdict_needs_more_than_the_test_and_far_less_than_hoeffdings_interval() -> None:
    made = sharpness({"a": 2000}, {}, Design(singles=3))
    assert made.detectable_difference is not None
    assert made.verdict_detectable_difference is not None
    assert made.hoeffding_detectable_difference is not None
    assert made.detectable_difference < made.verdict_detectable_difference < made.hoeffding_detectable_difference
    assert sharpness({"a": 2000}, {}, Design()).verdict_half_width < made.verdict_half_width


def test_a_difference_that_a_verdict_should_establish_is_established_about_as_often_as_promised() -> None:
    from srbench_kit.adaptive import Counts, adaptive_intervals

    made = sharpness({"a": 1500, "b": 100}, {"a": 0.3, "b": 0.1}, Design(singles=3))
    delta = made.verdict_detectable_difference
    assert delta is not None
    generator, chances = np.random.default_rng(4), [(0.15 + delta) / 2, (0.15 - delta) / 2, 0.85]
    drawn = np.stack([generator.multinomial(size, chances, 2000) for size in (1500, 100)], axis=2).astype(float)
    found = adaptive_intervals(Counts(drawn[:, 0], drawn[:, 1], drawn[:, 2]), [1500, 100], [0.75, 0.25], 0.05 / 3)
    assert 0.7 <= np.mean([low > 0 for low, _ in found]) <= 0.9


def test_weights_of_zero_count_alike_and_empty_benchmarks_not_at_all() -> None:
    assert variance_factor({"a": 10, "b": 10}, {"a": 0, "b": 0}) == pytest.approx(0.05)
    assert variance_factor({"a": 10, "b": 0}, {"a": 0.1, "b": 0.9}) == pytest.approx(0.1)
