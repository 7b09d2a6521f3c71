"""Scripted harnesses for tests: real processes that ask the loopback endpoint, and how they are started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srbench_executor.harness.runners import Runner
from srbench_kit.values import to_value

from tests.contract.executor.streams import USAGE, event

# What every scripted harness begins with: its input, a way to ask, a way to end.
PRELUDE = """
import json, os, subprocess, sys, time, urllib.request, urllib.error
given = json.load(open(sys.argv[1]))
def ask(role="subject", token=None, path="chat/completions", **fields):
    seat = given["endpoints"][role]
    body = {"model": role, "messages": [{"role": "user", "content": "hi"}], **fields}
    head = {"authorization": f"Bearer {token or seat['api_key']}", "content-type": "application/json"}
    data = None if path == "models" else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{seat['base_url']}/{path}", data, head), timeout=60) as answer:
            raw = answer.read()
            return answer.status, raw if fields.get("stream") else json.loads(raw)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()) | {"retry": error.headers["x-should-retry"]}
def end(**fields):
    whole = {"schema": "sr-bench-harness-result-v1", "status": "completed", "reward": 1, "reason": "", **fields}
    open(sys.argv[2], "w").write(json.dumps(whole))
def keep(name, value):
    open(os.path.join(given["artifacts"], name), "w").write(json.dumps(value))
"""


def stream(delta: dict[str, Any], finish: str = "stop") -> list[tuple[float, bytes]]:
    chunk = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE}
    return [(0, event(chunk)), (0, event(last)), (0, b"data: [DONE]\n\n")]


class Harnesses:
    """Starts an executor with one scripted runner."""

    def __init__(self, rig: Any, folder: Path) -> None:
        self.rig, self.folder = rig, folder

    async def run(self, body: str, count: int = 1, **changes: Any) -> Any:
        """Runs the script at cell 0 and gives the outcome."""
        await self.start(body, **changes)
        await self.rig.finished(count)
        return self.rig.ledger.outcomes[-1]

    async def start(self, body: str, **changes: Any) -> None:
        script = self.folder / "script.py"
        script.write_text(PRELUDE + body)
        self.rig.runners["scripted"] = Runner(
            name="scripted", script=script, variable="SCRIPTED", folder="scripted", own_python=True, **changes
        )
        self.rig.queue.add(self.rig.lease(driver="harness:scripted", grader="harness", task=to_value({"name": "one"})))
        await self.rig.start_executor()

    def kept(self, name: str) -> Any:
        return json.loads((self.rig.folder / "artifacts/run-1/0-1" / name).read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
