"""Conversations with tools, such as τ³'s: an agent and a simulated user who play a task by its expected actions.

Nobody keeps a state: each turn is found from the conversation so far. The user's first words name the case in brackets, so
that the agent knows it; who has to act next is told by how many actions each has taken. An agent that is not up to the task
gives up at once. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson
from srbench_kit.values import Json

from srbench_testbed.answer_key import Entry

# What stands between these lines of a simulated user's instructions is its task.
_SCENARIO = re.compile(r"<scenario>(.*)</scenario>", re.DOTALL)
_CASE = re.compile(r"^\[(tau3/[^\n]+)\] ")
_CASE_QUOTED = re.compile(r"user: \[(tau3/[^\n]+?)\] ")
_UP_TO = re.compile(r"your steps up to (\d+)\.")
_DONE = re.compile(r"I have done (\d+) steps\.")
# Tools that change nothing; a task of nothing else cannot be failed by leaving it alone.
_READING = re.compile(r"(get|find|list|search|calculate|think|check|transfer)_?")
FINISHED = "Everything is done."
SORRY = "I am sorry, I cannot help you with this."
STOP = "###STOP###"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is said: a text, or one tool call; `right` as in an answer."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, Json] | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    user: bool
    name: str
    arguments: Mapping[str, Json]


class Dialogues:
    """The conversations of an answer key."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.case_id: entry for entry in entries if entry.kind == "dialogue"}

    def entry_of(self, messages: Json) -> Entry | None:
        """The conversation that `messages` belong to; None for anything else.

        Two tasks can tell their user the same; the first by id is taken for both.
        """
        if not self._entries or not isinstance(messages, list):
            return None
        if _system(messages) and (scenario := _SCENARIO.search(_system(messages))):
            return self._told(scenario[1])
        case = _CASE if "expectedOutcome" not in _system(messages) else _CASE_QUOTED
        for message in messages:
            text = message.get("content") if isinstance(message, dict) and message.get("role") == "user" else None
            if isinstance(text, str) and (named := case.search(text)):
                return self._entries.get(named[1])
        return None

    def _told(self, scenario: str) -> Entry | None:
        fitting: list[tuple[int, str]] = []
        for case_id, entry in self._entries.items():
            knows = [str(text) for text in _list(_object(entry.right).get("knows"))]
            if all(_flat(text) in _flat(scenario) for text in knows):
                fitting.append((-sum(map(len, knows)), case_id))
        return self._entries[min(fitting)[1]] if fitting else None


def turn(entry: Entry, messages: Json, right: bool) -> Turn:
    """The next turn of whoever is asked: the user, the agent (`right` if it is up to the task), or a judge of both."""
    history = [message for message in _list(messages) if isinstance(message, dict)]
    if "expectedOutcome" in _system(history):
        return Turn(text=_verdict(history))
    script = _object(entry.right)
    steps = [
        _Step(bool(step.get("user")), str(step.get("name")), _object(step.get("arguments")))
        for step in map(_object, _list(script.get("steps")))
    ]
    if _SCENARIO.search(_system(history)):
        return _user(entry.case_id, str(script.get("opens")), [step for step in steps if step.user], history)
    return _agent(steps, [str(text) for text in _list(script.get("says"))], history, right)


def _user(case_id: str, opens: str, steps: list[_Step], history: list[dict[str, Json]]) -> Turn:
    said = _last_text(history, "user")
    if not any(message.get("role") == "assistant" for message in history):
        return Turn(text=f"[{case_id}] {opens}")
    if FINISHED in said or SORRY in said:
        return Turn(text=STOP)
    wanted = _UP_TO.search(said)
    done = _calls(history)
    if wanted and done < min(int(wanted[1]), len(steps)):
        return Turn(tool=steps[done].name, arguments=steps[done].arguments)
    return Turn(text=f"I have done {done} steps.")


def _agent(steps: list[_Step], says: list[str], history: list[dict[str, Json]], right: bool) -> Turn:
    if not right:
        harmless = not says and all(step.user or _READING.match(step.name) for step in steps)
        # Nothing at all is what fails a task that leaving it alone would solve.
        return Turn(text=" " if harmless else SORRY, right=False)
    taken, before = _calls(history), 0
    place = len(steps)
    for position, step in enumerate(steps):
        if not step.user:
            if before == taken:
                place = position
                break
            before += 1
    needed = sum(step.user for step in steps[:place])
    reported = [int(found[1]) for message in history if (found := _DONE.search(str(message.get("content") or "")))]
    if needed > max(reported, default=0):
        return Turn(text=f"Please carry out your steps up to {needed}.", right=True)
    if place < len(steps):
        return Turn(tool=steps[place].name, arguments=steps[place].arguments, right=True)
    return Turn(text=" ".join([FINISHED, *says]), right=True)


def _verdict(history: list[dict[str, Json]]) -> str:
    """A judge's word on each expected outcome: met when the agent came to the end."""
    asked = str(history[-1].get("content") or "")
    conversation, _, outcomes = asked.rpartition("expectedOutcomes:")
    met = f"assistant: {FINISHED}" in conversation
    results = [
        {"expectedOutcome": outcome, "reasoning": "The conversation shows it.", "metExpectation": met}
        for outcome in _quoted(outcomes)
    ]
    return orjson.dumps({"results": results}).decode()


def _quoted(text: str) -> list[str]:
    """The texts in a printed list of texts."""
    import ast

    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return []
    return [str(item) for item in found] if isinstance(found, list) else []


def _calls(history: list[dict[str, Json]]) -> int:
    """How many tool calls the one who is asked has made."""
    return sum(len(_list(message.get("tool_calls"))) for message in history if message.get("role") == "assistant")


def _last_text(history: list[dict[str, Json]], role: str) -> str:
    texts = [message.get("content") for message in history if message.get("role") == role]
    return next((text for text in reversed(texts) if isinstance(text, str)), "")


def _system(messages: list[Json] | list[dict[str, Json]]) -> str:
    first = messages[0] if messages else None
    content = first.get("content") if isinstance(first, dict) and first.get("role") == "system" else None
    return content if isinstance(content, str) else ""


def _flat(text: str) -> str:
    """`text` without its white space: upstream indents what it prints."""
    return "".join(text.split())


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
