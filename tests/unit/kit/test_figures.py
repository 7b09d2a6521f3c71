"""Numbers as people read them, and how fast a run goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_cli.progress import Pace, Standing, progress_text
from srbench_kit import figures


@pytest.mark.parametrize(
    ("picodollars", "text"),
    [
        (None, "unknown"),
        (0, "$0"),
        (1, "$0.000000000001"),
        (123_456_789, "$0.0001235"),
        (10**9, "$0.001"),
        (5 * 10**12, "$5"),
        (12_345 * 10**9, "$12.34"),
        (123_456 * 10**9, "$123.46"),
        (10**19, "$10000000.00"),
        (-(10**12), "$-1"),
    ],
)
def test_dollars_keep_four_digits_and_never_become_zero(picodollars: int | None, text: str) -> None:
    assert figures.usd(picodollars) == text


@given(st.integers(min_value=1, max_value=10**20))
def test_a_cost_above_zero_is_never_shown_as_zero_and_never_off_by_more_than_rounding(picodollars: int) -> None:
    shown = float(figures.usd(picodollars).removeprefix("$"))
    assert shown > 0
    assert (
        abs(shown - picodollars / 1e12) <= max(0.005001, 0)
        if picodollars >= 10**14
        else shown == pytest.approx(picodollars / 1e12, rel=5e-4)
    )


def test_counts_beyond_2_to_the_53_keep_every_digit() -> None:
    assert figures.count(9007199254740993) == "9007199254740993"
    assert figures.count(int("12") + int("3")) == "15"
    assert figures.count(None) == "unknown"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0.0, "0 ms"),
        (0.0012, "1.2 ms"),
        (0.25, "250 ms"),
        (0.9999, "1.00 s"),
        (59.0, "59.00 s"),
        (3725.0, "1:02:05"),
    ],
)
def test_durations_have_the_unit_that_fits(value: float | None, text: str) -> None:
    assert figures.seconds(value) == text


def standing(done: int, **more: int | None) -> Standing:
    return Standing(status="running", total=100, completed=done, failed=0, running=4, **more)  # type: ignore[arg-type]


def test_the_pace_is_that_of_the_last_half_minute() -> None:
    pace = Pace()
    assert pace.per_second is None
    for second in range(101):
        pace.see(float(second), second if second < 50 else 50 + 2 * (second - 50))
    assert pace.per_second == pytest.approx(2.0)
    assert pace.remaining_s(50) == pytest.approx(25.0)


def test_nothing_is_promised_before_anything_moved() -> None:
    pace = Pace()
    pace.see(0.0, 3)
    pace.see(9.0, 3)
    assert pace.remaining_s(10) is None
    assert progress_text(standing(3), pace) == "3/100 cells, 4 running, spend unknown"


def test_a_line_has_rate_time_left_and_spend_against_budget() -> None:
    pace = Pace()
    pace.see(0.0, 0)
    pace.see(10.0, 20)
    text = progress_text(standing(20, known_pico=2 * 10**12, budget_pico=5 * 10**12, unknown_costs=1), pace)
    assert text == "20/100 cells, 4 running, 2.0/s, 40 s left, spent $2 + 1 unknown of $5"
