"""What the testbed's models say: deterministic, fair, and as often right as their skill."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from srbench_grader.choice import read_choice
from srbench_grader.grid import read_grids
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json
from srbench_testbed.answer_key import Entry, entry_of_case, make_key, prompt_sha256, prompt_text, read_key
from srbench_testbed.answers import Speaker, unit
from srbench_testbed.config import Model

PROMPT = "Which?\n\nA. one\nB. two\nC. three\nD. four\nE. five\n\nReply with the letter."


def choice_case(number: int, answer: str = "C") -> dict[str, Json]:
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": f"{number}: {PROMPT}"}],
        "answer": answer,
        "metadata": {"stratum": "math"},
    }


def entry(number: int) -> Entry:
    found = entry_of_case(choice_case(number))
    assert found is not None
    return found


def test_the_key_knows_all_options_of_a_prompt() -> None:
    found = entry(1)
    assert (found.kind, found.right, found.wrong) == ("choice", "C", ("A", "B", "D", "E"))
    assert (found.benchmark, found.stratum) == ("mmlu-pro", "math")


def test_a_grid_key_has_wrong_grids_of_the_same_kind() -> None:
    grids: Json = [[[1, 0], [0, 1]], [[9]]]
    found = entry_of_case({"id": "arc-agi-2/x", "messages": [{"role": "user", "content": "solve"}], "answer": grids})
    assert found is not None
    assert found.kind == "grid"
    assert found.right == grids
    assert len(found.wrong) == 2
    for wrong in found.wrong:
        assert wrong != grids
        assert read_grids([orjson.dumps(wrong).decode()], 2).status == "parsed"


def test_one_grid_is_spoilt_too() -> None:
    found = entry_of_case({"id": "x", "messages": [{"role": "user", "content": "s"}], "answer": [[1, 0], [0, 1]]})
    assert found is not None
    assert found.wrong == ([[2, 0], [0, 1]], [[1, 0], [0, 4]])


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (
            [{"role": "system", "content": "s"}, {"role": "user", "content": "one"}, {"role": "assistant", "content": "a"}],
            "one",
        ),
        ([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], "two"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
                }
            ],
            "ab",
        ),
        ([{"role": "system", "content": "only"}], "only"),
        ([{"role": "user"}], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_prompt_is_the_last_user_message(messages: Json, text: str) -> None:
    assert prompt_text(messages) == text


def test_a_written_key_reads_back_the_same(tmp_path: Path) -> None:
    entries = make_key(orjson.dumps(choice_case(number)) for number in range(5))
    path = tmp_path / "key.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each.document()) + b"\n" for each in entries.values()))
    assert read_key(path) == entries


def test_one_prompt_with_two_answers_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        make_key([orjson.dumps(choice_case(1, "A")), orjson.dumps(choice_case(1, "B"))])
    assert caught.value.reason == "PROMPT_TWICE"


def test_a_bad_key_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "key.jsonl").write_text('{"prompt_sha256": "a", "right": "B"}\n')
    with pytest.raises(InvalidInput, match="line 1 of the answer key needs right"):
        read_key(tmp_path / "key.jsonl")


MODELS = [
    Model(id="plain"),
    Model(id="bare", chunks=1),
    Model(id="some bare", bare_share=0.5),
    Model(id="thinks aloud", reasoning="think"),
    Model(id="thinks apart", reasoning="reasoning_content"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_choice_answer_is_fair_whatever_its_form(model: Model) -> None:
    speaker = Speaker(1)
    forms = set()
    for number in range(300):
        known = entry(number)
        said = speaker.answer(model, "", known.prompt_sha256, known)
        forms.add(said.text.replace("A", "?").replace("B", "?").replace("D", "?").replace("E", "?"))
        read = read_choice(said.text, 5)
        assert read.status == "parsed"
        assert (read.letter == "C") == said.right
        assert read.letter in "ABCDE"
    assert len(forms) > 3 or model.chunks == 1 or model.reasoning != "none"


def test_every_grid_answer_is_fair_whatever_its_form() -> None:
    grids: Json = [[[1, 0], [0, 1]], [[9]]]
    speaker, model = Speaker(1), Model(id="m", skill={"default": 0.5})
    seen = set()
    for number in range(200):
        known = entry_of_case({"id": str(number), "messages": [{"role": "user", "content": str(number)}], "answer": grids})
        assert known is not None
        said = speaker.answer(model, "", known.prompt_sha256, known)
        read = read_grids([said.text], 2)
        assert read.status == "parsed"
        assert (read.grids == grids) == said.right
        assert len(said.pieces) <= model.chunks
        seen.add(said.text)
    assert len(seen) > 6


@pytest.mark.parametrize("skill", [0.0, 0.3, 0.8, 1.0])
def test_a_model_is_right_as_often_as_its_skill_says(skill: float) -> None:
    model, speaker = Model(id="m", skill={"mmlu-pro/math": skill, "default": 0.5}), Speaker(5)
    right = sum(speaker.is_right(model, prompt_sha256(str(number)), entry(number)) for number in range(2000))
    assert abs(right / 2000 - skill) < 0.04


def test_right_and_wrong_depend_on_seed_model_and_case_alone() -> None:
    known = [entry(number) for number in range(200)]

    def verdicts(seed: int, name: str) -> list[bool]:
        return [Speaker(seed).is_right(Model(id=name), each.prompt_sha256, each) for each in known]

    assert verdicts(1, "m") == verdicts(1, "m")
    assert verdicts(1, "m") != verdicts(2, "m")
    assert verdicts(1, "m") != verdicts(1, "n")


def test_subjects_are_looked_up_from_the_special_to_the_general() -> None:
    model = Model(id="m", skill={"a/b": 0.1, "a": 0.2, "default": 0.3})
    assert [model.skill_in("a", "b"), model.skill_in("a", "c"), model.skill_in("x", "y")] == [0.1, 0.2, 0.3]


def test_an_unknown_prompt_gets_the_letter_of_its_checksum() -> None:
    said = Speaker(1).answer(Model(id="m"), "hello", prompt_sha256("hello"), None)
    assert said.right is None
    assert read_choice(said.text, 4).letter == "ABCD"[0x3610A686 % 4]


def test_the_units_are_spread_evenly() -> None:
    values = [unit(1, "x", str(number)) for number in range(4000)]
    assert all(0 <= value < 1 for value in values)
    assert abs(sum(values) / 4000 - 0.5) < 0.02
