"""The real stack for browser tests: started, filled, asked directly, and stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srbench_cli import lifecycle
from srbench_testbed.config import read_config
from srbench_testbed.targets import targets_document

from tests import commands

PREFIX = "/api/sr-bench/v1"
ENDED = ("completed", "failed", "cancelled", "interrupted")
SEED = 20260918
PRICE = {"input": 1, "cached_input": 0.1, "cache_write": 1, "output": 2}
MODELS: list[dict[str, Any]] = [
    {"id": "compact", "skill": {"default": 0.4}, "chunks": 4, "cached_share": 0.25, "price": PRICE},
    {"id": "frontier", "skill": {"default": 0.9}, "chunks": 4, "ttft_ms": 5, "cached_share": 0.25, "price": PRICE},
    {"id": "slow", "skill": {"default": 0.5}, "chunks": 20, "ttft_ms": 500, "itl_ms": 40, "price": PRICE},
    {"id": "broken", "skill": {"default": 0.5}, "price": PRICE},
    {"id": "unpriced", "skill": {"default": 0.5}, "usage_when": "never"},
]
ROUTERS: list[dict[str, Any]] = [
    {
        "id": "mixture",
        "routes": [
            {"decision": "doubtful", "calls": ["compact", "frontier"], "share": 0.3},
            {"decision": "everyday", "model": "compact"},
        ],
    },
    {
        "id": "plain",
        "routes": [
            {"decision": "hard", "model": "frontier", "share": 0.9},
            {"decision": "everyday", "model": "compact"},
        ],
    },
]
TESTBED = {"seed": SEED, "models": MODELS, "routers": ROUTERS}


@dataclass
class Api:
    """The HTTP API as a caller beside the browser sees it."""

    url: str
    token: str = ""

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of an answer. Raises: `urllib.error.HTTPError`."""
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self.token}"} if self.token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + PREFIX + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def start(self, manifest: dict[str, Any], key: str | None = None) -> str:
        """Starts a run and gives its id."""
        body = {"manifest": manifest} | ({"idempotency_key": key} if key else {})
        return str(self.ask("POST", "/runs", body)["id"])

    def finish(self, run_id: str, timeout_s: float = 120) -> dict[str, Any]:
        """The run once it has ended."""
        deadline = time.monotonic() + timeout_s
        while True:
            run: dict[str, Any] = self.get(f"/runs/{run_id}")
            if run["status"] in ENDED:
                return run
            if time.monotonic() > deadline:
                raise TimeoutError(f"{run_id} is still {run['status']}: {run['progress']}")
            time.sleep(0.1)

    def run(self, manifest: dict[str, Any]) -> str:
        """Runs `manifest` to its end and gives the run's id."""
        run_id = self.start(manifest)
        self.finish(run_id)
        return run_id

    def run_count(self) -> int:
        """How many runs there are."""
        return int(self.get("/runs?limit=1")["total"])


@dataclass
class Stack:
    """A running stack with its testbed.

    Attributes:
        targets: what is registered, by id.
        dataset: a prepared dataset of ARC-AGI-2 and MMLU-Pro questions.
    """

    api: Api
    store: Path
    upstream: str
    targets: dict[str, dict[str, Any]]
    dataset: dict[str, Any]

    @property
    def url(self) -> str:
        return self.api.url

    def manifest(self, *targets: str, cases: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
        """A manifest over inline `cases` (twelve questions by default) and registered targets."""
        limits = {"max_cost_usd": 5, "max_output_tokens": 64, "concurrency": 16, "max_failed_cells": 10_000}
        return {
            "version": "sr-bench-1.0",
            "name": "browser test",
            "cases": cases or [question(number) for number in range(12)],
            "targets": [self.targets[name] for name in targets],
            "limits": limits | more.pop("limits", {}),
        } | more

    def over_dataset(self, *targets: str, **more: Any) -> dict[str, Any]:
        """A manifest over the prepared dataset."""
        whole = self.manifest(*targets, **more)
        del whole["cases"]
        bound = {"path": self.dataset["path"], "sha256": self.dataset["sha256"]}
        return whole | {"profile": self.dataset["profile"], "dataset": bound}


def question(number: int, **more: Any) -> dict[str, Any]:
    """One multiple-choice case; its answer is A."""
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": f"Question {number}?\n\nA. yes\nB. no\n\nReply with the letter."}],
        "answer": "A",
        "choices": ["yes", "no"],
        "metadata": {"stratum": "math", "split": "dev"},
    } | more


def endless() -> list[dict[str, Any]]:
    """So many questions that a run of the slow model over them is active until somebody stops it."""
    return [question(number) for number in range(1000)]


def contest() -> list[dict[str, Any]]:
    """Sixty questions whose answers the testbed knows, so that its models differ in skill."""
    text = "Contest {}?\n\nA. yes\nB. no\nC. perhaps\nD. never\n\nReply with the letter."
    message = [[{"role": "user", "content": text.format(number)}] for number in range(60)]
    choices = ["yes", "no", "perhaps", "never"]
    return [
        question(
            number, id=f"mmlu-pro/contest-{number}", messages=message[number], answer="ABCD"[number % 4], choices=choices
        )
        for number in range(60)
    ]


def answer_key(folder: Path) -> Path:
    """What the testbed knows of the contest."""
    cases, key = folder / "contest.jsonl", folder / "key.jsonl"
    cases.write_text("".join(json.dumps(case) + "\n" for case in contest()))
    module("srbench_testbed.answer_key", "--cases", str(cases), "--out", str(key))
    return key


def testbed_targets(config: Path, base_url: str) -> list[Any]:
    """What is registered: the testbed's own targets, the unpriced one without prices, one that fixes parameters, and the
    router once more with its recipe captured."""
    found: Any = targets_document(read_config(config), base_url)["targets"]
    for target in found:
        if target["id"] == "unpriced":
            del target["prices"]
    fixed = {"id": "fixed", "kind": "single", "model": "compact", "base_url": base_url, "prices": {"compact": PRICE}}
    captured = next(target for target in found if target["id"] == "mixture") | {"id": "captured", "capture_recipe": True}
    return [*found, captured, fixed | {"request_params": {"max_tokens": 256, "temperature": 0.7}}]


def command(*arguments: str, **environment: str) -> str:
    """The output of the command line."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
    done = commands.run("srbench_cli", *arguments, env=inherited | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def module(name: str, *arguments: str) -> None:
    """Runs one of the testbed's makers of files."""
    done = subprocess.run(
        [sys.executable, "-m", name, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def prepared(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    """The dataset of a preparation once it is done."""
    job = api.ask("POST", "/dataset-preparations", body)["preparation"]
    deadline = time.monotonic() + 120
    while job["status"] in ("queued", "running"):
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
        job = api.get(f"/dataset-preparations/{job['id']}")["preparation"]
    assert job["status"] == "completed", job
    dataset: dict[str, Any] = job["dataset"]
    return dataset


@contextmanager
def serving(store: Path, **environment: str) -> Iterator[Api]:
    """A stack over `store`; it ends with the block."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
    record = lifecycle.start(store, ["--port", "0", "--drain", "0"], inherited | environment, with_parent=True)
    try:
        yield Api(record.url, environment.get("SR_BENCH_TOKEN", ""))
    finally:
        lifecycle.stop(store, 60.0)
