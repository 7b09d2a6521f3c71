"""Terminal-Bench 2.1 with Harbor and a real Docker engine, from task folders to the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.terminal_tasks import TASKS, write_tasks
from tests.e2e.whole_stack import Stack, Testbed, clean_environment, running_stack

pytestmark = pytest.mark.e2e
BENCHMARK = "terminal-bench-2.1"
LABEL = "org.sr-bench.executor"
# Skill 1 and 0: the one solves every task, the other none.
MODELS = [
    {"id": "able", "skill": {"default": 1.0}, "price": {"input": 1.0, "output": 10.0}},
    {"id": "unable", "skill": {"default": 0.0}, "price": {"input": 0.1, "output": 1.0}},
]


def harbor_python() -> str:
    """Harbor's interpreter: named, or where `setup --install` puts it."""
    home = Path(os.environ.get("SR_BENCH_HOME") or "~/.cache/vllm-sr/sr-bench-1.0").expanduser()
    found = os.environ.get("SR_BENCH_TERMINAL_PYTHON") or str(home / f"harnesses/{BENCHMARK}/.venv/bin/python")
    assert Path(found).exists(), f"there is no {found}; run make test-sandbox"
    return found


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def left_behind() -> str:
    """Containers and networks that carry our label."""
    chosen = ("-q", "--filter", f"label={LABEL}")
    return docker("ps", "-a", *chosen) + docker("network", "ls", *chosen)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path / "checkout")


@pytest.fixture
def stack(tmp_path: Path, tasks: Path) -> Iterator[Stack]:
    env = {"SR_BENCH_TERMINAL_PYTHON": harbor_python(), "SR_BENCH_TERMINAL_ROOT": str(tasks)}
    with running_stack(tmp_path / "store", **env) as running:
        yield running


def prepared(stack: Stack, tasks: Path) -> Any:
    return stack.cli(
        *("dataset", "prepare", "--benchmark", BENCHMARK, "--profile", "quick", "--source-path", str(tasks)),
        *("--revision", "ours"),
    )


@pytest.fixture
def testbed(tmp_path: Path, stack: Stack, tasks: Path) -> Iterator[Testbed]:
    """A testbed whose models know the frozen cases' solutions."""
    prepared(stack, tasks)
    (cases,) = (stack.store / "datasets").glob("*/cases.jsonl")
    key, config, targets = tmp_path / "key.jsonl", tmp_path / "config.json", tmp_path / "targets.json"
    made = ["-m", "srbench_testbed.answer_key", "--cases", str(cases), "--tasks", str(tasks / "tasks"), "--out", str(key)]
    subprocess.run([sys.executable, *made], check=True, timeout=60)
    config.write_text(json.dumps({"models": MODELS, "routers": []}))
    command = [sys.executable, "-m", "srbench_testbed", "--config", str(config), "--answer-key", str(key)]
    process = subprocess.Popen(
        [*command, "--write-targets", str(targets), "--pace", "zero"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening "), line
        yield Testbed(line.split()[1], json.loads(targets.read_text())["targets"])
    finally:
        process.kill()
        process.communicate()


def results_of(stack: Stack, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.cli("show", run_id, "--results")["results"]
    return found


def manifest(stack: Stack, testbed: Testbed, **limits: Any) -> dict[str, Any]:
    (folder,) = (path.parent for path in (stack.store / "datasets").glob("*/manifest.json"))
    bounds = {"concurrency": 4, "max_cost_usd": 5, "max_run_seconds": 900, "max_calls_per_case": 10}
    return {
        "version": "sr-bench-1.0",
        "name": "terminal",
        "dataset": {"id": folder.name},
        "targets": testbed.targets,
        "benchmark_options": {BENCHMARK: {"max_steps": 10}},
        "limits": bounds | limits,
    }


def test_an_able_model_solves_all_tasks_an_unable_one_none_and_every_call_is_metered(
    tmp_path: Path, stack: Stack, testbed: Testbed
) -> None:
    run_id = stack.run(tmp_path, manifest(stack, testbed), "k")
    run = stack.get(f"/runs/{run_id}")
    assert run["status"] == "completed", run
    results = {(item["case_id"].partition("/")[2], item["target_id"]): item for item in results_of(stack, run_id)}
    assert {key: item["correct"] for key, item in results.items()} == {
        (name, model): model == "able" for name in TASKS for model in ("able", "unable")
    }, results
    for item in results.values():
        facts = item["details"]
        assert facts["reason"] == "answered"
        assert (facts["network"], facts["image_source"]) == ("none", "built")
        assert facts["versions"]["harbor"] == "0.26.0"
        assert facts["harness"]["calls"] == {"subject": 2}
    summary = {item["id"]: item for item in stack.cli("report", run_id)["summary"]["targets"]}
    assert [(summary[name]["accuracy"], summary[name]["call_count"]) for name in ("able", "unable")] == [(1.0, 6), (0.0, 6)]
    assert all(item["cost_complete"] and item["cost_usd"] > 0 for item in summary.values())
    calls = stack.get(f"/runs/{run_id}/calls")["calls"]
    assert len(calls) == sum(testbed.sent().values()) == 2 * 2 * len(TASKS)
    assert all(call["role"] == "subject" for call in calls)
    assert left_behind() == ""


def test_what_is_missing_is_said_at_once_and_nothing_is_called(tmp_path: Path, stack: Stack, testbed: Testbed) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest(stack, testbed, case_timeout_s=100, max_calls_per_case=5)))
    items = stack.cli("setup", "--benchmark", BENCHMARK)["items"]
    assert [(item["item"], item["present"]) for item in items] == [
        ("interpreter", True),
        ("harness_root", True),
        ("containers", True),
    ]
    said = stack.cli("run", "--manifest", str(path), code=2)
    assert "limits.case_timeout_s" in said
    assert "limits.max_calls_per_case" in said
    assert not testbed.sent()


def test_a_task_that_changed_after_it_was_frozen_is_not_run(
    tmp_path: Path, stack: Stack, testbed: Testbed, tasks: Path
) -> None:
    for name in TASKS:
        (tasks / "tasks" / name / "tests/test.sh").write_text("#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n")
    run_id = stack.run(tmp_path, manifest(stack, testbed), "k")
    results = results_of(stack, run_id)
    assert {item["reason"] for item in results} == {"task_changed"}, results
    assert not testbed.sent()
