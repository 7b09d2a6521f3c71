"""The command line of sr-bench 1.0, as it was released, against this gateway: it must work unchanged.

`SR_BENCH_RELEASED_CLI` names the `vllm-sr` of an environment with `vllm-sr==0.4.0`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e
MANIFEST = {
    "version": "sr-bench-1.0",
    "name": "from a released client",
    "cost_policy": "capability_only",
    "targets": [{"id": "s", "kind": "single", "model": "m", "base_url": "http://127.0.0.1:1/v1"}],
    "cases": [
        {
            "id": "q1",
            "benchmark": "mmlu-pro",
            "messages": [{"role": "user", "content": "2+2? A. 4 B. 5"}],
            "answer": "A",
        }
    ],
}


# Runs its commands one after the other in one process of its own environment: its imports alone take seconds.
DRIVER = """
import contextlib, io, json, sys
from cli.commands.benchmark import benchmark
for line in sys.stdin:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            benchmark.main(args=json.loads(line), prog_name="vllm-sr benchmark")
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class Released:
    """The released command line in a process of its own, its store and the gateway it talks to."""

    def __init__(self, process: subprocess.Popen[str], url: str, store: Path, folder: Path) -> None:
        self._process = process
        self._options = ["--url", url, "--store", str(store)]
        self.manifest = folder / "manifest.json"
        self.manifest.write_text(json.dumps(MANIFEST))

    def call(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([*self._options, *arguments]) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return code, out, err

    def json(self, *arguments: str) -> Any:
        """What a command that must succeed prints."""
        code, out, err = self.call(*arguments)
        assert code == 0, err
        return json.loads(out)


def clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("SR_BENCH_")}


@pytest.fixture(params=["", "a-token-for-released-clients"], ids=["local", "token"])
def released(
    request: pytest.FixtureRequest, backends: dict[str, str], start_gateway: Any, tmp_path: Path
) -> Iterator[Released]:
    store = (tmp_path / "store").resolve()
    token = {"SR_BENCH_TOKEN": request.param} if request.param else {}
    identity = hashlib.sha256(str(store).encode()).hexdigest()
    python = Path(os.environ["SR_BENCH_RELEASED_CLI"]).parent / "python"
    environment = clean() | token | {"HOME": str(tmp_path)}
    with start_gateway(backends | token, "--store-identity", identity) as gateway:
        driver = subprocess.Popen(
            [str(python), "-c", DRIVER],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        yield Released(driver, gateway.http, store, tmp_path)
        driver.communicate()


def test_its_whole_way_from_a_dataset_to_a_report(released: Released) -> None:
    assert released.json("catalog")["version"] == "sr-bench-1.0"
    assert [target["id"] for target in released.json("target", "list")["targets"]] == ["s", "r"]
    assert released.json("dataset", "options")["benchmarks"][0]["id"] == "arc-agi-2"
    prepared = released.json("dataset", "prepare", "--benchmark", "arc-agi-2", "--limit", "3")
    assert (prepared["id"], prepared["case_count"]) == ("d" * 64, 3)
    job = released.json("dataset", "preparations")["preparations"][0]["id"]
    assert released.json("dataset", "preparations", job)["preparation"]["status"] == "completed"
    assert released.json("dataset", "show")["datasets"][0]["manifest_path"]

    frozen = released.json("plan", "--manifest", str(released.manifest))
    assert frozen["total"] == 1
    report = released.json("run", "--manifest", str(released.manifest))
    run_id = report["run_id"]
    assert report["summary"]["targets"][0]["accuracy"] == 0.5

    listed = released.json("runs")["runs"]
    assert [run["id"] for run in listed] == [run_id]
    assert listed[0]["manifest"]["name"] == "from a released client"
    shown = released.json("show", run_id)
    assert (shown["status"], shown["progress"]["completed"], shown["error"]) == ("completed", 2, None)
    assert shown["manifest"]["name"] == "from a released client"

    page = released.json("show", run_id, "--results", "--limit", "3")
    following = released.json("show", run_id, "--results", "--limit", "3", "--after", str(page["next_cursor"]))
    assert [row["case_id"] for row in page["results"] + following["results"]] == ["c1", "c2", "c3", "c4", "c5"]
    assert following["next_cursor"] is None
    calls = released.json("show", run_id, "--calls", "--limit", "2")
    rest = released.json("show", run_id, "--calls", "--limit", "2", "--after", str(calls["next_cursor"]))
    assert [row["role"] for row in calls["calls"] + rest["calls"]] == ["subject"] * 3
    active = released.json("show", run_id, "--calls", "--active")["calls"]
    assert [row["activity"]["phase"] for row in active] == ["streaming"]
    assert released.json("show", run_id, "--call-id", calls["calls"][0]["id"])["final"]
    events = released.json("show", run_id, "--events", "--after", "7")["events"]
    assert [event["kind"] for event in events] == ["running", "completed"]
    assert released.json("report", run_id) == report


def test_a_detached_run_is_bound_to_its_key_and_cancelled(released: Released) -> None:
    arguments = ["run", "--manifest", str(released.manifest), "--detach", "--idempotency-key", "k1"]
    run = released.json(*arguments)
    assert run["status"] in ("queued", "running")
    assert released.json(*arguments)["id"] == run["id"]
    assert released.json("cancel", run["id"])["status"] == "cancelled"
    assert released.json("cancel", run["id"])["error"] == "somebody stopped the run"


def test_it_groups_runs(released: Released) -> None:
    run_id = released.json("run", "--manifest", str(released.manifest))["run_id"]
    made = released.json("experiment", "create", "shorter prompts")
    assert (made["run_count"], made["active_run_count"]) == (0, 0)
    attached = released.json("experiment", "attach", made["id"], "--run", run_id, "--role", "baseline")
    assert (attached["id"], attached["name"]) == (made["id"], "shorter prompts")
    assert [one["id"] for one in released.json("experiment", "list")["experiments"]] == [made["id"]]
    shown = released.json("experiment", "show", made["id"])
    assert [(one["run_id"], one["role"]) for one in shown["members"]] == [(run_id, "baseline")]
    assert released.json("experiment", "delete", made["id"])["deleted"] is True


def test_its_errors_are_our_sentences(released: Released, tmp_path: Path) -> None:
    code, out, err = released.call("show", "run-none")
    assert (code, out) == (1, "")
    assert "there is no run named 'run-none'" in err
    code, _, err = released.call("compare", "run-a", "run-b")
    assert code == 1
    assert "there is no run named 'run-a'" in err
    _, _, err = released.call("dataset", "prepare", "--benchmark", "nonesuch")
    assert "there is no benchmark named 'nonesuch'" in err
    code, _, err = released.call("--store", str(tmp_path / "other"), "runs")
    assert code == 1
    assert "different sr-bench store" in err


def test_its_executable_itself_works(backends: dict[str, str], start_gateway: Any) -> None:
    with start_gateway(backends) as gateway:
        command = [os.environ["SR_BENCH_RELEASED_CLI"], "benchmark", "--url", gateway.http, "target", "list"]
        seen = subprocess.run(command, env=clean(), capture_output=True, text=True, timeout=120, check=False)
    assert seen.returncode == 0, seen.stderr
    assert [target["id"] for target in json.loads(seen.stdout)["targets"]] == ["s", "r"]
