"""Files of rows: what is read exactly, and which sentence a bad row or file gets."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json
from srbench_planner import files
from srbench_planner.benchmark import BenchmarkSpec, Row
from srbench_planner.benchmarks import arc_agi_2, gpqa_diamond, hle, mmlu_pro
from srbench_planner.freezing import cases_of
from srbench_planner.readers import read_rows, read_task_files
from srbench_testbed.synthetic import gpqa_columns

GOOD = {"question_id": 1, "question": "2+1?", "options": ["1", "2", "3"], "answer": "C", "answer_index": 2}


def rows(path: Path) -> list[Row]:
    return list(read_rows(path, path.name))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def freeze(spec: BenchmarkSpec, path: Path) -> list[dict[str, object]]:
    found = cases_of(spec, read_rows(path, path.name), seed=20260918, revision="r1", name=path.name)
    return [dict(case) for case in found]


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_a_key_that_contradicts_itself_or_its_options_refuses_the_file_and_names_the_rows(tmp_path: Path) -> None:
    disagree = GOOD | {"question_id": 2, "answer": "B", "answer_index": 2}
    outside = GOOD | {"question_id": 3, "answer": "D", "answer_index": 3}
    single = {"question_id": 4, "question": "pick", "options": ["only"], "answer": "A", "answer_index": 0}
    blank = GOOD | {"question_id": 5, "options": ["1", "", "3", "N/A"], "answer": "A", "answer_index": 0}
    path = write(tmp_path / "mcq.jsonl", lines(GOOD, disagree, outside, single, blank))
    with pytest.raises(InvalidInput) as caught:
        freeze(mmlu_pro.SPEC, path)
    message = caught.value.message
    assert caught.value.reason == "BAD_ROW"
    assert message.startswith("mcq.jsonl: 3 of 5 rows are bad: ")
    assert "line 2 (question_id 2): answer B and answer_index 2 disagree" in message
    assert "line 3 (question_id 3): answer is 'D'; expected a letter from A to C" in message
    assert "line 4 (question_id 4): options has 1 entries; expected 2 to 10" in message
    assert "question_id 1" not in message
    assert "question_id 5" not in message


def test_blank_options_keep_their_letters(tmp_path: Path) -> None:
    blank = GOOD | {"question_id": 5, "options": ["1", "", "3", "N/A"], "answer": "A", "answer_index": 0}
    (first, second) = freeze(mmlu_pro.SPEC, write(tmp_path / "mcq.jsonl", lines(GOOD, blank)))
    assert (first["answer"], first["choices"]) == ("C", ["1", "2", "3"])
    assert second["choices"] == ["1", "", "3", "N/A"]


def test_lines_are_parted_by_lf_alone(tmp_path: Path) -> None:
    text = '{"id":"a","q":"line\u2028sep","ref":"x\x85y"}\n{"id":"b","q":"form\\ffeed \\u001c","ref":"z"}\n'
    assert [dict(row.values) for row in rows(write(tmp_path / "rows.jsonl", text))] == [
        {"id": "a", "q": "line\u2028sep", "ref": "x\x85y"},
        {"id": "b", "q": "form\ffeed \x1c", "ref": "z"},
    ]


def test_large_and_dictionary_columns_are_read_and_nulls_are_named(tmp_path: Path) -> None:
    table = pa.table(
        {
            "question_id": pa.array([9, 10, 11, 12], pa.int32()),
            "question": pa.array(["Two?", "Pick two", "Pick none", None], pa.large_string()),
            "options": pa.array([["1", "2"], ["a", "b", None], [], None], pa.large_list(pa.large_string())),
            "answer": pa.array(["B", "B", "A", "A"]).dictionary_encode(),
            "answer_index": pa.array([1, 1, 0, None], pa.int64()),
        }
    )
    parquet.write_table(table, tmp_path / "q.parquet")
    with pytest.raises(InvalidInput) as caught:
        freeze(mmlu_pro.SPEC, tmp_path / "q.parquet")
    message = caught.value.message
    assert "3 of 4 rows are bad" in message
    assert "row 2 (question_id 10): options[2] is null; expected text" in message
    assert "row 3 (question_id 11): options has 0 entries" in message
    assert "row 4 (question_id 12): question is null" in message
    parquet.write_table(table.slice(0, 1), tmp_path / "good.parquet")
    assert freeze(mmlu_pro.SPEC, tmp_path / "good.parquet")[0]["answer"] == "B"


def test_packed_tests_are_text_and_are_never_unpacked(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "unpickled"),)

    import pickle

    packed = base64.b64encode(pickle.dumps(Bomb())).decode()
    (row,) = rows(write(tmp_path / "code.jsonl", lines({"id": "bad", "private_test_cases": packed})))
    assert row.values["private_test_cases"] == packed
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"a":1,"a":2}', "it has the key 'a' twice"),
        ('{"a":NaN}', "not a JSON number"),
        ('{"a":', "it is not JSON"),
        ("[1]", "it is no JSON object"),
        ("[" * 5000 + "]" * 5000, "nested deeper"),
        (b'{"a":"\xff"}', "not UTF-8"),
    ],
)
def test_a_line_that_is_no_object_is_a_problem_of_that_row(tmp_path: Path, line: str | bytes, problem: str) -> None:
    content = (line if isinstance(line, bytes) else line.encode()) + b'\n\n{"b":1}\n'
    bad, good = rows(write(tmp_path / "x.jsonl", content))
    assert problem in bad.problem
    assert (good.values, good.where, good.position) == ({"b": 1}, "line 3", 1)


@pytest.mark.parametrize("document", ['[{"id":"a"}]', '{"cases":[{"id":"a"}]}', '{"a":{}}'])
def test_a_json_document_is_a_list_an_object_with_cases_or_an_object_by_id(tmp_path: Path, document: str) -> None:
    assert [row.values["id"] for row in rows(write(tmp_path / "x.json", document))] == ["a"]


def gpqa_row(**changes: str) -> dict[str, str]:
    filled = {
        "Question": "What is 2+2?",
        "Correct Answer": "4",
        "Incorrect Answer 1": "5",
        "Incorrect Answer 2": "6",
        "Incorrect Answer 3": "7",
        "Subdomain": "Physics (general)",
    }
    return {name: filled.get(name, "") for name in gpqa_columns()} | changes


def csv_text(*found: dict[str, str], end: str = "\n") -> str:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    header = end.join([",".join(map(cell, gpqa_columns())), ""])
    return header + "".join(",".join(cell(row[name]) for name in gpqa_columns()) + end for row in found)


def test_gpqa_identity_choice_order_and_key_are_the_published_ones(tmp_path: Path) -> None:
    (case,) = freeze(gpqa_diamond.SPEC, write(tmp_path / "gpqa_diamond.csv", "\ufeff" + csv_text(gpqa_row())))
    assert case["id"] == "gpqa-diamond/1d241cb92db797a8ea63df06"
    assert (case["choices"], case["answer"]) == (["5", "4", "7", "6"], "B")


def test_line_ends_inside_a_cell_are_lf_whatever_the_file_uses(tmp_path: Path) -> None:
    unix = write(tmp_path / "a.csv", csv_text(gpqa_row(Question="two\nlines")))
    dos = write(tmp_path / "b.csv", csv_text(gpqa_row(Question="two\r\nlines"), end="\r\n"))
    assert freeze(gpqa_diamond.SPEC, unix)[0]["id"] == freeze(gpqa_diamond.SPEC, dos)[0]["id"]


def test_the_identity_takes_the_raw_question_and_the_prompt_drops_outer_blanks(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", csv_text(gpqa_row(Question="What is 2+2?\n", **{"Correct Answer": " 4\n"})))
    (case,) = freeze(gpqa_diamond.SPEC, path)
    assert case["id"] == f"gpqa-diamond/{gpqa_diamond.question_id('What is 2+2?' + chr(10))}"
    assert case["choices"] is not None
    assert "What is 2+2?\n\nA. " in str(case["messages"][0]["content"])  # type: ignore[index]
    assert "4\n\n" not in str(case["messages"]).replace("\\n\\nWhich", "")


def test_two_equal_answers_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", csv_text(gpqa_row(**{"Incorrect Answer 2": "4 "})))
    with pytest.raises(InvalidInput, match="two of the four answers are the same"):
        freeze(gpqa_diamond.SPEC, path)


def test_the_wrong_file_is_said_to_be_the_wrong_file(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"does not look like GPQA Diamond: it has no Question, .*; it has a, b"
    ) as caught:
        freeze(gpqa_diamond.SPEC, write(tmp_path / "g.csv", "a,b\n1,2\n"))
    assert caught.value.reason == "MISSING_COLUMN"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.csv", b"", "BAD_CSV"),
        ("x.csv", b'a,b\n"1,2\n', "BAD_CSV"),
        ("x.csv", b"a,b\n\xff,2\n", "BAD_ENCODING"),
        ("x.parquet", b"PAR1 no PAR1", "BAD_PARQUET"),
        ("x.parquet", b"", "BAD_PARQUET"),
        ("x.json", b"3", "BAD_SOURCE"),
        ("x.json", b"{", "BAD_JSON"),
        ("x.pkl", b"", "BAD_SOURCE"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_as_a_whole(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        rows(write(tmp_path / name, content))
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["test.parquet", "test.csv", "test.jsonl", "test.json"])
def test_what_a_transfer_left_in_place_of_a_file_is_said(tmp_path: Path, name: str) -> None:
    pointer = write(tmp_path / name, "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n")
    with pytest.raises(InvalidInput, match="is a pointer of Git LFS") as caught:
        rows(pointer)
    assert caught.value.reason == "BAD_SOURCE"
    page = write(tmp_path / name, "\n<!DOCTYPE html>\n<html>Too Many Requests</html>")
    with pytest.raises(InvalidInput, match="is a web page"):
        rows(page)


def test_a_column_that_stands_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has the column 'answer' twice"):
        rows(write(tmp_path / "q.csv", "problem,answer,answer\nq,a,b\n"))


def test_an_empty_record_of_a_picture_is_no_picture() -> None:
    empty: Json = {"bytes": None, "path": None}
    images: list[Json] = [None, "", empty, {"bytes": "iVBO", "path": None}, "data:image/png;base64,iVBO"]
    kept = [hle.is_text(Row(position=0, where="row 1", values={"image": image})) for image in images]
    assert kept == [True, True, True, False, False]


def test_a_short_csv_row_is_named(tmp_path: Path) -> None:
    first, second = rows(write(tmp_path / "x.csv", "a,b\n1\n1,2\n"))
    assert first.problem == "it has 1 cells; expected 2"
    assert second.values == {"a": "1", "b": "2"}


def test_links_pipes_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(write(tmp_path / "real.jsonl", "{}\n"))
    with pytest.raises(InvalidInput, match="is a symbolic link"):
        rows(tmp_path / "link.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InvalidInput, match="not a regular file"):
        rows(tmp_path / "pipe.jsonl")
    with pytest.raises(NotFound):
        rows(tmp_path / "none.jsonl")


def test_rows_and_files_beyond_the_bounds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_ROWS", 2)
    path = write(tmp_path / "x.jsonl", "{}\n" * 3)
    with pytest.raises(InvalidInput, match="more than 2 rows"):
        rows(path)
    monkeypatch.setattr(files, "MAX_ROW_BYTES", 10)
    with pytest.raises(InvalidInput, match=r"line 1 of y\.jsonl is longer than 10 bytes"):
        rows(write(tmp_path / "y.jsonl", '{"a":"0123456789"}\n'))
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)
    with pytest.raises(InvalidInput, match="expected at most 2147483648"):
        rows(huge)


def test_a_repeated_id_is_named_with_both_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"line 2 \(question_id 1\): it has the same id as line 1, 'mmlu-pro/1'"):
        freeze(mmlu_pro.SPEC, write(tmp_path / "x.jsonl", lines(GOOD, GOOD)))


def test_the_one_published_row_with_a_wrong_index_keeps_its_letter_and_says_so(tmp_path: Path) -> None:
    known = {"question_id": 3983, "question": "q", "options": list("abcdefg"), "answer": "C", "answer_index": 1}
    (case,) = freeze(mmlu_pro.SPEC, write(tmp_path / "x.jsonl", lines(known | {"category": "chemistry"})))
    assert case["answer"] == "C"
    assert "disagree" in str(case["metadata"])


TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[4, 5], [6, 7]]}]}


def arc_case(task: object, tmp_path: Path) -> dict[str, object]:
    path = write(tmp_path / "0a.json", json.dumps(task))
    found = cases_of(arc_agi_2.SPEC, read_task_files([("0a.json", path)]), seed=1, revision="r", name="folder")
    return dict(found[0])


def test_a_grid_task_shows_pairs_and_inputs_and_keeps_outputs_as_the_answer(tmp_path: Path) -> None:
    case = arc_case(TASK, tmp_path)
    assert (case["id"], case["answer"]) == ("arc-agi-2/0a", [[[4, 5], [6, 7]]])
    content = str(case["messages"][0]["content"])  # type: ignore[index]
    assert json.loads(content.splitlines()[-1]) == {"train": TASK["train"], "test": [[[3]]]}
    assert "[4,5]" not in content


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ([[True]], "no integer from 0 to 9"),
        ([[1.0]], "no integer from 0 to 9"),
        ([[10]], "no integer from 0 to 9"),
        ([[1], [1, 2]], "not rectangular"),
        ([], "is no grid"),
        ([[]], "not rectangular"),
        ([[0] * 31], "not rectangular"),
        ([[0]] * 31, "is no grid"),
        ("1", "is no grid"),
    ],
)
def test_a_grid_that_is_none_is_refused_by_its_place(tmp_path: Path, grid: object, problem: str) -> None:
    task = {"train": TASK["train"], "test": [{"input": [[3]], "output": grid}]}
    with pytest.raises(InvalidInput, match=rf"0a\.json.*: test\[0\]\.output .*{problem}"):
        arc_case(task, tmp_path)


def test_a_finished_case_is_taken_over_as_it_is(tmp_path: Path) -> None:
    finished = {
        "id": "mmlu-pro/x",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": "own words"}],
        "answer": "B",
        "metadata": {"stratum": "law"},
    }
    (case,) = freeze(mmlu_pro.SPEC, write(tmp_path / "x.jsonl", lines(finished)))
    assert case == finished | {"metadata": {"stratum": "law", "source_revision": "r1"}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"id": "gpqa/x"}, "starts with mmlu-pro/"), ({"answer": None}, "answer is missing"), ({"messages": []}, "empty")],
)
def test_a_finished_case_with_a_fault_is_refused(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    finished = {"id": "mmlu-pro/x", "benchmark": "mmlu-pro", "messages": [{"role": "user", "content": "w"}], "answer": "B"}
    with pytest.raises(InvalidInput, match=problem):
        freeze(mmlu_pro.SPEC, write(tmp_path / "x.jsonl", lines(finished | change)))
