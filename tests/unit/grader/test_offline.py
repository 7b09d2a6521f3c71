"""Grades without a service, for bundles that hold their answers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from srbench_grader.offline import grade
from srbench_grader.registry import load_graders

GRADERS = load_graders()
REFERENCE = {"answer": {"string_value": "B"}, "choice_count": 4}


@pytest.mark.parametrize(("text", "correct"), [("Answer: B", True), ("Answer: C", False), ("no idea", False)])
def test_a_text_is_graded_by_its_reference(text: str, correct: bool) -> None:
    found = grade({"grader": "choice", "text": text, "reference": REFERENCE}, GRADERS)
    assert found["correct"] is correct


@pytest.mark.parametrize("row", [{"grader": "nobody"}, {"grader": "judge"}, {"grader": "choice", "reference": {}}])
def test_what_needs_more_than_the_text_has_no_grade(row: dict[str, Any]) -> None:
    found = grade({"text": "Answer: B", "reference": REFERENCE} | row, GRADERS)
    assert found == {"correct": None, "strict_format": None}


def test_the_programs_answer_a_line_for_each_line() -> None:
    case = {"id": "mmlu-pro/1", "benchmark": "mmlu-pro", "answer": "B", "messages": [{"content": "x\nA. a\nB. b"}]}
    lines = json.dumps({"index": 0, "grader": "choice", "case": case}) + "\n"
    made = run("srbench_planner.references", lines)
    assert made[0]["choice_count"] == 2
    graded = run("srbench_grader.offline", json.dumps({"grader": "choice", "text": "B", "reference": made[0]}) + "\n")
    assert graded == [{"correct": True, "strict_format": True}]


def run(module: str, lines: str) -> list[Any]:
    done = subprocess.run([sys.executable, "-m", module], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
