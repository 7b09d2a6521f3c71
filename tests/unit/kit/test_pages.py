"""Page tokens as the integers that released clients hand back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_kit import pages
from srbench_kit.errors import InvalidInput


@given(st.integers(1, 2**36), st.text(), st.booleans())
def test_a_token_survives_its_way_through_an_integer_that_browsers_keep(position: int, run: str, flag: bool) -> None:
    number = pages.as_number(pages.encode(position, run, flag))
    assert number is not None
    assert 0 < number < 2**53
    assert pages.decode(pages.from_number(number), run, flag) == position


def test_the_beginning_and_the_end_need_no_token() -> None:
    assert pages.as_number("") is None
    assert pages.from_number(0) == ""


def test_a_made_up_number_is_refused_like_a_made_up_token() -> None:
    with pytest.raises(InvalidInput, match="other filters"):
        pages.decode(pages.from_number(77), "run-1")


@pytest.mark.parametrize("token", ["x", "!!!!", "W10", "WzEsMl0", "bnVsbA", "W1tdLCJhYWFhIl0"])
def test_a_malformed_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="not one that this service gave out"):
        pages.decode(token)


def test_a_list_with_text_positions_has_no_integer_cursors() -> None:
    with pytest.raises(InvalidInput, match="no integer cursors"):
        pages.as_number(pages.encode("run-1"))
