"""Runs beside `compare_tau3_graders.py`, in an interpreter that has tau2: conversations, and how upstream rewards them.

    python tau3_upstream.py ROOT DOMAINS VARIANTS < KNOWN     writes a line of JSON for each conversation

DOMAINS and VARIANTS are lists as JSON; an empty one means all of them. KNOWN are conversations to leave out, as a list of
`[case, variant]`.

ROOT is a checkout of tau2-bench (its `data/tau2`), tasks and data alike. Environments, tools and evaluator are upstream's.
Only the model that would judge assertions is replaced by one whose word is given in advance.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1])
os.environ |= {"TAU2_DATA_DIR": str(ROOT / "data"), "PYTHON_DOTENV_DISABLED": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

import loguru  # noqa: E402

loguru.logger.remove()

import tau2.utils.utils  # noqa: E402

# One published package has the path of its own folder built in.
tau2.utils.utils.DATA_DIR = tau2.utils.DATA_DIR = ROOT / "data"

from tau2.data_model import message as said  # noqa: E402
from tau2.data_model.simulation import SimulationRun  # noqa: E402
from tau2.data_model.tasks import Task  # noqa: E402
from tau2.evaluator import evaluator, evaluator_nl_assertions  # noqa: E402
from tau2.registry import registry  # noqa: E402

BLANK = {"id": "", "start_time": "", "end_time": "", "duration": 0.0}


class Judge:
    """Stands in for the model that judges assertions; its word is fixed, and it counts how often it is asked."""

    def __init__(self) -> None:
        self.text = ""
        self.asked = 0

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        self.asked += 1
        return said.AssistantMessage(role="assistant", content=self.text)


def tasks(domain: str) -> Iterator[dict[str, Any]]:
    """The tasks of a domain that belong to the benchmark."""
    folder = ROOT / "data" / "tau2" / "domains" / domain
    found = json.loads((folder / "tasks.json").read_text())
    if domain == "telecom":
        wanted = set(json.loads((folder / "split_tasks.json").read_text())["base"])
        found = [task for task in found if task["id"] in wanted]
    yield from found


def played(domain: str, task: Any, actions: list[Any], words: list[str]) -> list[Any]:
    """The messages of a conversation in which `actions` are taken, by whom they are for, and `words` are said."""
    environment = registry.get_env_constructor(domain)()
    start = task.initial_state
    data, before = (start.initialization_data, start.initialization_actions) if start else (None, None)
    history = list(start.message_history or []) if start else []
    environment.set_state(data, before, history)
    messages = [*history, said.UserMessage(role="user", content="Hello.")]
    for number, action in enumerate(actions):
        who = action.requestor
        call = said.ToolCall(id=f"call-{number}", name=action.name, arguments=action.arguments, requestor=who)
        kind = said.AssistantMessage if who == "assistant" else said.UserMessage
        messages += [kind(role=who, tool_calls=[call]), environment.get_response(call)]
    return [*messages, said.AssistantMessage(role="assistant", content=" ".join(["Done.", *words]))]


def variants(task: Any) -> Iterator[tuple[str, list[Any], list[str], bool, str]]:
    """Conversations to try: name, actions taken, words said, whether the judge is content, how it ended."""
    actions = list(task.evaluation_criteria.actions or [])
    words = [str(text) for text in task.evaluation_criteria.communicate_info or []]
    yield "as expected", actions, words, True, "user_stop"
    yield "nothing done", [], [], True, "user_stop"
    if len(actions) > 1:
        yield "last action left out", actions[:-1], words, True, "agent_stop"
    if words:
        yield "nothing said", actions, [], True, "user_stop"
    if task.evaluation_criteria.nl_assertions and "NL_ASSERTION" in basis_of(task):
        yield "judge not content", actions, words, False, "user_stop"
    yield "broken off", actions, words, True, "max_steps"


def basis_of(task: Any) -> set[str]:
    """What the reward of a task is made of."""
    return {str(getattr(part, "value", part)) for part in task.evaluation_criteria.reward_basis}


def rewarded(domain: str, task: Any, record: dict[str, Any], judge: Judge, content: bool) -> dict[str, Any]:
    """Upstream's word on one conversation."""
    named = task.evaluation_criteria.nl_assertions or []
    results = [{"expectedOutcome": text, "reasoning": "", "metExpectation": content} for text in named]
    judge.text, judge.asked = json.dumps({"results": results}), 0
    kinds = evaluator.EvaluationType
    kind = kinds.ALL_WITH_NL_ASSERTIONS if "NL_ASSERTION" in basis_of(task) else kinds.ALL
    run = SimulationRun.model_validate(BLANK | record)
    info = evaluator.evaluate_simulation(run, task, kind, solo_mode=False, domain=domain)
    return {"reward": info.reward, "judge_asked": judge.asked, "judge_text": judge.text}


def main() -> None:
    """Writes the conversations."""
    domains, wanted = map(json.loads, sys.argv[2:])
    known = {tuple(pair) for pair in json.load(sys.stdin)}
    judge = Judge()
    evaluator_nl_assertions.generate = judge
    for domain in domains or ("airline", "retail", "telecom"):
        for document in tasks(domain):
            task = Task.model_validate(document)
            for name, actions, words, content, ending in variants(task):
                if (wanted and name not in wanted) or (f"{domain}/{task.id}", name) in known:
                    continue
                messages = [message.model_dump(mode="json") for message in played(domain, task, actions, words)]
                record = {"task_id": task.id, "termination_reason": ending, "messages": messages}
                found = rewarded(domain, task, record, judge, content)
                row = {"domain": domain, "task": document, "variant": name, "record": record} | found
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
