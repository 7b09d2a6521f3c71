"""Conversations in harness results, judges' words on assertions, and what upstream's evaluator says."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from srbench_grader import tau3
from srbench_grader.grading import Case, Grading, JudgeReply, Submission
from srbench_grader.workshop import Workshop
from srbench_kit.errors import InvalidInput, NotFound, Unreachable

CASE = Case(case_id="tau3/airline/1", benchmark="tau3", metadata={"domain": "airline", "task_id": "1"})
VERDICT = {"expectedOutcome": "Be kind.", "reasoning": "It was.", "metExpectation": True}


def result(record: Any) -> str:
    packed = base64.b64encode(zlib.compress(json.dumps(record).encode())).decode()
    return json.dumps({"schema": "sr-bench-harness-result-v1", "status": "completed", "details": {"conversation": packed}})


def record(ending: str = "user_stop", task_id: str = "1") -> dict[str, Any]:
    return {"task_id": task_id, "termination_reason": ending, "messages": []}


@pytest.mark.parametrize("ending", ["max_steps", "agent_error", "too_many_errors", "user_error"])
async def test_a_conversation_that_did_not_end_in_order_is_wrong_without_an_evaluation(ending: str) -> None:
    async def never(_sha256: str) -> bytes:
        raise AssertionError("nothing hidden is needed")

    workshop = Workshop(never, 1)
    grading = await tau3.run(Submission(text=result(record(ending))), CASE, workshop)
    workshop.close()
    assert (grading.correct, grading.details["reward"], grading.details["termination_reason"]) == (False, 0.0, ending)


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{}", result([1]), result({"messages": 1}), json.dumps({"details": {"conversation": "!!"}})]
)
def test_what_holds_no_conversation_is_a_failure_to_grade(text: str) -> None:
    with pytest.raises(InvalidInput, match="holds no conversation"):
        tau3.conversation_in(text, CASE)


def test_a_conversation_about_another_task_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is about task '2'"):
        tau3.conversation_in(result(record(task_id="2")), CASE)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"results": [VERDICT]}),
        f"```json\n{json.dumps({'results': [VERDICT]})}\n```",
        f"I looked at it {{closely}}. {json.dumps({'results': [VERDICT]})}",
    ],
)
def test_a_judges_verdicts_are_read_in_a_fence_and_in_prose(text: str) -> None:
    assert json.loads(str(tau3.judge_text(JudgeReply(text=text), 1))) == {"results": [VERDICT]}


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "{}",
        '{"results": []}',
        json.dumps({"results": [VERDICT, VERDICT]}),
        json.dumps({"results": [VERDICT | {"metExpectation": "true"}]}),
        json.dumps({"results": [VERDICT]}) * 2,
    ],
)
def test_a_reply_without_a_verdict_on_each_assertion_fails_the_grade_and_is_kept(text: str) -> None:
    grading = tau3.judge_text(JudgeReply(text=text), 1)
    assert isinstance(grading, Grading)
    assert (grading.correct, grading.failure_reason, grading.details["judge_text"]) == (None, "JUDGE_MALFORMED", text)


def test_a_judge_that_failed_or_was_cut_gives_no_grade() -> None:
    failed = tau3.judge_text(JudgeReply(text="", failure_reason="http_error", failure_message="status 500"), 1)
    cut = tau3.judge_text(JudgeReply(text=json.dumps({"results": [VERDICT]}), finish_reason="length"), 1)
    assert isinstance(failed, Grading)
    assert isinstance(cut, Grading)
    assert (failed.failure_reason, cut.failure_reason) == ("JUDGE_FAILED", "JUDGE_MALFORMED")


def test_the_evaluators_request_for_a_judge_becomes_a_call() -> None:
    grading = tau3.graded({"judge": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}, {})
    assert grading.judge_call is not None
    assert grading.judge_call.messages == (("system", "s"), ("user", "u"))


@pytest.mark.parametrize(("reward", "correct"), [(1.0, True), (1, True), (0.0, False), (0.5, False)])
def test_right_is_a_reward_of_one(reward: float, correct: bool) -> None:
    grading = tau3.graded({"reward": reward, "reward_info": {"reward_basis": ["DB"]}, "versions": {"tau2": "1"}}, {})
    assert (grading.correct, grading.details["reward_basis"]) == (correct, ["DB"])


def test_a_grade_counts_checks_and_tells_nothing_of_what_they_check() -> None:
    info = {
        "reward_breakdown": {"DB": 1.0},
        "db_check": {"db_match": True, "db_reward": 1.0},
        "action_checks": [{"action": {"name": "SECRET"}, "action_match": True}, {"action": {}, "action_match": False}],
        "communicate_checks": [{"info": "SECRET", "met": True, "justification": "SECRET"}],
        "nl_assertions": [{"nl_assertion": "SECRET", "met": False}],
        "info": {"env": "SECRET"},
    }
    details = dict(tau3.graded({"reward": 0.0, "reward_info": info}, {}).details)
    assert details["action_checks"] == {"met": 1, "total": 2}
    assert details["communicate_checks"] == {"met": 1, "total": 1}
    assert details["nl_assertions"] == {"met": 0, "total": 1}
    assert details["db_match"] is True
    assert "SECRET" not in json.dumps(details)


@pytest.mark.parametrize("found", [{}, {"reward": None}, {"reward": True}, {"failure": {"message": "KeyError"}}])
def test_an_evaluator_that_broke_down_gives_no_grade(found: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match="broke down"):
        tau3.graded(found, {})


def test_a_missing_or_broken_interpreter_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    monkeypatch.setenv("SR_BENCH_TAU3_PYTHON", str(python))
    with pytest.raises(NotFound, match="there is no interpreter"):
        tau3.evaluate({})
    python.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    python.chmod(0o700)
    with pytest.raises(Unreachable, match="ended with 3: it is broken"):
        tau3.inspect()
