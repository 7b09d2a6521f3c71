"""Which graders there are, and how other packages add theirs."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from srbench_grader import choice
from srbench_grader.grading import Case, Grader, Grading, JudgeReply
from srbench_grader.registry import GROUP, load_graders
from srbench_kit.errors import InvalidInput


def always_right(text: str, case: Case, replies: tuple[JudgeReply, ...]) -> Grading:
    return Grading(correct=True, status="parsed", extracted=text)


MINE = Grader(name="mine", version="mine-v1", judge=always_right)


def make_mine() -> Grader:
    return MINE


def point(name: str, attribute: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{attribute}", group=GROUP)


def test_the_built_in_graders_are_there_with_versions_of_our_own() -> None:
    graders = load_graders([])
    assert {name: grader.version for name, grader in graders.items()} == {
        "choice": "sr-bench-choice-v2",
        "grid": "sr-bench-grid-v2",
        "judge": "sr-bench-reference-judge-v1",
        "code": "sr-bench-code-v2",
        "scicode": "sr-bench-steps-v3",
        "harness": "sr-bench-harness-v1",
        "tau3": "sr-bench-tau3-v2",
    }
    assert graders["choice"] is choice.GRADER


@pytest.mark.parametrize("attribute", ["MINE", "make_mine"])
def test_another_package_adds_a_grader_or_a_function_that_gives_one(attribute: str) -> None:
    assert load_graders([point("mine", attribute)])["mine"] is MINE


@pytest.mark.parametrize(
    ("name", "attribute", "reason"),
    [
        ("mine", "nothing_here", "BAD_GRADER_PLUGIN"),
        ("other", "MINE", "BAD_GRADER_PLUGIN"),
        ("mine", "GROUP", "BAD_GRADER_PLUGIN"),
    ],
)
def test_a_broken_plugin_is_refused_with_its_name(name: str, attribute: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_graders([point(name, attribute)])
    assert caught.value.reason == reason
    assert name in caught.value.message


def test_a_name_is_given_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        load_graders([point("mine", "MINE"), point("mine", "MINE")])
    assert caught.value.reason == "DUPLICATE_GRADER"
