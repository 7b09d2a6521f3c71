"""Steps of problems: how tests are taken apart, and which code an answer holds."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_grader.step_code import step_code
from srbench_grader.step_splitting import split
from srbench_kit.errors import InvalidInput
from srbench_kit.step_tests import hidden_part, step_tests

SHARED = Path(os.environ.get("SR_BENCH_CASES", "../shared/cases")).parent / "data" / "scicode"
HEADER = "def area(r):\n    '''The area of a circle.'''"


@pytest.mark.parametrize(
    ("test", "beside", "check"),
    [
        ("x = 2\nassert np.allclose(f(x), target)", "_srbench.keep(f(x))", "assert np.allclose(_value0, target)"),
        ("assert (f(1) > 0) == target", "_srbench.keep(f(1) > 0)", "assert _value0 == target"),
        (
            "p, q = f(1)\na, b = target\nassert a == p and np.allclose((q, 1), b)",
            "_srbench.keep((q, 1))",
            "assert a == _value0 and np.allclose(_value1, b)",
        ),
        ("assert f(2) == target.any()", "_srbench.keep(f(2))", "assert _value0 == target.any()"),
        ("assert np.allclose(f(1), target[0], atol=1e-3)", "_srbench.keep(f(1))", "target[0], atol=0.001)"),
        ("assert f(3) == None", "_srbench.keep(f(3))", "assert _value0 == None"),
        ("from scicode.compare.cmp import cmp_tuple_or_list\nassert cmp_tuple_or_list(f(1), target)", "f(1)", "_value0"),
    ],
)
def test_a_test_is_taken_apart_at_its_target(test: str, beside: str, check: str) -> None:
    halves = split(test, "a test")
    assert beside in halves.beside
    assert check in halves.check
    assert "target" not in halves.beside
    assert "scicode" not in halves.beside + halves.check
    assert "f(" not in halves.check


def test_functions_of_the_test_itself_go_where_assertions_run() -> None:
    halves = split("def alike(a, b):\n    return a.shape == b.shape\nassert alike(f(1), target)", "a test")
    assert "def alike" in halves.helpers
    assert halves.check == "assert alike(_value0, target)"


@pytest.mark.parametrize(
    "test", ["assert f(target) == 1", "for x in target: assert x == f(1)", "def g(: pass", "g = [f(t) for t in target]"]
)
def test_a_test_that_would_show_its_target_to_the_program_is_refused(test: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        split(test, "test 1 of step 7.1")
    assert caught.value.reason == "BAD_TESTS"
    assert "test 1 of step 7.1" in caught.value.message


@given(st.sampled_from(["np.allclose({}, target)", "{} == target", "cmp_tuple_or_list({}, target)"]), st.integers())
def test_no_half_beside_the_program_names_what_is_expected(shape: str, number: int) -> None:
    halves = split(f"n = {number}\nassert {shape.format('f(n)')}", "a test")
    names = {node.id for node in ast.walk(ast.parse(halves.beside)) if isinstance(node, ast.Name)}
    assert "target" not in names


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real problems are not beside this checkout")
def test_every_test_of_the_real_problems_can_be_taken_apart() -> None:
    count = 0
    for name in ("problems_test.jsonl", "problems_dev.jsonl"):
        for row in map(json.loads, (SHARED / name).read_text().splitlines()):
            for step in step_tests(hidden_part(row), row["problem_id"]).steps:
                for test in step.tests:
                    halves = split(test, step.number)
                    names = {node.id for node in ast.walk(ast.parse(halves.beside)) if isinstance(node, ast.Name)}
                    assert "target" not in names
                    count += 1
    assert count == 1082


GOOD = "def area(r):\n    return 3.14 * r * r"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{GOOD}\n```",
        f"First a draft:\n```python\ndef area(r):\n    return r\n```\nBetter:\n```python\n{GOOD}\n```",
        f"```Python\r\n{GOOD}\r\n```\r\nUse it so:\r\n```python\r\nprint(area(2))\r\n```",
        f"```py\n{GOOD}",
        f"```\n{GOOD}\n```",
        f"<think>```python\ndef area(r): return 0\n```</think>```python\n{GOOD}\n```",
        GOOD,
    ],
)
def test_the_code_of_a_step_is_found_in_all_spellings(text: str) -> None:
    names: dict[str, object] = {}
    exec(step_code(text, HEADER), names)
    assert names["area"](2) == 12.56  # type: ignore[operator]


def test_helpers_in_blocks_of_their_own_belong_to_the_step() -> None:
    text = "```python\ndef square(r):\n    return r * r\n```\nand\n```python\ndef area(r):\n    return 3 * square(r)\n```"
    names: dict[str, object] = {}
    exec(step_code(text, HEADER), names)
    assert names["area"](2) == 12  # type: ignore[operator]


@pytest.mark.parametrize("text", ["I cannot.", "", "```json\n{}\n```", "<think>```python\ndef area(r): pass\n```"])
def test_answers_without_code_hold_none(text: str) -> None:
    assert step_code(text, HEADER) == ""
