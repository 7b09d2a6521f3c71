"""Agreement of two judges, against worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.agreement import agreement, cohen_kappa
from srbench_kit.values import Json

VERDICTS = ("correct", "incorrect", "not_attempted")


def test_a_textbook_table_gives_its_kappa() -> None:
    # 20 both yes, 15 both no, 5 and 10 apart: observed 0.7, by chance 0.5.
    pairs = [("y", "y")] * 20 + [("n", "n")] * 15 + [("y", "n")] * 5 + [("n", "y")] * 10
    assert cohen_kappa(pairs) == pytest.approx(0.4)


def test_it_is_unknown_where_it_is_not_defined() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa([("correct", "correct")] * 9) is None


@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(VERDICTS)), min_size=1))
def test_it_is_symmetric_at_most_one_and_one_only_for_full_agreement(pairs: list[tuple[str, str]]) -> None:
    kappa = cohen_kappa(pairs)
    assert kappa == cohen_kappa([(second, first) for first, second in pairs])
    if kappa is not None:
        assert -1 <= kappa <= 1
        assert (kappa == 1) == all(first == second for first, second in pairs)


def test_answers_without_two_verdicts_are_told_apart() -> None:
    details: list[dict[str, Json]] = [
        {"verdict": "correct", "second_judge": "k", "second_verdict": "correct"},
        {"verdict": "correct", "second_judge": "k", "second_verdict": "incorrect"},
        {"verdict": "correct", "second_judge": "k", "second_verdict": None},
        {"verdict": "correct"},
        {},
    ]
    found = agreement(details)
    assert found is not None
    assert (found.pairs, found.unpaired, found.observed, found.kappa) == (2, 1, 0.5, 0.0)
    assert agreement([{"verdict": "correct"}, {}]) is None
