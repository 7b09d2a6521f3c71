"""CSV cells that are no formulas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_kit.spreadsheets import plain, read_back


@given(st.text("'=+-@\t\r\nab ", max_size=8))
def test_every_text_comes_back_and_none_is_a_formula(text: str) -> None:
    assert read_back(plain(text)) == text
    assert not plain(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("text", ["", "1969, I think", "it's", "'quoted'", "a=b"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert plain(text) == text
