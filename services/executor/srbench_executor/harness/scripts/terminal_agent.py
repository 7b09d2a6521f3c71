"""The agent of Terminal-Bench cells, for Harbor: one tool that runs commands in the task's container.

Runs in the harness's interpreter: Harbor and the standard library, nothing of sr-bench.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

NAME, VERSION = "sr-bench-terminal", "2.0"
STDOUT_CHARS, STDERR_CHARS = 24_000, 8_000
# A command says itself how long it may take; builds and trainings are part of the tasks.
COMMAND_S = 60
KEPT_BYTES = 4_000_000
LEAST_LEFT_S = 2.0
SYSTEM = (
    "You work alone on a task inside a Linux container. Use the tool `terminal` to run commands there; each call is a new"
    " shell, so state a directory when it matters and start long-lived programs in the background. Nobody answers"
    " questions. When the task is done, and only then, reply with one short sentence and no tool call."
)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "terminal",
        "description": "Runs a command with bash in the container and returns its output and exit code.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command."},
                "timeout_s": {"type": "integer", "description": f"Most seconds it may take; {COMMAND_S} if absent."},
            },
            "required": ["command"],
        },
    },
}
# The executor's endpoint says with these that no further call may leave; what was done until then is judged all the same.
CAPS = frozenset({"call_limit", "deadline_exceeded"})


class ModelFailed(Exception):
    """The model could not be asked; `code` is the endpoint's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TerminalAgent(BaseAgent):
    """Asks the endpoint for the next command and runs it, turn by turn. `ending` says why it stopped."""

    def __init__(self, *args: Any, trajectory: str, deadline: float, max_steps: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trajectory = Path(trajectory)
        self._deadline = deadline
        self._max_steps = max_steps
        self.ending = ""
        self.steps = 0
        LAST.append(self)

    @staticmethod
    def name() -> str:
        return NAME

    def version(self) -> str:
        return VERSION

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing has to be installed in the container."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        talk: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": instruction}]
        self._write(*talk)
        while not self.ending:
            if self.steps == self._max_steps:
                self.ending = "max_steps"
                return
            message = await self._next(talk)
            if message is None:
                return
            self.steps += 1
            said = {name: message[name] for name in ("role", "content", "tool_calls") if message.get(name) is not None}
            talk.append({"content": "", **said})
            self._write(talk[-1])
            for call in said.get("tool_calls") or ():
                reply = await self._use(environment, call)
                talk.append({"role": "tool", "tool_call_id": call.get("id"), "content": json.dumps(reply)})
                self._write(talk[-1])

    async def _next(self, talk: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The model's next message; `None`, with `ending` set, when there is none."""
        left_s = self._deadline - time.time()
        if left_s < LEAST_LEFT_S:
            self.ending = "agent_timeout"
            return None
        body = {"model": ENDPOINT["model"], "messages": talk, "tools": [TOOL], "parallel_tool_calls": False}
        try:
            answer = await asyncio.to_thread(ask, ENDPOINT, body, left_s)
        except TimeoutError:
            self.ending = "agent_timeout"
            return None
        except ModelFailed as error:
            if error.code not in CAPS:
                raise
            self.ending = error.code
            return None
        choice = answer["choices"][0]
        message: dict[str, Any] = choice["message"]
        if choice.get("finish_reason") == "length":
            self.ending = "truncated"
        elif not message.get("tool_calls"):
            self.ending = "answered"
        if self.ending:
            # Calls in a message that was cut are not run.
            message = {name: value for name, value in message.items() if name != "tool_calls"}
        return message

    async def _use(self, environment: BaseEnvironment, call: dict[str, Any]) -> dict[str, Any]:
        """What a tool call brought. A malformed call and a command that takes too long are told to the model."""
        function = call.get("function") or {}
        try:
            given = json.loads(function.get("arguments") or "")
        except ValueError as error:
            return {"error": f"the arguments are no JSON: {error}"}
        command = given.get("command") if isinstance(given, dict) else None
        if function.get("name") != "terminal" or not isinstance(command, str):
            return {"error": "expected a call of `terminal` with a text `command`"}
        wanted = given.get("timeout_s")
        limit = wanted if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0 else COMMAND_S
        limit = int(max(1, min(limit, self._deadline - time.time())))
        try:
            # The container ends the command; the longer limit here is for a container that does not.
            done = await environment.exec(bounded(command, limit), timeout_sec=limit + 15)
        except RuntimeError as error:
            return {"error": f"the command did not end within {limit} s: {str(error)[:200]}"}
        reply = {
            "stdout": (done.stdout or "")[-STDOUT_CHARS:],
            "stderr": (done.stderr or "")[-STDERR_CHARS:],
            "exit_code": done.return_code,
        }
        if done.return_code == 124:
            reply["error"] = f"the command was ended after {limit} s"
        return reply

    def _write(self, *messages: dict[str, Any]) -> None:
        with self._trajectory.open("a") as file:
            for message in messages:
                file.write(json.dumps({"time": time.time(), **message}) + "\n")


# Harbor makes the agent; the runner asks the last one how it ended.
LAST: list[TerminalAgent] = []
# Whom the agent asks. Not among its arguments: Harbor writes those down, and a token is nothing to keep.
ENDPOINT: dict[str, str] = {}


def bounded(command: str, limit: int) -> str:
    """`command` with a limit on its time and on the output that is kept; what it leaves in the background lives on."""
    keep = f"(head -c {KEPT_BYTES} > $d/%s; cat > /dev/null)"
    return (
        f"d=$(mktemp -d); timeout -k 5 {limit} bash -c {shlex.quote(command)} < /dev/null"
        f" > >{keep % 'out'} 2> >{keep % 'err'}; code=$?; sleep 0.1;"
        f" tail -c {4 * STDOUT_CHARS} $d/out; tail -c {4 * STDERR_CHARS} $d/err >&2; rm -rf $d; exit $code"
    )


def ask(endpoint: dict[str, str], body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """One call to the endpoint. Raises: `ModelFailed`, `TimeoutError`."""
    request = urllib.request.Request(
        f"{endpoint['base_url']}/chat/completions",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {endpoint['api_key']}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        told = json.loads(error.read() or b"{}").get("error") or {}
        raise ModelFailed(str(told.get("code")), str(told.get("message"))) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise TimeoutError from None
        raise ModelFailed("endpoint_unreachable", str(error.reason)) from None
