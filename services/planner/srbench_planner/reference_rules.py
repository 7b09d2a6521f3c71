"""Whether a case's reference answer is one that its grader can use. Found before a call is paid that nobody could grade."""

from __future__ import annotations

import re
from collections.abc import Mapping

from srbench_kit import reference_answers
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

_OPTION = re.compile(r"^\(?([A-Z])[.)] ", re.MULTILINE)


def check_answer(case: Mapping[str, Json], grader: str, path: str) -> None:
    """Raises: `InvalidInput` (`BAD_REFERENCE`), which never shows the answer: whoever binds a dataset may not know it."""
    answer = case.get("answer")
    expected = ""
    if grader == "choice":
        options = choice_count(case, grader)
        if reference_answers.letter(answer, options) is None:
            most = min(options or reference_answers.DEFAULT_OPTIONS, reference_answers.MAX_OPTIONS)
            expected = f"one letter from A to {chr(ord('A') + most - 1)}"
    elif grader == "grid" and reference_answers.grid(answer) is None and reference_answers.grids(answer) is None:
        expected = "a grid (1 to 30 rows of as many whole numbers from 0 to 9) or a list of grids"
    elif grader == "judge" and reference_answers.text(answer) is None:
        expected = "a text for the judge"
    if expected:
        sentence = f"{path}.answer is not {expected}, which the grader {grader} needs"
        raise InvalidInput("BAD_REFERENCE", sentence, field=f"{path}.answer", expected=expected)


def choice_count(case: Mapping[str, Json], grader: str) -> int:
    """How many options a case offers: its `choices`, else the lettered lines of its last message; 0 when it is silent."""
    choices = case.get("choices")
    if isinstance(choices, list):
        return len(choices)
    messages = case.get("messages")
    last = messages[-1] if grader == "choice" and isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if not isinstance(content, str):
        return 0
    # The options are the last lines that count up from A; a lettered line in the question before them starts no list.
    count = 0
    for letter in _OPTION.findall(content):
        if ord(letter) - ord("A") == count:
            count += 1
        elif letter == "A":
            count = 1
    return count if count > 1 else 0
