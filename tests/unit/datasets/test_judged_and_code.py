"""HLE, SimpleQA Verified and LiveCodeBench from files in upstream's shape."""

from __future__ import annotations

import base64
import csv
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from srbench_kit.errors import DataLoss, InvalidInput, NotFound
from srbench_planner import catalog
from srbench_planner.dataset import Case, Dataset
from srbench_planner.datasets import DatasetStore
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.prepare import check_request, prepare

KNOWN = catalog.load([])
CATEGORIES = ("Math", "Physics", "Chemistry", "Other")


def made(store: Path, benchmark: str, source: Path, profile: str = "quick", **more: Any) -> Dataset:
    asked = {"benchmarks": [benchmark], "profile": profile, "source_path": str(source), "revision": "r"} | more
    return prepare(KNOWN, store, check_request(KNOWN, **asked), lambda _progress: None)


def cases(store: Path, dataset: Dataset) -> list[Case]:
    return list(DatasetStore(store).cases(dataset))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def hle(path: Path, count: int = 60) -> Path:
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows: dict[str, list[Any]] = {
        "id": [f"{number:024x}" for number in range(count)],
        "question": [f"Question {number}?" for number in range(count)],
        "image": ["data:image/png;base64,AAAA" if number % 6 == 5 else "" for number in range(count)],
        "image_preview": [{"bytes": b"x", "path": None} if number % 6 == 5 else None for number in range(count)],
        "answer": [str(number) for number in range(count)],
        "answer_type": ["exactMatch" if number % 2 else "multipleChoice" for number in range(count)],
        "rationale": ["secret reasoning"] * count,
        "category": [CATEGORIES[number % 4] for number in range(count)],
        "canary": ["canary"] * count,
    }
    types = {"image_preview": picture}
    table = pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in rows.items()})
    pq.write_table(table, path)
    return path


def test_hle_asks_the_question_alone_and_leaves_out_questions_with_pictures(store: Path, tmp_path: Path) -> None:
    found = cases(store, made(store, "hle", hle(tmp_path / "hle.parquet")))
    assert len(found) == 40
    for case in found:
        number = int(str(case["id"]).removeprefix("hle/"), 16)
        assert number % 6 != 5
        assert case["messages"] == [{"role": "user", "content": f"Question {number}?"}]
        assert case["answer"] == str(number)
        metadata: Any = case["metadata"]
        assert metadata["stratum"] == CATEGORIES[number % 4]
        assert metadata["answer_type"] in ("exactMatch", "multipleChoice")
    assert "secret reasoning" not in json.dumps(found)


def test_hle_without_the_column_that_tells_of_pictures_is_refused(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "hle.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "q", "answer": "a", "category": "Math"}) + "\n")
    with pytest.raises(InvalidInput) as caught:
        made(store, "hle", path)
    assert (caught.value.reason, caught.value.facts["field"]) == ("MISSING_COLUMN", "image")


def simpleqa(path: Path, count: int = 120) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ("original_index", "problem", "answer", "topic", "answer_type", "multi_step", "requires_reasoning", "urls")
        writer.writerow(names)
        for number in range(count):
            topic = ("Art", "Sports", "History")[number % 3]
            writer.writerow([number * 7, f"Problem {number}?", f" {number}", topic, "Number", "False", "True", "a,b]"])
    return path


def test_simpleqa_is_named_by_row_position_as_it_was_released(store: Path, tmp_path: Path) -> None:
    found = cases(store, made(store, "simpleqa-verified", simpleqa(tmp_path / "s.csv")))
    assert len(found) == 100
    for case in found:
        number = int(str(case["id"]).removeprefix("simpleqa-verified/"))
        assert case["messages"] == [{"role": "user", "content": f"Problem {number}?"}]
        assert case["answer"] == str(number)
        metadata: Any = case["metadata"]
        assert metadata["original_index"] == str(number * 7)


def packed(tests: list[dict[str, str]]) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def problem(number: int, **changes: Any) -> dict[str, Any]:
    functional = number % 2 == 1
    kind = "functional" if functional else "stdin"
    row = {
        "question_title": "t",
        "question_content": f"Problem {number}: square a number.",
        "platform": "leetcode" if functional else "atcoder",
        "question_id": f"q{number}",
        "contest_id": "c",
        "contest_date": "2025-01-01T00:00:00",
        "starter_code": "class Solution:\n    def square(self, n):\n        " if functional else "",
        "difficulty": ("easy", "medium", "hard")[number % 3],
        "public_test_cases": json.dumps([{"input": "2", "output": "4", "testtype": kind}]),
        "private_test_cases": packed([{"input": f"98765{number}", "output": f"hidden-{number}", "testtype": kind}]),
        "metadata": json.dumps({"func_name": "square"} if functional else {}),
    }
    return row | changes


def shards(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    for place in range(6):
        name = "test.jsonl" if place == 0 else f"test{place + 1}.jsonl"
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows[place::6]))
    return folder


