"""A whole stack (`sr-bench serve`) and a testbed for tests, used through the command line and HTTP; ended by their pids."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests import commands


def clean_environment() -> dict[str, str]:
    """The environment without anything that leads to another stack."""
    return {key: value for key, value in os.environ.items() if not key.startswith("SR_BENCH_")}


@dataclass
class Testbed:
    """The upstream: what it was sent is what was sent."""

    url: str
    targets: list[dict[str, Any]]

    __test__ = False

    def faults(self, *rules: dict[str, Any]) -> None:
        httpx.post(f"{self.url}/testbed/faults", json=list(rules), timeout=60, trust_env=False).raise_for_status()

    def sent(self) -> Counter[str]:
        """How often each prompt came, by its digest and model."""
        answer = httpx.get(f"{self.url}/testbed/ledger", params={"limit": 10_000}, timeout=60, trust_env=False)
        rows = [json.loads(line) for line in answer.text.splitlines()]
        return Counter(row["identity"] for row in rows if row["path"].endswith("/chat/completions"))

    def in_hand(self) -> int:
        """Requests without an end."""
        answer = httpx.get(f"{self.url}/testbed/ledger", params={"limit": 10_000}, timeout=60, trust_env=False)
        return sum(not json.loads(line)["ended"] for line in answer.text.splitlines())


@dataclass
class Stack:
    """A running stack."""

    store: Path
    url: str
    process: subprocess.Popen[str]

    def cli(self, *arguments: str, code: int = 0, stdin: str | None = None) -> Any:
        """What a command prints, as JSON when it is; the exit code must be `code`."""
        done = commands.run("srbench_cli", *arguments, "--url", self.url, env=clean_environment(), stdin=stdin or "")
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout) if code == 0 and done.stdout else done.stderr

    def cli_any(self, *arguments: str) -> Any:
        """What a command prints, whatever its exit code."""
        done = commands.run("srbench_cli", *arguments, "--url", self.url, env=clean_environment())
        return json.loads(done.stdout)

    def post(self, path: str, body: Any) -> httpx.Response:
        """A request to the API."""
        return httpx.post(f"{self.url}/api/sr-bench/v1{path}", json=body, timeout=60, trust_env=False)

    def get(self, path: str, **params: Any) -> Any:
        """What the API answers."""
        answer = httpx.get(f"{self.url}/api/sr-bench/v1{path}", params=params, timeout=60, trust_env=False)
        return answer.raise_for_status().json()

    def http(self, path: str) -> httpx.Response:
        """What the API answers, whatever it is."""
        return httpx.get(f"{self.url}/api/sr-bench/v1{path}", timeout=60, trust_env=False)

    def run(self, folder: Path, document: dict[str, Any], key: str) -> str:
        """The id of a run of `document` that has ended."""
        path = folder / f"manifest-{key}.json"
        path.write_text(json.dumps(document))
        run_id = str(self.cli("run", "--manifest", str(path), "--detach", "--idempotency-key", key)["id"])
        until(lambda: self.get(f"/runs/{run_id}")["status"] not in ("queued", "running"))
        return run_id

    def children(self, name: str) -> list[int]:
        """The pids of the stack's own processes of that package."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == self.process.pid and name.encode() in command:
                found.append(int(entry.name))
        return found

    def kill(self, name: str) -> None:
        """Ends a process of the stack without warning; the supervisor starts it again."""
        for pid in self.children(name):
            os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], bool], timeout_s: float = 240.0) -> None:
    """Returns once `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def mmlu_cases(count: int) -> list[dict[str, Any]]:
    """Small questions of split `dev`, whose right answer a testbed cannot know."""
    return [
        {
            "id": f"mmlu-pro/{number}",
            "benchmark": "mmlu-pro",
            "messages": [{"role": "user", "content": f"Question {number:03d}?\n\nA. one\nB. two\nC. three"}],
            "answer": "ABC"[number % 3],
            "metadata": {"stratum": "law", "split": "dev"},
        }
        for number in range(count)
    ]


def manifest(cases: Sequence[dict[str, Any]], targets: Sequence[dict[str, Any]], **limits: Any) -> dict[str, Any]:
    """A manifest with inline cases."""
    bounds = {"concurrency": 8, "max_cost_usd": 5, "idle_timeout_s": 170, "total_timeout_s": 170, "max_failed_cells": 1000}
    return {
        "version": "sr-bench-1.0",
        "name": "e2e",
        "cases": list(cases),
        "targets": list(targets),
        "limits": bounds | limits,
    }


@contextmanager
def running_testbed(folder: Path, pace: str = "zero") -> Iterator[Testbed]:
    """A running testbed with its built-in models."""
    targets = folder / "targets.json"
    command = [sys.executable, "-m", "srbench_testbed", "--write-targets", str(targets), "--pace", pace]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean_environment()
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening "), line
        yield Testbed(line.split()[1], json.loads(targets.read_text())["targets"])
    finally:
        process.kill()
        process.communicate()


@contextmanager
def running_stack(store: Path, **environment: str) -> Iterator[Stack]:
    """A running stack on `store`."""
    command = [sys.executable, "-m", "srbench_cli", "--store", str(store), "serve", "--port", "0", "--drain", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment() | {"SR_BENCH_LEASE_S": "20"} | environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening "), line
        yield Stack(store, line.split()[1], process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
