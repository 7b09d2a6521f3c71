"""What a harness's request becomes, how its answer looks, and which results are taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_executor.harness import answers
from srbench_executor.harness.merging import CAPS, PASSED, merged, read_request
from srbench_executor.harness.result import SCHEMA, BadResult, checked, evidence, read_result
from srbench_kit.completion import read_answer
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

MESSAGES: Json = [{"role": "user", "content": "hi"}]
values = st.one_of(st.integers(1, 10_000), st.floats(0, 1), st.text(max_size=5))
some_fields = st.dictionaries(st.sampled_from(sorted(PASSED - set(CAPS))), values)


@given(some_fields, some_fields, st.lists(st.sampled_from(sorted(PASSED))))
def test_the_plan_wins_and_what_it_removes_stays_away(
    asked: dict[str, Json], params: dict[str, Json], removed: list[str]
) -> None:
    sent = merged(asked, params, dict.fromkeys(removed), 100)
    assert not set(sent) & (set(params) | set(removed))
    assert all(sent[name] == asked[name] for name in sent)
    assert set(asked) - set(sent) <= set(params) | set(removed)


@pytest.mark.parametrize(
    ("asked", "params", "sent"),
    [
        ({"max_tokens": 50}, {}, {"max_tokens": 50}),
        ({"max_tokens": 500}, {}, {"max_tokens": 100}),
        ({"max_completion_tokens": 500}, {"max_tokens": 80}, {}),
        ({"max_tokens": 5}, {"max_completion_tokens": 80}, {}),
    ],
)
def test_output_limits_are_one_parameter_and_never_exceed_the_plans(
    asked: dict[str, Json], params: dict[str, Json], sent: dict[str, Json]
) -> None:
    assert merged(asked, params, {}, 100) == sent


def test_what_clients_say_beside_the_question_is_dropped() -> None:
    found = read_request({"messages": MESSAGES, "model": "x", "user": "me", "n": 1, "stream": True, "temperature": 0.5})
    assert (found.model, found.fields, found.stream, found.usage) == ("x", {"temperature": 0.5}, True, False)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], ""),
        ({"messages": "hi"}, "messages"),
        ({"messages": MESSAGES, "n": 3}, "n"),
        ({"messages": MESSAGES, "logprobs": True}, "logprobs"),
        ({"messages": MESSAGES, "web_search_options": {}}, "web_search_options"),
        ({"messages": MESSAGES, "max_tokens": True}, "max_tokens"),
    ],
)
def test_requests_that_cannot_be_passed_on_name_their_field(body: Json, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(body)
    assert caught.value.facts["field"] == field


def test_both_forms_of_an_answer_say_what_the_endpoint_said() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "so", "reasoning_content": "hm", "tool_calls": [call]}
    body = {"model": "m", "choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"total_tokens": 3}}
    head = [("content-type", "application/json")]
    said = read_answer(200, head, json.dumps(body).encode(), clean_end=True)
    whole = answers.document(said, name="n", model="subject", created=1, quality_failure="")
    events = answers.events(said, name="n", model="subject", created=1, quality_failure="", usage=True)
    stream = [("content-type", "text/event-stream")]
    for again in (
        read_answer(200, head, whole, clean_end=True),
        read_answer(200, stream, b"".join(events), clean_end=True),
    ):
        assert (again.text, again.reasoning, again.tool_calls) == (said.text, said.reasoning, said.tool_calls)
        assert (again.finish_reason, again.usage, again.model) == ("tool_calls", {"total_tokens": 3}, "subject")


def test_an_answer_that_a_guard_ended_is_cut_by_length() -> None:
    said = read_answer(
        200, [("content-type", "application/json")], b'{"choices":[{"message":{"content":"a"}}]}', clean_end=True
    )
    whole = json.loads(answers.document(said, name="n", model="m", created=1, quality_failure="repetition"))
    assert whole["choices"][0]["finish_reason"] == "length"


def test_a_result_survives_its_way_to_the_grader() -> None:
    found = checked({"schema": SCHEMA, "status": "completed", "reward": 1, "versions": {"a": "1"}, "details": {"x": [1]}})
    again = checked(json.loads(evidence(found)))
    assert again == found


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"},
        {"status": "done"},
        {"reward": float("nan")},
        {"reward": True},
        {"reward": "1"},
        {"status": "failed", "reason": "x"},
        {"status": "failed", "reward": None, "reason": "Not Snake"},
        {"status": "failed", "reward": None, "reason": ""},
        {"trajectory": "/etc/passwd"},
        {"trajectory": "a/../../b"},
        {"trajectory": 3},
        {"versions": {"a": 1}},
        {"details": []},
        {"message": 3},
        {"extra": 1},
    ],
)
def test_anything_else_is_no_result(change: dict[str, Json]) -> None:
    with pytest.raises(BadResult):
        checked({"schema": SCHEMA, "status": "completed", "reward": 0} | change)


def test_links_and_huge_files_are_no_results(tmp_path: Path) -> None:
    real, link, huge = tmp_path / "real", tmp_path / "link", tmp_path / "huge"
    real.write_text(json.dumps({"schema": SCHEMA, "status": "completed", "reward": 0}))
    link.symlink_to(real)
    huge.write_text(" " * 300_000)
    assert read_result(real).reward == 0
    for path in (link, huge, tmp_path / "none", tmp_path):
        with pytest.raises(BadResult):
            read_result(path)