def test_six_shards_make_one_set_whose_hidden_tests_lie_apart(store: Path, tmp_path: Path) -> None:
    dataset = made(store, "livecodebench", shards(tmp_path / "lcb", [problem(number) for number in range(36)]))
    found = cases(store, dataset)
    assert len(found) == 30
    assert "hidden-" not in json.dumps(found)
    assert "98765" not in json.dumps(found)
    parts = HiddenParts(store)
    assert parts.missing(found) == []
    for case in found:
        metadata: Any = case["metadata"]
        number = int(str(case["id"]).removeprefix("livecodebench/q"))
        data = b"".join(parts.pieces(metadata["hidden_sha256"]))
        tests = json.loads(data)
        assert tests["tests"][1] == {"input": f"98765{number}", "output": f"hidden-{number}"}
        assert tests["function"] == ("square" if number % 2 else "")
        assert len(data) == metadata["hidden_byte_count"]
        messages: Any = case["messages"]
        assert ("def square" in messages[0]["content"]) is (number % 2 == 1)
        assert "answer" not in case
    # No more is stored than what was chosen.
    assert len(list((store / "hidden").rglob("*.zst"))) == 30


def test_a_folder_without_all_shards_names_those_that_are_missing(store: Path, tmp_path: Path) -> None:
    folder = shards(tmp_path / "lcb", [problem(number) for number in range(36)])
    (folder / "test3.jsonl").unlink()
    with pytest.raises(InvalidInput, match=r"has no test3\.jsonl"):
        made(store, "livecodebench", folder)


def test_a_problem_whose_tests_cannot_be_read_is_named(store: Path, tmp_path: Path) -> None:
    rows = [problem(number) for number in range(36)]
    rows[4] = problem(4, private_test_cases=base64.b64encode(zlib.compress(pickle.dumps(len))).decode())
    with pytest.raises(InvalidInput, match=r"question_id q4.*the pickle may only hold a string"):
        made(store, "livecodebench", shards(tmp_path / "lcb", rows))


def test_the_identity_of_a_set_covers_its_hidden_tests(store: Path, tmp_path: Path) -> None:
    rows = [problem(number) for number in range(36)]
    first = made(store, "livecodebench", shards(tmp_path / "a", rows))
    changed = [
        row
        | {
            "private_test_cases": packed(
                [{"input": "1", "output": "2", "testtype": json.loads(row["public_test_cases"])[0]["testtype"]}]
            )
        }
        for row in rows
    ]
    second = made(store, "livecodebench", shards(tmp_path / "b", changed))
    assert first.sha256 != second.sha256


def test_released_cases_lose_their_hidden_tests_to_the_same_place(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    lines = [
        {
            "id": f"livecodebench/q{number}",
            "benchmark": "livecodebench",
            "messages": [{"role": "user", "content": "q"}],
            "metadata": {"stratum": "easy", "source_record": problem(number)},
        }
        for number in range(30)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = cases(store, made(store, "livecodebench", path))
    assert "hidden-" not in json.dumps(found)
    assert HiddenParts(store).missing(found) == []


def test_missing_and_damaged_hidden_tests_are_told_apart(store: Path) -> None:
    parts = HiddenParts(store)
    name = parts.put(b"tests")
    assert parts.missing([{"id": "a", "metadata": {"hidden_sha256": "0" * 64}}, {"id": "b"}]) == ["a"]
    with pytest.raises(NotFound):
        list(parts.pieces("0" * 64))
    (blob,) = (store / "hidden").rglob("*.zst")
    blob.write_bytes(b"junk")
    with pytest.raises(DataLoss):
        list(parts.pieces(name))
