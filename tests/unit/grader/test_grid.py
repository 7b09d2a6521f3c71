"""Grid answers: a table, shapes that are refused, laws, and hostile texts."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srbench_grader.grading import Case
from srbench_grader.grid import judge, read_grids
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from tests.waiting import PATIENCE_S

G = [[1, 0], [0, 1]]
H = [[2, 2, 2]]
P, U, M = "parsed", "unparsed", "ambiguous"
SPREAD = json.dumps(G, indent=2)

# (text, test inputs, grids that count, status)
ANSWERS: list[tuple[str, int, list[list[list[int]]] | None, str]] = [
    ("[[1,0],[0,1]]", 1, [G], P),
    ("[[[1,0],[0,1]]]", 1, [G], P),
    ("[[1, 0],\n [0, 1]]", 1, [G], P),
    (SPREAD, 1, [G], P),
    (f"```json\n{SPREAD}\n```", 1, [G], P),
    ("```\n[[1,0],[0,1]]\n```", 1, [G], P),
    ("```json\n[[1,0],[0,1]]", 1, [G], P),  # a fence that is not closed
    ("Final output:\n[[1, 0],\n [0, 1]]", 1, [G], P),
    ("Input was [[0,1],[1,0]]. After the flip:\n```\n[[1,0],[0,1]]\n```", 1, [G], P),
    ("[[1,0],[0,1]]\n\nI flipped every row.", 1, [G], P),
    ("The rows [1] and [2] swap, see [[source]]. [[1,0],[0,1]] as shown in [3].", 1, [G], P),
    ("Take [ and then [[1,0],[0,1]]", 1, [G], P),
    ("] first ] [[1,0],[0,1]]", 1, [G], P),
    ('{"grid": [[1,0],[0,1]]}', 1, [G], P),
    ('{"output": [[[1,0],[0,1]]]}', 1, [G], P),
    ("**Answer:** `[[1,0],[0,1]]`", 1, [G], P),
    ("$$\\boxed{[[1,0],[0,1]]}$$", 1, [G], P),
    ("[[1,0],[0,1],]", 1, [G], P),
    ("[[1 0]\n [0 1]]", 1, [G], P),
    ("1 0\n0 1", 1, [G], P),
    ("The output is:\n\n1 0\n0 1\n", 1, [G], P),
    ("```\n1 0\n0 1\n```", 1, [G], P),
    ("2 2 2", 1, [H], P),
    ("<think>[[9]]</think>[[1,0],[0,1]]", 1, [G], P),
    ("maybe [[9]]\n</think>\n[[1,0],[0,1]]", 1, [G], P),
    ("[[5]]", 1, [[[5]]], P),
    ("[[[1,0],[0,1]],[[2,2,2]]]", 2, [G, H], P),
    ("Test 1: [[1,0],[0,1]]\nTest 2: [[2,2,2]]", 2, [G, H], P),
    ('{"test_1": [[1,0],[0,1]], "test_2": [[2,2,2]]}', 2, [G, H], P),
    ("Input [[7]].\n```json\n[[1,0],[0,1]]\n```\nand\n```json\n[[2,2,2]]\n```", 2, [G, H], P),
    ("1 0\n0 1\n\n2 2 2", 2, [G, H], P),
    ("[[[7]]] at first. Now: [[[1,0],[0,1]],[[2,2,2]]]", 2, [G, H], P),
    ("[[1,0],[0,1]]", 2, [G], P),  # one of two: counts as read, is not right
    ("[[[1,0],[0,1]]]", 2, [G], P),
    # Rows that nothing holds together, lists of objects, links.
    ("[1, 0]\n[0, 1]", 1, [G], P),
    ("Output:\n[1, 0],\n[0, 1],\n", 1, [G], P),
    ("[1 0]\r\n[0 1]", 1, [G], P),
    ('[{"output": [[1,0],[0,1]]}]', 1, [G], P),
    ('[{"output": [[1,0],[0,1]]}, {"output": [[2,2,2]]}]', 2, [G, H], P),
    ("[[1,0],[0,1]] as in [[1]](https://example.org) and [[2]](#note)", 1, [G], P),
    ("[[1,0],[0,1]]<|im_end|>", 1, [G], P),
    # Refused.
    ("[1, 0]", 1, None, U),
    ("[1, 0]\n[0, x]", 1, None, U),
    ("[1, 0]\n[0, 10]", 1, None, U),
    ('Input [[1,0],[0,1]], output [["1","0"],["0","1"]]', 1, None, U),
    ("", 1, None, U),
    ("I cannot see the rule.", 1, None, U),
    ("[]", 1, None, U),
    ("[[]]", 1, None, U),
    ("[[1,0],[]]", 1, None, U),
    ("[[1,0],[0]]", 1, None, U),
    ("[[1,0],[0,true]]", 1, None, U),
    ("[[true,false],[false,true]]", 1, None, U),
    ("[[1.0,0],[0,1]]", 1, None, U),
    ("[[1e0,0],[0,1]]", 1, None, U),
    ('[["1","0"],["0","1"]]', 1, None, U),
    ("[[1,0],[0,10]]", 1, None, U),
    ("[[1,0],[0,-1]]", 1, None, U),
    ("[[1,0],[0,null]]", 1, None, U),
    ("[[01,0],[0,1]]", 1, None, U),
    ("[[1,,0],[0,1]]", 1, None, U),
    ("[1,0,0,1]", 1, None, U),
    ("[[1,0],[0,1]", 1, None, U),  # never closed
    ("[[[[1]]]]", 1, None, U),
    ("[[1,0],...,[0,1]]", 1, None, U),
    ("Input [[1,0],[0,1]]; output [[1,0],[0,x]]", 1, None, U),  # a spoilt answer is not replaced by the echo before it
    ("[[[1,0],[0,1]],[[2,2],[2]]]", 2, None, U),
    ("1 0\n0", 1, None, U),
    ("1 0\n0 12", 1, None, U),
    ("<think>[[1,0],[0,1]]", 1, None, U),
    (json.dumps([[1] * 31]), 1, None, U),
    (json.dumps([[1]] * 31), 1, None, U),
    # Two attempts where one is asked for, and rows that may be input or output.
    ("[[[1,0],[0,1]],[[2,2,2]]]", 1, None, M),
    ("0 1\n1 0\n\n1 0\n0 1", 1, None, M),
]


@pytest.mark.parametrize(("text", "count", "grids", "status"), ANSWERS, ids=[repr(row[0])[:40] for row in ANSWERS])
def test_the_table_of_answers(text: str, count: int, grids: list[list[list[int]]] | None, status: str) -> None:
    found = read_grids([text], count)
    assert (found.grids, found.status) == (grids, status)


def test_the_table_is_large() -> None:
    assert len(ANSWERS) >= 55


def case(answer: Json, listed: bool = False) -> Case:
    return Case(case_id="arc-agi-2/x", answer=answer, metadata={"output_format": "grids"} if listed else {})


def test_a_right_list_of_grids_counts_all_pairs() -> None:
    grading = judge("[[[1,0],[0,1]],[[2,2,2]]]", case([G, H], listed=True))
    assert grading.correct
    assert grading.extracted == [G, H]
    assert dict(grading.details) == {"pairs_correct": 2, "pairs_total": 2}


def test_one_text_for_each_test_input() -> None:
    grading = judge('["[[1]]", "[[3]]"]', case([[[1]], [[2]]]))
    assert (grading.correct, grading.extracted) == (False, [[[1]], [[3]]])
    assert dict(grading.details) == {"pairs_correct": 1, "pairs_total": 2}


def test_one_wrong_pair_is_counted_and_the_answer_is_wrong() -> None:
    grading = judge("[[[1,0],[0,1]],[[2,2,3]]]", case([G, H], listed=True))
    assert (grading.correct, grading.details["pairs_correct"]) == (False, 1)


def test_too_few_grids_are_wrong_and_no_pair_is_guessed() -> None:
    grading = judge("[[1,0],[0,1]]", case([G, H], listed=True))
    assert (grading.correct, grading.details["pairs_correct"], grading.details["problem"]) == (False, 0, "too_few_grids")


def test_a_single_grid_keeps_the_shape_of_the_reference() -> None:
    assert judge("[[1,0],[0,1]]", case(G)).extracted == G
    assert judge("[[1,0],[0,1]]", case([G], listed=True)).extracted == [G]
    assert judge("[[1,0],[0,1]]", case([G], listed=True)).correct


def test_only_bare_json_is_strict() -> None:
    assert judge(" [[1,0],[0,1]]\n", case(G)).strict_format
    assert not judge("```json\n[[1,0],[0,1]]\n```", case(G)).strict_format
    assert not judge("1 0\n0 1", case(G)).strict_format


@pytest.mark.parametrize("answer", [None, [], [[]], "B", [[1.0]], [[True]], [[1], [1, 2]], [[[1]], [[]]], [[10]]])
def test_an_unusable_reference_is_no_wrong_answer(answer: Json) -> None:
    with pytest.raises(InvalidInput) as caught:
        judge("[[1]]", case(answer, listed=True))
    assert caught.value.reason == "BAD_REFERENCE"


_SIDE = st.integers(1, 30)


@st.composite
def grids(draw: st.DrawFn) -> list[list[int]]:
    width = draw(_SIDE)
    row = st.lists(st.integers(0, 9), min_size=width, max_size=width)
    return draw(st.lists(row, min_size=1, max_size=30))


@given(
    grids(),
    st.sampled_from([None, 1, 2, 4]),
    st.sampled_from(["", "The output: ", "```json\n"]),
    st.sampled_from(["", "\n```", " Done."]),
)
@settings(max_examples=80, deadline=None)
def test_a_grid_is_read_however_it_is_laid_out(grid: list[list[int]], indent: int | None, before: str, after: str) -> None:
    assert judge(before + json.dumps(grid, indent=indent) + after, case([grid], listed=True)).correct


@given(st.lists(grids(), min_size=2, max_size=3))
@settings(max_examples=40, deadline=None)
def test_a_list_and_its_grids_one_by_one_read_the_same(several: list[list[list[int]]]) -> None:
    listed = judge(json.dumps(several), case(several, listed=True))  # type: ignore[arg-type]
    single = judge("\n".join(json.dumps(grid) for grid in several), case(several, listed=True))  # type: ignore[arg-type]
    assert listed.correct
    assert single.correct


@given(st.text(alphabet="[]0123456789, \n-.tx", max_size=200))
@settings(max_examples=400, deadline=None)
def test_scraps_of_grids_never_break_the_reader_and_never_give_a_bad_grid(text: str) -> None:
    for grid in read_grids([text], 1).grids or []:
        assert all(type(cell) is int and 0 <= cell <= 9 for row in grid for cell in row)
        assert len({len(row) for row in grid}) == 1


@given(st.text(alphabet='[]{}0123456789, \n"()h', max_size=200), st.integers(1, 2))
@settings(max_examples=120, deadline=None)
def test_what_was_read_reads_the_same_again(text: str, count: int) -> None:
    found = read_grids([text], count).grids
    assert found is None or read_grids([json.dumps(found)], count).grids == found


HOSTILE = {
    "loose rows": "[1, 0]\n" * 60_000,
    "loose spaces": "[1" + " " * 400_000 + "x",
    "objects": "[{" * 200_000,
    "open": "[" * 5_000_000,
    "close": "]" * 5_000_000,
    "nested": "[" * 2_500_000 + "]" * 2_500_000,
    "pairs": "[]" * 2_500_000,
    "flat nested": "[" + "[1]," * 1_200_000 + "[1]]",
    "many grids": "[[1]] " * 800_000,
    "one number": "[[" + "1" * 5_000_000 + "]]",
    "digits": "1 " * 2_500_000,
    "rows": "1 0\n" * 1_200_000,
    "commas": "[[" + "," * 5_000_000 + "]]",
    "spaces": "[[1" + " " * 5_000_000 + "]]",
    "gaps": "[" + "[1]\n" * 1_200_000 + "]",
    "text list": '["' + "a" * 5_000_000,
    "quotes": '["","",' * 700_000,
    "think": "<think>[[1]]</think>" * 250_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_megabytes_take_bounded_time(name: str) -> None:
    started = time.process_time()
    read_grids([HOSTILE[name]], 2)
    judge(HOSTILE[name], case([G, H], listed=True))
    assert time.process_time() - started < PATIENCE_S
