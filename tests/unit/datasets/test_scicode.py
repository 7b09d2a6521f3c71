"""SciCode from a file in upstream's shape: one case a problem, its steps in turn, its tests apart."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from srbench_kit.errors import InvalidInput
from srbench_kit.step_tests import step_tests
from srbench_planner import catalog
from srbench_planner.benchmark_options import missing_for_live, step_count
from srbench_planner.dataset import Case, Dataset
from srbench_planner.datasets import DatasetStore
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.prepare import check_request, prepare
from srbench_planner.public_view import public_view

KNOWN = catalog.load([])
SPEC = KNOWN.get("scicode")


def made(store: Path, source: Path, profile: str = "quick") -> Dataset:
    asked: dict[str, Any] = {"benchmarks": ["scicode"], "profile": profile, "source_path": str(source), "revision": "r"}
    return prepare(KNOWN, store, check_request(KNOWN, **asked), lambda _progress: None)


def cases(store: Path, dataset: Dataset) -> list[Case]:
    return list(DatasetStore(store).cases(dataset))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def row(number: int, steps: int = 3) -> dict[str, Any]:
    return {
        "problem_name": f"Problem_{number}",
        "problem_id": str(number),
        "problem_description_main": "All of it.",
        "required_dependencies": "import numpy as np",
        "sub_steps": [
            {
                "step_number": f"{number}.{step}",
                "step_description_prompt": f"Compute part {step}.",
                "step_background": "what everybody knows",
                "function_header": f"def part_{step}(x):\n    '''A part.'''",
                "test_cases": [f"assert np.allclose(part_{step}(31337), target)"],
                "return_line": "    return y",
            }
            for step in range(1, steps + 1)
        ],
    }


def source(folder: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "problems_test.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows or [row(number) for number in range(1, 31)]))
    return path


def test_a_case_asks_all_steps_of_a_problem_in_turn_without_tests_or_background(store: Path, tmp_path: Path) -> None:
    dataset = made(store, source(tmp_path))
    found = cases(store, dataset)
    assert dataset.case_count == 3
    for case in found:
        number = str(case["id"]).partition("/")[2]
        messages: Any = case["messages"]
        assert [message["role"] for message in messages] == ["system", "user", "user", "user"]
        assert "import numpy as np" in messages[0]["content"]
        assert messages[2]["content"].startswith("Step 2 of 3.\n\nCompute part 2.")
        assert "def part_2(x):" in messages[2]["content"]
        assert "    return y" in messages[2]["content"]
        assert step_count(case) == 3
        text = json.dumps(case)
        assert "31337" not in text
        assert "everybody knows" not in text
        metadata: Any = case["metadata"]
        part = b"".join(HiddenParts(store).pieces(metadata["hidden_sha256"]))
        assert hashlib.sha256(part).hexdigest() == metadata["hidden_sha256"]
        tests = step_tests(part, "here")
        assert [step.number for step in tests.steps] == [f"{number}.{step}" for step in (1, 2, 3)]
        assert "31337" in tests.steps[0].tests[0]
        assert len(public_view(case).messages) == 4


def test_released_cases_get_their_steps_and_lose_their_tests(store: Path, tmp_path: Path) -> None:
    released = [
        {
            "id": f"scicode/{number}",
            "benchmark": "scicode",
            "messages": [{"role": "user", "content": ""}],
            "metadata": {"stratum": "all", "source_record": row(number)},
        }
        for number in range(1, 31)
    ]
    theirs = cases(store, made(store, source(tmp_path, released)))
    ours = cases(store, made(store, source(tmp_path)))
    assert [case["messages"] for case in theirs] == [case["messages"] for case in ours]
    hidden: Any = [(one["metadata"], other["metadata"]) for one, other in zip(theirs, ours, strict=True)]
    assert all(one["hidden_sha256"] == other["hidden_sha256"] and "source_record" not in one for one, other in hidden)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"sub_steps": []}, "sub_steps", "no list of at least one step"),
        ({"sub_steps": ["x"]}, "sub_steps", "sub_steps[0] is no object"),
        ({"sub_steps": [{"step_number": "1.1"}]}, "sub_steps", "no description"),
        ({"problem_name": None}, "problem_name", "problem_name is null"),
    ],
)
def test_a_row_that_is_no_problem_is_named(
    store: Path, tmp_path: Path, change: dict[str, Any], field: str, said: str
) -> None:
    rows = [row(number) for number in range(1, 31)]
    rows[4] |= change
    with pytest.raises(InvalidInput) as caught:
        made(store, source(tmp_path, rows))
    assert caught.value.reason == "BAD_ROW"
    assert said in caught.value.message
    assert caught.value.facts["field"] == field


def test_a_plan_whose_call_limit_is_below_the_steps_is_refused_before_anything_is_asked() -> None:
    case: Case = {"id": "scicode/1", "benchmark": "scicode", "messages": [{"role": "user", "content": "s"}] * 15}
    assert not list(missing_for_live({}, [SPEC], 15, [case]))
    (problem,) = missing_for_live({}, [SPEC], 14, [case])
    assert "limits.max_calls_per_case is 14; expected at least 15" in problem.message
    (empty,) = missing_for_live({}, [SPEC], 32, [case | {"messages": [{"role": "user", "content": ""}]}])
    assert empty.reason == "MISSING_STEPS"
