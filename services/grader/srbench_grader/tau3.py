"""Judges τ³'s conversations by upstream's own evaluator, which runs in its own interpreter with the whole task.

The executor's side never learns what a task is judged by. Where upstream has a model judge what was promised in words, its
request goes to the plan's judge like any other, and what the judge says comes back in the next answer.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import orjson
from srbench_kit import tau3_worker, upstreams
from srbench_kit.errors import InvalidInput, NotFound, Unreachable
from srbench_kit.values import Json

from srbench_grader.final_text import final_text
from srbench_grader.grading import PARSED, UNPARSED, Case, Grader, Grading, JudgeCall, JudgeReply, Submission
from srbench_grader.judge import FAILED, MALFORMED, MAX_KEPT_CHARS
from srbench_grader.workshop import Workshop

VERSION = "sr-bench-tau3-v2"
VARIABLE, FOLDER = "TAU3", "tau3"
REMEDY = "sr-bench setup --benchmark tau3 --install, or set SR_BENCH_TAU3_PYTHON to an interpreter that has tau2"
# Endings after which upstream looks at what was achieved; after any other the reward is 0.
ORDERLY = ("user_stop", "agent_stop")
MAX_CONVERSATION_BYTES = 64 * 1024 * 1024
EVALUATION_S = 180.0
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ")
# What a grade tells of a reward: which parts there are and how many checks of each kind were met, never what they check.
_TOLD = ("reward_basis", "reward_breakdown")
_COUNTED = ("action_checks", "communicate_checks", "env_assertions", "nl_assertions")
_MET = ("met", "action_match")


async def run(submission: Submission, case: Case, workshop: Workshop) -> Grading:
    """Judges one conversation; right when upstream's reward is 1.

    Raises: `InvalidInput` (`BAD_RESULT`), `NotFound` (`NO_HIDDEN_TESTS`, `NO_INTERPRETER`), `Unreachable`
    (`EVALUATION_FAILED`): failures to grade, never wrong answers.
    """
    conversation = conversation_in(submission.text, case)
    ending = conversation.get("termination_reason")
    facts: dict[str, Json] = {"termination_reason": ending, "domain": case.metadata.get("domain"), "trials": 1}
    if ending not in ORDERLY:
        return Grading(correct=False, status=PARSED, extracted=0.0, details=facts | {"reward": 0.0})
    task = orjson.loads(await workshop.hidden(case))
    texts: list[str] = []
    for reply in submission.replies:
        read = judge_text(reply, _assertions(task))
        if isinstance(read, Grading):
            return read
        texts.append(read)
    request: dict[str, Json] = {
        "domain": case.metadata.get("domain"),
        "task": task,
        "conversation": conversation,
        "replies": cast("list[Json]", texts),
        "root": str(upstreams.root(VARIABLE, FOLDER)),
    }
    return graded(await workshop.work(lambda: evaluate(request)), facts)


def graded(found: Mapping[str, Json], facts: dict[str, Json]) -> Grading:
    """What upstream's evaluator said, or the call to the judge that it needs first."""
    if isinstance(asked := found.get("judge"), list):
        messages = tuple((str(message["role"]), str(message["content"])) for message in asked if isinstance(message, dict))
        return Grading(correct=None, status=UNPARSED, judge_call=JudgeCall(messages=messages))
    failure, reward = found.get("failure"), found.get("reward")
    if isinstance(failure, dict) or isinstance(reward, bool) or not isinstance(reward, int | float):
        said = str(failure.get("message")) if isinstance(failure, dict) else f"its reward is {reward!r}"
        raise Unreachable("EVALUATION_FAILED", f"upstream's evaluator broke down: {said}")
    info = found.get("reward_info")
    details = facts | {"reward": reward, "evaluator": found.get("versions")}
    details |= _told(info) if isinstance(info, dict) else {}
    return Grading(correct=reward == 1.0, status=PARSED, extracted=reward, details=details)


def _told(info: Mapping[str, Json]) -> dict[str, Json]:
    told: dict[str, Json] = {name: info[name] for name in _TOLD if info.get(name) is not None}
    db = info.get("db_check")
    if isinstance(db, dict):
        told["db_match"] = db.get("db_match")
    for name in _COUNTED:
        listed = info.get(name)
        checks = [check for check in listed if isinstance(check, dict)] if isinstance(listed, list) else []
        if checks:
            met = sum(any(check.get(word) is True for word in _MET) for check in checks)
            told[name] = {"met": met, "total": len(checks)}
    return told


