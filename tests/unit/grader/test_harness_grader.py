"""The grader of agent benchmarks: a reward of 1 is right, everything else is wrong or no result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from srbench_grader import harness
from srbench_grader.grading import Case, Grading, Submission
from srbench_kit.errors import InvalidInput

CASE = Case(case_id="terminal-bench-2.1/one", benchmark="terminal-bench-2.1")


async def judge(**fields: Any) -> Grading:
    whole = {"schema": harness.SCHEMA, "status": "completed", "reward": 1.0, "reason": "answered"} | fields
    return await harness.run(Submission(text=json.dumps(whole)), CASE, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reward", "right"), [(1, True), (1.0, True), (0, False), (0.5, False), (0.999, False), (2, False)]
)
async def test_only_a_whole_point_is_right(reward: float, right: bool) -> None:
    found = await judge(reward=reward)
    assert (found.correct, found.extracted) == (right, reward)


async def test_what_the_harness_said_stands_in_the_details() -> None:
    found = await judge(versions={"harbor": "1"}, details={"steps": 3, "reason": "not this one"})
    assert found.details == {"reason": "answered", "versions": {"harbor": "1"}, "steps": 3, "reward": 1.0}


@pytest.mark.parametrize(
    "fields", [{"status": "failed"}, {"schema": "x"}, {"reward": None}, {"reward": True}, {"reward": "1"}]
)
async def test_anything_else_is_a_failure_to_grade(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await judge(**fields)


async def test_a_models_text_is_no_result() -> None:
    with pytest.raises(InvalidInput):
        await harness.run(Submission(text="B"), CASE, None)  # type: ignore[arg-type]


def test_saved_texts_are_never_judged_again_as_results() -> None:
    assert harness.GRADER.judge is None
