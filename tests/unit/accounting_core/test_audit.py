"""Accuracy corrected by people's labels, against worked examples, exact enumeration of a census, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.audit import Part, corrected, headline, quality

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40)


def test_a_worked_example_has_its_worked_figures() -> None:
    # 100 graded of 100 planned, 70 judged right; of 20 labelled the judge called 2 wrong ones right and 1 right one wrong.
    judged = [True] * 70 + [False] * 30
    pairs = [(True, True)] * 12 + [(True, False)] * 2 + [(False, False)] * 5 + [(False, True)]
    found = corrected(judged, pairs, 100)
    assert found is not None
    assert found.accuracy == pytest.approx(0.70 - 1 / 20)
    more, less, theta = 2 / 23, 3 / 23, (65 + 2) / 104
    variance = theta * (1 - theta) / 100 + 0.8 * (more + less - (more - less) ** 2) / 20
    assert (found.upper - found.lower) / 2 == pytest.approx(1.959963984540054 * variance**0.5)
    judge = quality(judged, pairs, 100)
    assert judge.sensitivity == pytest.approx(12 / 13)
    assert judge.specificity == pytest.approx(5 / 7)
    assert judge.rogan_gladen == pytest.approx((0.70 + 5 / 7 - 1) / (12 / 13 + 5 / 7 - 1))


@given(PAIRS)
def test_a_census_gives_what_people_say(pairs: list[tuple[bool, bool]]) -> None:
    found = corrected([judge for judge, _ in pairs], pairs, len(pairs))
    assert found is not None
    assert found.accuracy == pytest.approx(sum(human for _, human in pairs) / len(pairs))
    judge = quality([judge for judge, _ in pairs], pairs, len(pairs))
    if judge.rogan_gladen is not None:
        assert judge.rogan_gladen == pytest.approx(found.accuracy)


@given(PAIRS, st.integers(0, 60), st.integers(0, 30))
def test_bounds_hold_the_figure_and_ungraded_cells_count_as_incorrect(
    pairs: list[tuple[bool, bool]], more: int, ungraded: int
) -> None:
    judged = [judge for judge, _ in pairs] + [True] * more
    found, whole = corrected(judged, pairs, len(judged) + ungraded), corrected(judged, pairs, len(judged))
    assert found is not None
    assert whole is not None
    assert 0 <= found.lower <= found.accuracy <= found.upper <= 1
    assert found.accuracy == pytest.approx(whole.accuracy * len(judged) / (len(judged) + ungraded))


def test_it_is_unknown_where_labels_cannot_say() -> None:
    assert corrected([True], [(True, True)], 1) is None
    judge = quality([True, True], [(True, True), (True, True)], 2)
    assert (judge.sensitivity, judge.specificity, judge.rogan_gladen) == (1.0, None, None)
    assert quality([True, False], [(True, False), (False, True)], 2).rogan_gladen is None


def test_full_agreement_of_a_small_sample_is_no_proof() -> None:
    judged = [True, False] * 100
    found = corrected(judged, [(True, True), (False, False)] * 5, 200)
    assert found is not None
    alone = 1.96 * (0.25 / 200) ** 0.5
    assert (found.upper - found.lower) / 2 > 2 * alone


@pytest.mark.parametrize(
    ("truth", "false_right", "false_wrong", "graded", "labelled"),
    [(0.6, 0.1, 0.1, 200, 50), (0.9, 0.3, 0.02, 500, 60), (0.3, 0.02, 0.3, 100, 30), (0.5, 0.0, 0.0, 200, 20)],
)
def test_the_interval_covers_what_it_says(
    truth: float, false_right: float, false_wrong: float, graded: int, labelled: int
) -> None:
    """2,000 simulated runs: at least 94 % of the intervals hold the truth, where the judged accuracy alone is far off."""
    random = np.random.default_rng(20260918)
    covered, total = 0, 0.0
    for _ in range(2000):
        human = random.random(graded) < truth
        flipped = random.random(graded) < np.where(human, false_wrong, false_right)
        judge = human ^ flipped
        chosen = random.choice(graded, labelled, replace=False)
        pairs = [(bool(judge[place]), bool(human[place])) for place in chosen]
        found = corrected([bool(one) for one in judge], pairs, graded)
        assert found is not None
        covered += found.lower <= truth <= found.upper
        total += found.accuracy
    assert covered / 2000 >= 0.94
    assert total / 2000 == pytest.approx(truth, abs=0.01)


@given(PAIRS, st.integers(0, 30))
def test_a_headline_of_one_benchmark_is_that_benchmarks_figure(pairs: list[tuple[bool, bool]], ungraded: int) -> None:
    judged, planned = [judge for judge, _ in pairs], len(pairs) + ungraded
    whole = headline([Part(weight=1, correct=sum(judged), planned=planned, judged=judged, pairs=pairs)])
    alone = corrected(judged, pairs, planned)
    assert whole is not None
    assert alone is not None
    assert whole.accuracy == pytest.approx(alone.accuracy)
    assert whole.lower == pytest.approx(alone.lower)
    assert whole.upper >= alone.upper - 1e-9


def test_a_judged_benchmark_without_labels_leaves_the_headline_unknown_and_one_without_grades_does_not() -> None:
    plain = Part(weight=0.5, correct=3, planned=6)
    assert headline([plain, Part(weight=0.5, correct=1, planned=2, judged=[True, False], pairs=[(True, True)])]) is None
    found = headline([plain, Part(weight=0.5, correct=0, planned=4)])
    assert found is not None
    assert found.accuracy == pytest.approx(0.25)


def test_the_headlines_interval_covers_what_it_says() -> None:
    """2,000 simulated runs of a judged benchmark beside one that is graded exactly."""
    random = np.random.default_rng(20260919)
    truths, sizes, labelled, covered = (0.7, 0.4), (200, 400), 50, 0
    target = (truths[0] * sizes[0] + truths[1] * sizes[1]) / sum(sizes)
    for _ in range(2000):
        human, exact = random.random(sizes[0]) < truths[0], random.random(sizes[1]) < truths[1]
        judge = human ^ (random.random(sizes[0]) < np.where(human, 0.05, 0.4))
        chosen = random.choice(sizes[0], labelled, replace=False)
        pairs = [(bool(judge[place]), bool(human[place])) for place in chosen]
        judged = [bool(one) for one in judge]
        parts = [
            Part(weight=sizes[0] / sum(sizes), correct=sum(judged), planned=sizes[0], judged=judged, pairs=pairs),
            Part(weight=sizes[1] / sum(sizes), correct=int(exact.sum()), planned=sizes[1]),
        ]
        found = headline(parts)
        assert found is not None
        covered += found.lower <= target <= found.upper
    assert covered / 2000 >= 0.94
