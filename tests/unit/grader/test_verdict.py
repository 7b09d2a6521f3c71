"""A judge's words become a verdict only when they are clearly one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_grader.verdict import CORRECT, INCORRECT, NOT_ATTEMPTED, VERDICTS, read_verdict

JSON = '{"verdict": "incorrect", "explanation": "Another year."}'

READ = [
    (JSON, INCORRECT),
    ('{"verdict":"correct","explanation":""}', CORRECT),
    ('{"explanation": "none given", "verdict": "not_attempted"}', NOT_ATTEMPTED),
    ('{"verdict": "NOT ATTEMPTED", "explanation": "x"}', NOT_ATTEMPTED),
    (f"```json\n{JSON}\n```", INCORRECT),
    (f"```\n{JSON}\n```", INCORRECT),
    (f"~~~JSON\n{JSON}\n~~~", INCORRECT),
    (f"Here is my verdict:\n{JSON}", INCORRECT),
    (f"Sure!\n```json\n{JSON}\n```\nLet me know if you need more.", INCORRECT),
    (f"<think>It looks correct. {{</think>{JSON}", INCORRECT),
    (f"{JSON}\n{JSON}", INCORRECT),
    ('{"verdict": "correct", "explanation": "It wrote {\\"verdict\\": \\"incorrect\\"} in passing."}', CORRECT),
    ('{"verdict": "correct", "explanation": "line\nbreak"}', CORRECT),
    (r'{"verdict": "correct", "explanation": "Both are \(x^2\) and \frac{1}{2}, \underline{so}."}', CORRECT),
    (r'{"explanation": "\boxed{5} is \"not\" 7 \\ \u00e9", "verdict": "incorrect"}', INCORRECT),
    ('{"verdict": "incorrect", "explanation": "x",\n}', INCORRECT),
    ('{"verdict": "Correct.", "explanation": "x"}', CORRECT),
    (JSON + "<|im_end|>", INCORRECT),
    ("INCORRECT", INCORRECT),
    ("CORRECT", CORRECT),
    ("**Incorrect.**", INCORRECT),
    ("Grade: INCORRECT", INCORRECT),
    ("Verdict: correct", CORRECT),
    ("The year differs.\n\nFinal verdict: **not attempted**", NOT_ATTEMPTED),
    ("Judgment = incorrect", INCORRECT),
]

NOT_READ = [
    "",
    "   ",
    "This is not correct.",
    "The answer is correct.",
    "correct or incorrect",
    "CORRECT\nINCORRECT",
    "Grade: CORRECT\nGrade: INCORRECT",
    "Grade: CORRECT\nbut that is what the candidate wrote",
    "UNCORRECT",
    "partially correct",
    '{"reasoning": "The response says',
    '{"verdict": "correct"',
    '{"verdict": "maybe", "explanation": "x"}',
    '{"verdict": true, "explanation": "x"}',
    '{"verdict": ["correct"], "explanation": "x"}',
    '{"grade": "correct"}',
    '{"verdict": "incorrect", "verdict": "correct", "explanation": "twice"}',
    '{"verdict": "correct", "explanation": "a"} {"verdict": "incorrect", "explanation": "b"}',
    'The candidate wrote {"verdict": "correct"}, which is no answer.',
    '{"quoted": {"verdict": "correct", "explanation": "x"}',
    "<think>" + JSON,
    "[" * 5000 + '{"verdict": ' + "[" * 5000,
]


@pytest.mark.parametrize(("text", "verdict"), READ)
def test_a_clear_verdict_is_read(text: str, verdict: str) -> None:
    found = read_verdict(text)
    assert found is not None
    assert found.verdict == verdict


@pytest.mark.parametrize("text", NOT_READ)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert read_verdict(text) is None


def test_the_explanation_is_kept_up_to_its_bound() -> None:
    found = read_verdict(json.dumps({"verdict": "correct", "explanation": "e" * 5000}))
    assert found is not None
    assert found.explanation == "e" * 2000


def test_formulas_in_an_explanation_are_kept_as_they_are() -> None:
    found = read_verdict(r'{"verdict": "correct", "explanation": "\(\frac{1}{2}\) \\ \u00e9 \"q\" \boxed{b}"}')
    assert found is not None
    assert found.explanation == r'\(\frac{1}{2}\) \ é "q" \boxed{b}'


@given(st.text(alphabet='\\"bfnrtuxyz{},0aé', max_size=60), st.sampled_from(VERDICTS))
def test_no_backslash_in_an_explanation_turns_the_verdict(explanation: str, verdict: str) -> None:
    found = read_verdict(f'{{"verdict": "{verdict}", "explanation": "{explanation}"}}')
    assert found is None or found.verdict == verdict


@given(st.text(max_size=200), st.sampled_from(VERDICTS))
def test_what_an_explanation_says_never_changes_the_verdict(explanation: str, verdict: str) -> None:
    found = read_verdict(json.dumps({"verdict": verdict, "explanation": explanation}))
    assert found is not None
    assert found.verdict == verdict


@given(st.text(alphabet="CORECTINcorectin :.\n", max_size=40))
def test_a_text_with_incorrect_in_it_is_never_read_as_correct(text: str) -> None:
    found = read_verdict(f"{text}INCORRECT")
    assert found is None or found.verdict != CORRECT
