"""Right and wrong answers from what a case keeps hidden: programs from tests, conversations from actions. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

import orjson
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

# Kind, right answer, wrong answers.
Answers: TypeAlias = tuple[str, Json, tuple[Json, ...]]

_PROGRAM = """\
The known results are looked up.

```python
import sys

KNOWN = {known}
sys.stdout.write(KNOWN.get(sys.stdin.read().strip(), ""))
```
"""
_FUNCTION = """\
The known results are looked up.

```python
import json

KNOWN = {known}

class Solution:
    def {name}(self, *given):
        return json.loads(KNOWN[json.dumps(list(given))])
```
"""
_WRONG_PROGRAM = "```python\nprint('no idea')\n```"
_WRONG_FUNCTION = "```python\nclass Solution:\n    def {name}(self, *given):\n        return 'no idea'\n```"


def answers_of(benchmark: str, hidden: bytes) -> Answers | None:
    """The answers to a case of `benchmark` whose hidden part is `hidden`; None for other benchmarks.

    Raises: `InvalidInput` (`BAD_HIDDEN_PART`).
    """
    if benchmark not in ("livecodebench", "tau3"):
        return None
    try:
        document: Json = orjson.loads(hidden)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise InvalidInput("BAD_HIDDEN_PART", f"the hidden part of a case of {benchmark} is no JSON object")
    if benchmark == "tau3":
        return "dialogue", script_of_task(document), ("not up to it",)
    return _programs(document)


def _programs(tests: Mapping[str, Json]) -> Answers:
    """Programs that answer each tested input, by looking it up, and that answer none."""
    listed = [(str(test.get("input")), str(test.get("output"))) for test in map(_object, _list(tests.get("tests")))]
    name = str(tests.get("function") or "")
    if not name:
        known = {given.strip(): wanted for given, wanted in listed}
        return "text", _PROGRAM.format(known=repr(known)), (_WRONG_PROGRAM,)
    known = {json.dumps([json.loads(line) for line in given.split("\n")]): wanted for given, wanted in listed}
    return "text", _FUNCTION.format(known=repr(known), name=name), (_WRONG_FUNCTION.format(name=name),)


def script_of_task(task: Mapping[str, Json]) -> Json:
    """What the players of a τ³ task must know: what its user was told, the expected actions, what the agent has to say."""
    criteria = _object(task.get("evaluation_criteria"))
    scenario = _object(task.get("user_scenario"))
    instructions = scenario.get("instructions")
    told = list(instructions.values()) if isinstance(instructions, dict) else [instructions]
    steps: list[Json] = [
        {"user": action.get("requestor") == "user", "name": action.get("name"), "arguments": action.get("arguments") or {}}
        for action in map(_object, _list(criteria.get("actions")))
    ]
    return {
        "knows": [text for text in [scenario.get("persona"), *told] if isinstance(text, str) and text.strip()],
        "steps": steps,
        "says": _list(criteria.get("communicate_info")),
        "opens": str(_object(instructions).get("reason_for_call") or "I need help."),
    }


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
