"""Choice answers in the forms that upstream graders ask for: ours reads the letter that they read.

The patterns are those of two graders on PyPI, nvidia-simple-evals 26.3: `gpqa_eval.py` (OpenAI's simple-evals) and
`mmlu_pro_eval.py`. Both also read letters out of hedges and prose, which ours refuses on purpose (`choice_answers.py`).
"""

from __future__ import annotations

import itertools
import re

import pytest
from srbench_grader.choice import read_choice

GPQA = re.compile(r"(?i)Answer[ \t]*:[ \t]*([A-D])")
MMLU_PRO = re.compile(r"(?i)[\*\_]{0,2}Answer[\*\_]{0,2}\s*:[\s\*\_]{0,2}\s*([A-Z])(?![a-zA-Z0-9])")
BEFORE = (
    "",
    "Let me think. The mass is 3 kg.\n\n",
    "Option A is wrong because x. Option C is not it.\n",
    "Step 1: A\nStep 2: B\n",
)
FORMS = ("Answer: {}", "ANSWER: {}", "answer: {}.", "Answer: {}\n", "Answer:  {}", "Final Answer: {}", "**Answer: {}**")
MARKED = ("**Answer:** {}", "**Answer**: {}")


@pytest.mark.parametrize(("pattern", "forms"), [(GPQA, FORMS), (MMLU_PRO, (*FORMS, *MARKED))], ids=["gpqa", "mmlu-pro"])
def test_every_answer_in_the_form_asked_for_is_read_alike(pattern: re.Pattern[str], forms: tuple[str, ...]) -> None:
    for before, form, letter in itertools.product(BEFORE, forms, "ABCD"):
        text = before + form.format(letter)
        found = pattern.search(text)
        assert found is not None, text
        assert read_choice(text, 4).letter == found[1].upper() == letter, text
