"""Sentences with a code: texts as any other, and whole again after a copy."""

from __future__ import annotations

import copy
import pickle

from srbench_accounting import limitations, savings
from srbench_accounting.saying_convert import messages
from srbench_kit.saying import Saying


def test_a_saying_is_its_text_and_keeps_code_and_facts_in_every_copy() -> None:
    made = Saying("COUNTED", "3 cells are left", count=3)
    assert made == "3 cells are left"
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert (again, again.code, again.facts) == (made, "COUNTED", {"count": "3"})


def test_only_sentences_with_a_code_become_messages_each_once() -> None:
    made = Saying("COUNTED", "3 cells are left", count=3)
    found = messages([made, "somebody's own words", None, made, savings.BASELINE_ZERO])
    assert [(one.code, one.text, dict(one.facts)) for one in found] == [
        ("COUNTED", "3 cells are left", {"count": "3"}),
        ("COST_ZERO_BASELINE", savings.BASELINE_ZERO, {}),
    ]


def test_no_two_sentences_share_a_code() -> None:
    constants = [value for value in vars(savings).values() if isinstance(value, Saying)]
    constants += [value for value in limitations._ALWAYS if isinstance(value, Saying)]
    assert len({one.code for one in constants}) == len(constants) == len(limitations._ALWAYS) + 6