def conversation_in(text: str, case: Case) -> dict[str, Json]:
    """The record of the conversation in a harness's result. Raises: `InvalidInput` (`BAD_RESULT`)."""
    try:
        result: Json = orjson.loads(text)
        details = result.get("details") if isinstance(result, dict) else None
        packed = details.get("conversation") if isinstance(details, dict) else None
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(str(packed), validate=True), MAX_CONVERSATION_BYTES)
        record: Json = orjson.loads(data)
    except (ValueError, binascii.Error, zlib.error):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise InvalidInput("BAD_RESULT", f"the answer to {case.case_id} holds no conversation")
    if record.get("task_id") != case.metadata.get("task_id"):
        raise InvalidInput("BAD_RESULT", f"the conversation for {case.case_id} is about task {record.get('task_id')!r}")
    return record


def inspect() -> str:
    """What upstream there is, in words; blocking.

    Raises: `NotFound` (`NO_INTERPRETER`), `Unreachable` (`EVALUATION_FAILED`) when it does not run or lacks files.
    """
    found = evaluate({"inspect": True, "root": str(upstreams.root(VARIABLE, FOLDER))})
    missing, versions = found.get("missing"), found.get("versions")
    if isinstance(missing, list) and missing:
        raise Unreachable("EVALUATION_FAILED", f"upstream's data lack {', '.join(map(str, missing))}")
    named = versions if isinstance(versions, dict) else {}
    return f"{', '.join(f'{name} {version}' for name, version in named.items())}, data in {found.get('data')}"


def evaluate(request: dict[str, Json]) -> dict[str, Json]:
    """What upstream's evaluator says in its own interpreter; blocking.

    Raises: `NotFound` (`NO_INTERPRETER`), `Unreachable` (`EVALUATION_FAILED`).
    """
    interpreter = upstreams.python(VARIABLE, FOLDER)
    if not os.access(interpreter, os.X_OK):
        raise NotFound("NO_INTERPRETER", f"there is no interpreter {interpreter} to evaluate τ³ with")
    with tempfile.TemporaryDirectory(prefix="tau3-") as folder:
        asked, told = Path(folder, "request.json"), Path(folder, "result.json")
        asked.write_bytes(orjson.dumps(request))
        # No keys, no tokens: nothing passes but what a program needs to run.
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ} | {
            "HOME": folder,
            "TMPDIR": folder,
        }
        command = [str(interpreter), str(Path(tau3_worker.__file__)), str(asked), str(told)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=EVALUATION_S, cwd=folder, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unreachable("EVALUATION_FAILED", f"upstream's evaluator did not come to an end: {error}") from None
        if done.returncode or not told.is_file():
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1][-300:]
            raise Unreachable("EVALUATION_FAILED", f"upstream's evaluator ended with {done.returncode}: {last}")
        return cast("dict[str, Json]", orjson.loads(told.read_bytes()))


def judge_text(reply: JudgeReply, assertions: int) -> str | Grading:
    """The judge's verdicts as upstream reads them, or the failed grade of a reply without a verdict on each assertion.

    Upstream takes any JSON without a word on an assertion for a yes.
    """
    kept: dict[str, Json] = {"judge_text": reply.text[:MAX_KEPT_CHARS]}
    if reply.failure_reason:
        said = f"the judge gave no verdict: {reply.failure_message or reply.failure_reason}"
        return Grading(correct=None, status=UNPARSED, details=kept, failure_reason=FAILED, failure_message=said)
    verdicts = _verdicts(final_text(reply.text)) if reply.finish_reason != "length" else None
    if verdicts is None or len(verdicts) != assertions:
        said = f"the judge's reply has no verdict on each of {assertions} assertions"
        return Grading(correct=None, status=UNPARSED, details=kept, failure_reason=MALFORMED, failure_message=said)
    return json.dumps({"results": verdicts})


def _verdicts(text: str) -> list[Json] | None:
    """The results in the only JSON object of that kind in `text`, fenced or not; None when they are not all verdicts."""
    found: list[list[Json]] = []
    decoder, place = json.JSONDecoder(strict=False), text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            value, end = None, place + 1
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            found.append(value["results"])
        place = text.find("{", end)
    if len(found) != 1 or not all(_is_verdict(item) for item in found[0]):
        return None
    blank: dict[str, Json] = {"reasoning": ""}
    return [blank | item for item in found[0] if isinstance(item, dict)]


def _is_verdict(item: Json) -> bool:
    return isinstance(item, dict) and isinstance(item.get("metExpectation"), bool) and "expectedOutcome" in item


def _assertions(task: Mapping[str, Json]) -> int:
    criteria = task.get("evaluation_criteria")
    listed = criteria.get("nl_assertions") if isinstance(criteria, dict) else None
    return len(listed) if isinstance(listed, list) else 0


GRADER = Grader(name="tau3", version=VERSION, run=run)
