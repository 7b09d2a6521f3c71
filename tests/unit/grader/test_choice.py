"""Choice answers: the table, strictness, laws, and hostile texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srbench_grader.choice import judge, read_choice
from srbench_grader.grading import Case
from srbench_kit.errors import InvalidInput

from tests.waiting import PATIENCE_S

from .choice_answers import ANSWERS


@pytest.mark.parametrize(("text", "options", "letter", "status"), ANSWERS, ids=[row[0][:40] for row in ANSWERS])
def test_the_table_of_answers(text: str, options: int, letter: str | None, status: str) -> None:
    choice = read_choice(text, options)
    assert (choice.letter, choice.status) == (letter, status)


def test_the_table_is_large() -> None:
    assert len(ANSWERS) >= 160
    assert len({row[0] for row in ANSWERS}) >= 159


@pytest.mark.parametrize("text", ["B", "b", " B\n", "(B)", "B.", "(B).", "Answer: B", "ANSWER:  (b)."])
def test_a_text_that_is_only_the_answer_is_strict(text: str) -> None:
    assert read_choice(text, 4).strict


@pytest.mark.parametrize("text", ["**B**", "B) 42", "The answer is B", "\\boxed{B}", "F", "AB", "", "B\n\nbecause", "[B]"])
def test_everything_else_is_not_strict(text: str) -> None:
    assert not read_choice(text, 4).strict


def test_strictness_and_correctness_are_told_apart() -> None:
    wrong_but_strict = judge("A", Case(answer="B", choice_count=4))
    right_but_loose = judge("I checked; the answer is B.", Case(answer="B", choice_count=4))
    assert (wrong_but_strict.correct, wrong_but_strict.strict_format) == (False, True)
    assert (right_but_loose.correct, right_but_loose.strict_format) == (True, False)


def test_a_case_that_is_silent_offers_ten_options() -> None:
    assert judge("J", Case(answer="J")).correct
    assert judge("K", Case(answer="J")).extracted is None


@pytest.mark.parametrize("answer", [None, "", "AB", 2, "F", "1", ["A"]])
def test_an_unusable_reference_is_no_wrong_answer(answer: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        judge("A", Case(case_id="mmlu-pro/7", answer=answer, choice_count=4))  # type: ignore[arg-type]
    assert caught.value.reason == "BAD_REFERENCE"
    assert "mmlu-pro/7" in caught.value.message


@pytest.mark.parametrize(
    ("text", "reference", "correct", "extracted"),
    [
        ("The answer is C because I checked every option.", "C", True, "C"),
        ("The answer is C because I checked every option.", "I", False, "C"),
        ("Option C it is, I believe.", "I", False, "C"),
    ],
)
def test_a_pronoun_never_wins_over_the_answer(text: str, reference: str, correct: bool, extracted: str) -> None:
    grading = judge(text, Case(answer=reference, choice_count=10))
    assert (grading.correct, grading.extracted) == (correct, extracted)


@pytest.mark.parametrize("reference", list("ABCD"))
def test_no_answer_is_wrong_whatever_the_reference_and_every_time(reference: str) -> None:
    for _ in range(20):
        grading = judge("I am not sure, it could be any of them.", Case(answer=reference, choice_count=4))
        assert (grading.correct, grading.extracted, grading.status) == (False, None, "unparsed")


_PROSE = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=300)


@given(_PROSE)
@settings(max_examples=400, deadline=None)
def test_any_text_gives_one_letter_of_the_options_or_none_and_the_same_again(text: str) -> None:
    choice = read_choice(text, 4)
    assert choice == read_choice(text, 4)
    assert choice.letter in (None, "A", "B", "C", "D")
    assert (choice.letter is not None) == (choice.status == "parsed")


_SCRAPS = st.lists(
    st.sampled_from(
        [
            *("Answer: ", "A", "B", " or ", "\n", "**", "the answer is ", "not ", "\\boxed{", "}", "I ", "a ", ". "),
            *("this is option ", "~~", "<think>", "</think>", "`", "答案", "正确", "✅", ")", "Options:\n", "seems to be "),
        ]
    )
)


@given(_SCRAPS)
@settings(max_examples=400, deadline=None)
def test_scraps_of_answers_never_break_the_reader(scraps: list[str]) -> None:
    read_choice("".join(scraps), 4)


@given(_PROSE, st.sampled_from("ABCD"))
@settings(max_examples=300, deadline=None)
def test_a_closing_statement_wins_over_whatever_came_before(prose: str, letter: str) -> None:
    text = prose.replace("<", " ").replace("[", " ") + f"\n\nFinal answer: {letter}."
    assert read_choice(text, 4).letter == letter


@given(_PROSE, st.sampled_from("ABCD"))
@settings(max_examples=300, deadline=None)
def test_reasoning_in_front_changes_nothing(reasoning: str, letter: str) -> None:
    assert read_choice(f"<think>{reasoning}</think>Answer: {letter}", 4).letter == letter


@given(_SCRAPS)
@settings(max_examples=120, deadline=None)
def test_what_was_read_reads_the_same_again(scraps: list[str]) -> None:
    letter = read_choice("".join(scraps), 4).letter
    assert letter is None or read_choice(letter, 4).letter == letter


@given(_SCRAPS, st.sampled_from(["</s>", "<|im_end|>", "<|eot_id|>\n", " <end_of_turn>", "<|return|>"]))
@settings(max_examples=120, deadline=None)
def test_marks_of_an_end_of_turn_change_nothing(scraps: list[str], mark: str) -> None:
    text = "".join(scraps)
    assert read_choice(text + mark, 4).letter == read_choice(text, 4).letter


HOSTILE = {
    "keyword": "answer " * 700_000,
    "colons": "answer:" * 700_000,
    "links": "answer is " * 500_000,
    "spaces": "answer" + " " * 5_000_000 + "B",
    "stars": "*" * 5_000_000,
    "wrapped": "**A" * 1_600_000,
    "brackets": "[" * 5_000_000,
    "backslashes": "\\boxed{" * 700_000,
    "letters": "A B " * 1_250_000,
    "alternatives": "Answer: " + "A or " * 1_000_000,
    "lines": "\n" * 5_000_000,
    "led lines": "A) x\nB) y\n" * 500_000,
    "think": "<think>" * 700_000,
    "unthink": "</think>" * 600_000,
    "thinking": "<think></think>" * 330_000,
    "tags": "<b" * 2_500_000,
    "ligatures": "\ufdfa" * 1_600_000,
    "wide": "答案" * 1_600_000,
    "picks": "选" * 1_600_000,
    "conclusions": "so it is " * 500_000,
    "prose": "The quick brown fox chose option A and option B, or the answer. " * 78_000,
    "correct": "A is correct. " * 350_000,
    "underscores": "answer_" * 700_000,
    "dotted i": "İ" * 2_500_000,
    "no spaces": "A" * 5_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_megabytes_take_bounded_time(name: str) -> None:
    started = time.process_time()
    read_choice(HOSTILE[name], 10)
    assert time.process_time() - started < PATIENCE_S


def test_an_answer_at_the_end_of_megabytes_is_found() -> None:
    assert read_choice("Let me think about option A. " * 170_000 + "\n\n**Answer:** C", 4).letter == "C"
