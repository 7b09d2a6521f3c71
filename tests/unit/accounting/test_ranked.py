"""The part of an order that a page shows is what sorting everything would give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.ranked_lists import ranked
from srbench_accounting.ranking import UNKNOWN


@given(
    values=st.lists(st.integers(UNKNOWN, 6), max_size=40),
    descending=st.booleans(),
    offset=st.integers(0, 45),
    size=st.integers(1, 45),
)
def test_a_page_is_a_part_of_the_whole_order(values: list[int], descending: bool, offset: int, size: int) -> None:
    def key(place: int) -> tuple[bool, int, int]:
        value = values[place]
        return value == UNKNOWN, -value if descending else value, place

    places = [place for place in range(len(values)) if place % 3]
    expected = sorted(places, key=key)[offset : offset + size]
    found = ranked(np.array(places, dtype=np.int64), np.array(values, dtype=np.int64), descending, offset, size)
    assert found.tolist() == expected
