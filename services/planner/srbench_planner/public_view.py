"""A case as the world may see it: no answers, no hidden tests, no words of an assistant or a tool. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from srbench_kit.values import Json

from srbench_planner import prompts
from srbench_planner.dataset import Case
from srbench_planner.freezing import stratum_of

SHOWN_ROLES = ("system", "user", "developer")
MAX_TEXT_BYTES = 2 * 1024**2
_LETTER = re.compile(r"[A-J]\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicView:
    """What a reader may see of a case.

    Attributes:
        question: text of the last user message.
        messages: (role, text) of the messages that may be shown.
        choices: options in the order of the letters.
        input: `train` pairs and `test` inputs of a grid task; `None` for others.
    """

    id: str
    benchmark: str
    category: str
    question: str
    messages: tuple[tuple[str, str], ...]
    choices: tuple[str, ...] = ()
    input: Json = None

    @property
    def size(self) -> int:
        """Roughly its bytes on the wire."""
        return sum(len(text.encode("utf-8", "replace")) for _, text in self.messages) * 2 + 200

    def holds(self, needle: str) -> bool:
        """Whether its texts or its id hold `needle`, which is lower-case."""
        return needle in self.id.lower() or any(needle in text.lower() for _, text in self.messages)


def public_view(case: Case) -> PublicView:
    """The public view of `case`. Texts beyond 2 MiB are cut."""
    messages = tuple(_shown(case.get("messages"))) if not is_harness_task(case) else (("user", scenario_text(case)),)
    question = next((text for role, text in reversed(messages) if role == "user"), "")
    metadata = case.get("metadata")
    is_grid = isinstance(metadata, dict) and metadata.get("output_format") == "grids"
    return PublicView(
        id=str(case["id"]),
        benchmark=str(case["benchmark"]),
        category=stratum_of(case),
        question=question,
        messages=messages,
        choices=choices_of(case, question),
        input=prompts.grids_in(question) if is_grid else None,
    )


def is_harness_task(case: Case) -> bool:
    """Whether a harness puts the case's task to the model, so that its message is empty."""
    metadata = case.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("task"), dict)


def scenario_text(case: Case) -> str:
    """What the simulated user of a task wants and knows, one paragraph a field; empty when the task tells nothing."""
    metadata = case.get("metadata")
    task = metadata.get("task") if isinstance(metadata, dict) else None
    scenario = task.get("user_scenario") if isinstance(task, dict) else None
    instructions = scenario.get("instructions") if isinstance(scenario, dict) else None
    if isinstance(instructions, str):
        return instructions
    fields = instructions if isinstance(instructions, dict) else {}
    told = [fields.get(name) for name in ("reason_for_call", "known_info", "unknown_info", "task_instructions")]
    return "\n\n".join(text.strip() for text in told if isinstance(text, str) and text.strip())


def choices_of(case: Case, question: str) -> tuple[str, ...]:
    """The options of a case: those it lists, else those its prompt shows when its answer is a letter."""
    listed = case.get("choices")
    if isinstance(listed, list):
        return tuple(item for item in listed if isinstance(item, str))
    answer = case.get("answer")
    return prompts.options_in(question) if isinstance(answer, str) and _LETTER.match(answer) else ()


def _shown(messages: Json) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and message.get("role") in SHOWN_ROLES:
            found.append((str(message["role"]), _text(message.get("content"))[:MAX_TEXT_BYTES]))
    return found


def _text(content: Json) -> str:
    """The text of a message's content: the text itself, or its text parts; pictures and the like are left out."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
