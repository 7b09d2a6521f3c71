"""How sure a saving is, and what a comparison says in a word."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from srbench_accounting.band import Band, SingleDifference
from srbench_accounting.bootstrap import RELEASED_SEED, Strata, released_draws, released_interval
from srbench_accounting.cell_costs import CaseCosts
from srbench_accounting.claims import Claim, claim_about
from srbench_accounting.compare import Comparison
from srbench_accounting.saving_interval import saving_intervals
from srbench_accounting.verdicts import Sizes, Verdict, verdict
from srbench_kit.adaptive import Counts


def costs(low: list[float], high: list[float] | None = None, **more: Any) -> CaseCosts:
    unknown = 0 if high is None else sum(one != other for one, other in zip(low, high, strict=True))
    values: dict[str, Any] = {"unknown_calls": unknown, "covered": True}
    return CaseCosts(low=np.array(low), high=np.array(high if high is not None else low), **(values | more))


def slow_interval(base: list[float], other: list[float], sizes: list[int]) -> tuple[float, float]:
    """The bootstrap written out: the released stream, one draw a case."""
    stream = random.Random(RELEASED_SEED)
    savings = []
    for _ in range(2000):
        first = second = 0.0
        start = 0
        for size in sizes:
            for at in stream.choices(range(size), k=size):
                first += base[start + at]
                second += other[start + at]
            start += size
        savings.append(100 * (1 - second / first))
    savings.sort()
    return savings[49], savings[1949]


def test_the_interval_of_a_saving_is_the_bootstraps() -> None:
    source = random.Random(7)
    base = [source.uniform(50, 150) for _ in range(23)]
    other = [source.uniform(10, 120) for _ in range(23)]
    (made,) = saving_intervals(costs(base), [costs(other)], [15, 8])
    assert made is not None
    assert made.low == made.high == pytest.approx(100 * (1 - sum(other) / sum(base)))
    assert made.ci95 == pytest.approx(slow_interval(base, other, [15, 8]))


def test_unknown_costs_widen_it_to_a_range_that_holds_every_possible_truth() -> None:
    base, low, high = [100.0] * 12, [20.0] * 12, [20.0] * 11 + [80.0]
    (made,) = saving_intervals(costs(base), [costs(low, high)], [12])
    assert made is not None
    assert (made.low, made.high, made.unknown_calls) == (pytest.approx(75), pytest.approx(80), 1)
    for truth in (20.0, 50.0, 80.0):
        (exact,) = saving_intervals(costs(base), [costs([20.0] * 11 + [truth])], [12])
        assert exact is not None
        assert exact.ci95 is not None
        assert made.ci95 is not None
        assert made.low <= exact.low <= made.high
        assert made.ci95[0] <= exact.ci95[0] + 1e-9
        assert made.ci95[1] >= exact.ci95[1] - 1e-9


@pytest.mark.parametrize(
    ("base", "other"),
    [
        (costs([1.0, 1.0], covered=False), costs([1.0, 1.0])),
        (costs([1.0, 1.0]), costs([1.0, 1.0], covered=False)),
        (costs([1.0, 1.0]), costs([1.0, 1.0], [1.0, np.inf])),
        (costs([0.0, 0.0]), costs([1.0, 1.0])),
    ],
    ids=["baseline not asked", "candidate not asked", "no upper bound", "baseline free"],
)
def test_there_is_no_interval_without_both_costs(base: CaseCosts, other: CaseCosts) -> None:
    assert saving_intervals(base, [other], [2]) == [None]


def test_a_candidate_without_an_interval_does_not_shift_the_others() -> None:
    base, good, bad = costs([10.0, 20.0, 30.0]), costs([1.0, 2.0, 3.0]), costs([1.0, 1.0, 1.0], covered=False)
    (alone,) = saving_intervals(base, [good], [3])
    assert saving_intervals(base, [bad, good], [3]) == [None, alone]


def test_the_draws_of_a_layout_are_made_once_and_never_change() -> None:
    first = released_draws((5, 3))
    assert released_draws((5, 3)) is first
    assert first.shape == (8, 2000)
    assert (first[:5].sum(axis=0) == 5).all()
    assert (first[5:].sum(axis=0) == 3).all()
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_cases_on_which_both_agree_do_not_matter_to_the_quality_interval() -> None:
    differences = np.array([[0, 0, 0, 0], [1, -1, 0, 1]])
    still, moving = released_interval(Strata(differences, [3, 1], [0.5, 0.5]))
    assert still == (0.0, 0.0)
    assert moving[0] < moving[1]


COMPARISON = Comparison(
    baseline_target_id="a",
    candidate_target_id="r",
    paired_cases=100,
    quality_delta=0.1,
    micro_quality_delta=0.1,
    quality_delta_ci95=(0.02, 0.18),
    quality_delta_adaptive_ci95=(0.03, 0.17),
    quality_delta_bootstrap_ci95=(0.05, 0.15),
    wins=15,
    losses=5,
    ties=80,
    mcnemar_p=0.04,
    mcnemar_mid_p=0.03,
    mcnemar_p_holm=0.04,
    baseline_subject_cost_picodollars=1,
    candidate_subject_cost_picodollars=1,
    subject_cost_saving_percent=0.0,
    subject_cost_comparison_reason=None,
    baseline_total_cost_picodollars=1,
    candidate_total_cost_picodollars=1,
    total_cost_saving_percent=0.0,
    total_cost_comparison_reason=None,
    baseline_evaluation_cost_picodollars=0,
    candidate_evaluation_cost_picodollars=0,
    cache_neutral_baseline_cost_picodollars=1,
    cache_neutral_candidate_cost_picodollars=1,
    cache_neutral_cost_saving_percent=0.0,
    cache_neutral_cost_comparison_reason=None,
)


SIZES = Sizes(sizes=[100], weights=[1.0])


def judged(delta: float, radius: float, margin: float | None = None, claim: Claim | None = None) -> Verdict:
    """The verdict where the band has `delta` ± `radius` against the strongest single model, and more against another."""
    counts = Counts(np.array([[30.0], [15.0]]), np.array([[0.0], [5.0]]), np.array([[70.0], [80.0]]))
    band = Band(
        singles=(
            SingleDifference(target_id="b", quality_delta=delta + 0.2, interval=(delta, delta + 0.4)),
            SingleDifference(target_id="a", quality_delta=delta, interval=(delta - radius, delta + radius)),
        ),
        alpha=0.025,
        counts=counts,
    )
    return verdict(replace(COMPARISON, quality_delta=delta), band, SIZES, margin, claim)


@pytest.mark.parametrize(
    ("delta", "radius", "word"),
    [
        (0.1, 0.08, "better"),
        (-0.1, 0.08, "worse"),
        (0.1, 0.1, "not established"),
        (0.1, 0.2, "not established"),
        (-0.1, 0.1, "not established"),
        (0.0, 0.0, "not established"),
    ],
)
def test_an_interval_that_spans_zero_is_never_a_gain_nor_a_loss(delta: float, radius: float, word: str) -> None:
    made = judged(delta, radius)
    assert made.word == word
    assert word in made.sentence
    assert made.non_inferiority is None
    assert made.claims == ()


def test_a_hint_is_called_a_hint() -> None:
    assert "a hint, no proof" in judged(0.1, 0.2).sentence
    band = Band(
        singles=(SingleDifference(target_id="a", quality_delta=0.1, interval=(-0.1, 0.3)),),
        alpha=0.05,
        counts=Counts(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1))),
    )
    for silent in (
        replace(COMPARISON, mcnemar_p_holm=0.2),
        replace(COMPARISON, quality_delta_bootstrap_ci95=(-0.01, 0.2)),
        # By weighted benchmarks up, by cases down: the two do not point the same way.
        replace(COMPARISON, wins=5, losses=15),
        replace(COMPARISON, quality_delta_bootstrap_ci95=(-0.15, -0.05)),
    ):
        assert "hint" not in verdict(silent, band, SIZES, None, None).sentence


MARGINS = [
    (0.0, 0.02, 0.02, "supported"),
    (-0.01, 0.02, 0.02, "not shown"),
    (-0.1, 0.02, 0.02, "contradicted"),
    (0.1, 0.01, 0.02, "supported"),
]


@pytest.mark.parametrize(("delta", "radius", "margin", "word"), MARGINS)
def test_a_claimed_margin_is_supported_not_shown_or_contradicted(
    delta: float, radius: float, margin: float, word: str
) -> None:
    (made,) = judged(delta, radius, claim=Claim(margin=margin, run_id="run-1")).claims
    assert (made.verdict, made.margin, made.exploratory, made.plan_run_id) == (word, margin, False, "run-1")
    assert made.sentence.startswith("Claimed by the plan of run run-1. ")
    assert word in made.sentence.lower()
    assert (made.more_cases is not None) is (word == "not shown")


@pytest.mark.parametrize(("delta", "radius", "margin", "word"), MARGINS)
def test_a_margin_given_after_the_fact_is_called_exploratory(delta: float, radius: float, margin: float, word: str) -> None:
    made = judged(delta, radius, margin).non_inferiority
    assert made is not None
    assert (made.verdict, made.exploratory, made.plan_run_id) == (word, True, None)
    assert made.sentence.startswith("Exploratory. ")


def test_what_is_not_shown_says_how_many_more_cases_would_decide_it() -> None:
    (made,) = judged(0.1, 0.3, claim=Claim(margin=0.02)).claims
    assert made.more_cases is not None
    assert 0 < made.more_cases < 1000
    assert "more cases would decide it for the claim" in made.sentence


def test_of_two_plans_claims_the_stricter_counts_and_those_about_others_do_not() -> None:
    early, late = Claim(margin=0.02, run_id="base"), Claim(margin=0.05, target_id="r", run_id="cand")
    assert claim_about("r", (early, late)) == claim_about("r", (late, early)) == early
    assert claim_about("r", (Claim(margin=0.01, target_id="other"), late)) == late
    assert claim_about("x", (late,)) is None


def test_the_difference_to_the_best_single_is_held_by_the_smallest_ends() -> None:
    def one(name: str, low: float, high: float) -> SingleDifference:
        return SingleDifference(target_id=name, quality_delta=(low + high) / 2, interval=(low, high))

    none = np.zeros((3, 1))
    band = Band(
        singles=(one("a", -0.1, 0.3), one("b", 0.0, 0.1), one("c", 0.2, 0.5)),
        alpha=0.05 / 3,
        counts=Counts(none, none, none),
    )
    assert band.best_single == (-0.1, 0.1)
