"""Conversations with tools: who acts next is found from what was said, and a right agent comes to the end."""

from __future__ import annotations

import json
from typing import Any

from srbench_testbed import judging
from srbench_testbed.answer_key import Entry, make_key, step_entries
from srbench_testbed.answers import Speaker
from srbench_testbed.config import Model
from srbench_testbed.dialogues import FINISHED, SORRY, STOP, Dialogues, turn
from srbench_testbed.hidden_answers import answers_of, script_of_task

TASK: dict[str, Any] = {
    "id": "7",
    "user_scenario": {
        "persona": None,
        "instructions": {"domain": "telecom", "reason_for_call": "No service.", "known_info": "You are Ada."},
    },
    "evaluation_criteria": {
        "actions": [
            {"requestor": "assistant", "name": "get_line", "arguments": {"line": 1}},
            {"requestor": "user", "name": "toggle_airplane_mode", "arguments": {}},
            {"requestor": "user", "name": "reboot", "arguments": {}},
            {"requestor": "assistant", "name": "refuel", "arguments": {"gb": 2}},
        ],
        "communicate_info": ["42 dollars"],
    },
}
CASE = {"id": "tau3/telecom/7", "benchmark": "tau3", "messages": [{"role": "user", "content": ""}]}
KEY = make_key([json.dumps(CASE | {"metadata": {"hidden_sha256": "x"}}).encode()], lambda _name: json.dumps(TASK).encode())
(ENTRY,) = KEY.values()
SYSTEM = "Guidelines.\n<scenario>\nInstructions:\n\tReason: No service.\n\tKnown: You are Ada. Domain: telecom\n</scenario>"


def conversation(right: bool) -> list[tuple[str, str]]:
    """Both sides play as upstream's orchestrator has them play; what each said or called, to the end."""
    told: list[tuple[str, str]] = []
    agent: list[dict[str, Any]] = [{"role": "system", "content": "policy"}]
    user: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi!"}]
    speaker, mine, theirs = "user", user, agent
    for _ in range(30):
        assert Dialogues([ENTRY]).entry_of(mine) is ENTRY
        said = turn(ENTRY, mine, right)
        told.append((speaker, said.tool or said.text))
        if said.tool:
            mine += [{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "ok"}]
            continue
        if STOP in said.text:
            return told
        mine.append({"role": "assistant", "content": said.text})
        theirs.append({"role": "user", "content": said.text})
        speaker, mine, theirs = ("agent", agent, user) if speaker == "user" else ("user", user, agent)
    raise AssertionError("the conversation did not end")


def test_a_right_agent_and_its_user_take_the_expected_actions_in_their_order() -> None:
    told = conversation(right=True)
    assert [what for _, what in told if what in ("get_line", "toggle_airplane_mode", "reboot", "refuel")] == [
        "get_line",
        "toggle_airplane_mode",
        "reboot",
        "refuel",
    ]
    assert [who for who, what in told if what in ("toggle_airplane_mode", "reboot")] == ["user", "user"]
    assert ("agent", f"{FINISHED} 42 dollars") in told
    assert told[-1] == ("user", STOP)


def test_an_agent_that_is_not_up_to_it_gives_up_at_once() -> None:
    assert conversation(right=False)[1:] == [("agent", SORRY), ("user", STOP)]


def test_a_task_that_leaving_alone_would_solve_is_failed_by_saying_nothing() -> None:
    harmless = {"evaluation_criteria": {"actions": [{"name": "get_user_details", "arguments": {}}]}}
    entry = Entry(prompt_sha256="x", kind="dialogue", right=script_of_task(harmless), wrong=("no",), case_id="tau3/a/1")
    said = turn(entry, [{"role": "system", "content": "policy"}, {"role": "user", "content": "[tau3/a/1] Help."}], False)
    assert not said.text.strip()
    assert not said.tool


def test_a_judge_of_assertions_says_yes_when_the_agent_came_to_the_end() -> None:
    for ending, met in ((f"assistant: {FINISHED}", True), ("assistant: sorry", False)):
        spoken = f"conversation:\nuser: [tau3/telecom/7] No service.\n{ending}\n"
        asked = spoken + "expectedOutcomes:\n ['Be kind.', \"It's done.\"]\n"
        messages = [{"role": "system", "content": "... expectedOutcome ..."}, {"role": "user", "content": asked}]
        assert Dialogues([ENTRY]).entry_of(messages) is ENTRY
        results = json.loads(turn(ENTRY, messages, True).text)["results"]
        assert [(item["expectedOutcome"], item["metExpectation"]) for item in results] == [
            ("Be kind.", met),
            ("It's done.", met),
        ]


def test_skill_decides_once_for_a_whole_conversation() -> None:
    speaker = Speaker(1)
    able, unable = Model(id="a", skill={"tau3": 1.0}), Model(id="b", skill={"tau3": 0.0})
    opened = [{"role": "system", "content": "policy"}, {"role": "user", "content": "[tau3/telecom/7] No service."}]
    said = speaker.turn(able, opened, ENTRY)
    assert (said.calls[0][0], json.loads(said.calls[0][1]), said.right) == ("get_line", {"line": 1}, True)
    assert speaker.turn(unable, opened, ENTRY).text == SORRY


def program_of(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    return names


def test_programs_made_from_hidden_tests_pass_them_and_the_wrong_ones_do_not() -> None:
    tests = {"function": "linear", "tests": [{"input": '3\n"a"', "output": "[9]"}]}
    made = answers_of("livecodebench", json.dumps(tests).encode())
    assert made is not None
    kind, right, wrong = made
    assert kind == "text"
    assert program_of(str(right))["Solution"]().linear(3, "a") == [9]
    assert program_of(str(wrong[0]))["Solution"]().linear(3, "a") != [9]


def test_each_step_of_a_problem_has_its_program() -> None:
    messages = [{"role": "system", "content": "rules"}, *({"role": "user", "content": f"step {n}"} for n in (1, 2))]
    case = {"id": "scicode/5", "benchmark": "scicode", "messages": messages}
    programs = {"5.1": "def a(x):\n    return x", "5.2": "def b(x):\n    return 2 * x"}
    first, second = step_entries(case, programs.get)
    assert "return 2 * x" in str(second.right)
    assert program_of(str(first.wrong[0]))["a"](1) is None
    assert first.prompt_sha256 != second.prompt_sha256


def test_a_judge_compares_the_last_line_with_the_reference() -> None:
    def asked(candidate: str, reference: str = "12.5") -> str:
        return json.dumps({"question": "q", "reference_answer": reference, "candidate_answer": candidate})

    verdicts = [
        json.loads(judging.verdict(asked(text)) or "{}").get("verdict")
        for text in ("So\nThe answer is 12.5.", "112.5", "12.55", "I do not know.", "12.5\nno: 13")
    ]
    assert verdicts == ["correct", "incorrect", "incorrect", "not_attempted", "incorrect"]
    assert judging.verdict("What is 2 + 2?") is None
    assert judging.verdict('{"question": "only"}') is None
