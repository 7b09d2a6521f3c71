"""The testbed as a judge of free answers: it compares, as far as texts can be compared. Pure."""

from __future__ import annotations

import re

import orjson
from srbench_kit.values import Json

_UNSURE = "I do not know."


def verdict(prompt: str) -> str | None:
    """The verdict on the answer that a judge's request in `prompt` holds; None when it is no such request."""
    if not prompt.startswith("{"):
        return None
    try:
        asked: Json = orjson.loads(prompt)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(asked, dict):
        return None
    reference, candidate = asked.get("reference_answer"), asked.get("candidate_answer")
    if not isinstance(reference, str) or not isinstance(candidate, str):
        return None
    word = "correct" if _states(candidate, reference) else "not_attempted" if _UNSURE in candidate else "incorrect"
    return orjson.dumps({"verdict": word, "explanation": "The two texts were compared."}).decode()


def _states(candidate: str, reference: str) -> bool:
    """Whether the last line of `candidate` holds `reference` as a word of its own."""
    last = candidate.strip().rpartition("\n")[2]
    return re.search(rf"(?<![\w.]){re.escape(reference.strip())}(?!\w)", last) is not None
