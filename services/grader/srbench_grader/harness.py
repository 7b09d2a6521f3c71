"""Judges the result that an agent benchmark's harness handed back: a reward, by the rule of its benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import orjson
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_grader.grading import PARSED, Case, Grader, Grading, Submission
from srbench_grader.workshop import Workshop

VERSION = "sr-bench-harness-v1"
SCHEMA = "sr-bench-harness-result-v1"


def full(reward: float) -> bool:
    """Right exactly when the reward is 1."""
    return reward == 1.0


# Terminal-Bench's verifiers may give parts of a point; only the whole point counts, as in the released protocol.
RULES: Mapping[str, Callable[[float], bool]] = {"terminal-bench-2.1": full, "tau3": full}


async def run(submission: Submission, case: Case, _workshop: Workshop) -> Grading:
    """Judges a harness's result. It is no model's text: a grader that asks the workshop never judges saved texts again.

    Raises: `InvalidInput` (`BAD_RESULT`): a failure to grade, never a wrong answer.
    """
    try:
        found: Json = orjson.loads(submission.text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or found.get("status") != "completed":
        raise InvalidInput("BAD_RESULT", f"the answer to {case.case_id} is no completed harness result")
    reward = found.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise InvalidInput("BAD_RESULT", f"the reward of {case.case_id} is {reward!r}; expected a number")
    details: dict[str, Json] = {name: found[name] for name in ("reason", "message", "versions") if found.get(name)}
    more = found.get("details")
    if isinstance(more, dict):
        details |= {name: value for name, value in more.items() if name not in details}
    correct = RULES.get(case.benchmark, full)(float(reward))
    return Grading(correct=correct, status=PARSED, extracted=reward, details=details | {"reward": reward})


GRADER = Grader(name="harness", version=VERSION, run=run)
