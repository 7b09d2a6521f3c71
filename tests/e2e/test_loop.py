"""The loop that improves a router: the command line over real processes, and a testbed that counts what it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import commands

pytestmark = pytest.mark.e2e
MODELS = ["small", "large"]
PRICE = {"input": 1.0, "cached_input": 0.1, "cache_write": 1.0, "output": 2.0}
TOKEN = "management-token-of-a-test"
CONFIG = {
    "models": [{"id": name, "price": PRICE, "chunks": 3} for name in MODELS],
    "routers": [
        {
            "id": "mix",
            "activation_s": 0.3,
            "routes": [
                {"decision": "odd", "model": "large", "keyword": "odd"},
                {"decision": "rest", "model": "small"},
            ],
        }
    ],
}
CASES = [
    {
        "id": f"q{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": f"{'odd' if number % 2 else 'even'} {number}? A. 4 B. 5 C. 6"}],
        "answer": "ABC"[number % 3],
        "metadata": {"split": "dev", "stratum": "all"},
    }
    for number in range(6)
]


@dataclass
class Loop:
    """A stack, a testbed and a folder."""

    folder: Path
    store: Path
    testbed: str
    targets: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str, program: str = "sr-bench", exit_code: int = 0) -> Any:
        """The JSON that a command prints."""
        module = "srbench_cli" if program == "sr-bench" else "srbench_cli.vllm_sr"
        store = ("--store", str(self.store)) if program == "sr-bench" else ()
        ran = commands.run(module, *arguments, *store, env=os.environ | self.environment, cwd=self.folder)
        assert ran.returncode == exit_code, (arguments, ran.returncode, ran.stdout[-2000:], ran.stderr[-2000:])
        return json.loads(ran.stdout) if ran.stdout.strip() else ran.stderr

    def file(self, name: str, document: Any) -> str:
        path = self.folder / name
        path.write_text(json.dumps(document))
        return str(path)

    def counts(self) -> dict[str, Any]:
        """What the testbed was asked."""
        with urllib.request.urlopen(f"{self.testbed}/testbed/counts", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def register(self, **router: Any) -> None:
        """Registers the models, and the router with `router` over it."""
        self.targets["targets"][-1] |= router
        self.command("target", "register", "--file", self.file("targets.json", self.targets))


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    folder = tmp_path_factory.mktemp("loop")
    environment = os.environ | {"VSR_MGMT_TOKEN": TOKEN}
    (folder / "testbed.json").write_text(json.dumps(CONFIG))
    wiring = ["--config", "testbed.json", "--write-targets", "targets.json", "--pace", "zero"]
    with subprocess.Popen(
        [sys.executable, "-m", "srbench_testbed", *wiring, "--management-token-env", "VSR_MGMT_TOKEN"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as testbed:
        assert testbed.stdout is not None
        url = testbed.stdout.readline().split()[-1]
        stack = subprocess.Popen(
            [sys.executable, "-m", "srbench_cli", "serve", "--port", "0", "--store", str(folder / "store")],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert stack.stdout is not None
            assert stack.stdout.readline().startswith(("http", "listening", "ready", "{")), "the stack says where it is"
            found = Loop(folder, folder / "store", url, json.loads((folder / "targets.json").read_text()))
            found.environment = {"VSR_MGMT_TOKEN": TOKEN}
            found.register(preview_api_key_env="VSR_MGMT_TOKEN")
            yield found
        finally:
            stack.terminate()
            stack.wait(60)
            testbed.terminate()


@pytest.fixture(scope="module")
def baseline(loop: Loop) -> Any:
    """The report of a live run of both models and the router."""
    manifest = {"version": "sr-bench-1.0", "name": "base", "cases": CASES, "targets": loop.targets["targets"]}
    return loop.command("run", "--manifest", loop.file("base.json", manifest))


@pytest.fixture(scope="module")
def preview(loop: Loop, baseline: Any) -> Any:
    """The report of a preview of the baseline's cases, planned from it."""
    before = loop.counts()
    out = loop.folder / "preview.json"
    planned = loop.command(
        "candidate-plan", baseline["run_id"], "--target", "mix", "--mode", "preview", "--output", str(out)
    )
    assert planned["case_sha256"] == baseline["provenance"]["case_sha256"]
    report = loop.command("preview", "--manifest", str(out))
    after = loop.counts()
    assert after["requests"] == before["requests"], "a preview generates nothing"
    assert after["previews"] - before["previews"] == len(CASES)
    return report


def test_a_preview_shows_models_and_decisions_and_no_quality(loop: Loop, preview: Any) -> None:
    row = preview["summary"]["targets"][0]
    assert (preview["status"], preview["mode"]) == ("completed", "preview")
    assert row["selected_models"] == {"large": 3, "small": 3}
    assert row["decisions"] == {"odd": 3, "rest": 3}
    assert row["selection_statuses"] == {"selected": 6}
    assert set(row["selection_reasons"]) == {"route 0 (odd)", "route 1 (rest)"}
    for name in ("accuracy", "accuracy_ci95", "correct", "macro_accuracy", "sr_bench_score", "latency_p50_s", "cost_usd"):
        assert row[name] is None, name
    assert (row["total_spend_usd"], row["request_count"], preview["summary"]["total_spend_usd"]) == (0, 0, 0)
    results = loop.command("show", preview["run_id"], "--results")["results"]
    assert {(item["correct"], item["score"], item["answer"]) for item in results} == {(None, None, None)}
    assert results[0]["details"]["routing"]["selection_provenance"]["sampling_seed"] == 20260918
    assert results[0]["details"]["preview_context"] == {"sampling_seed": 20260918}


def test_a_replay_takes_saved_answers_and_calls_no_model(loop: Loop, baseline: Any, preview: Any) -> None:
    before = loop.counts()
    asked = ("replay", "--baseline", baseline["run_id"], "--preview", preview["run_id"], "--idempotency-key", "r1")
    report = loop.command(*asked)
    assert loop.command(*asked)["run_id"] == report["run_id"], "the same key is the same replay"
    assert loop.counts() == before, "a replay asks nobody anything"
    row, whole = report["summary"]["targets"][0], report["summary"]
    saved = loop.command("show", baseline["run_id"], "--results")["results"]
    right = {(item["case_id"], item["target_id"]): item for item in saved}
    chosen = [right[case["id"], "large" if int(case["id"][1:]) % 2 else "small"] for case in CASES]
    assert row["estimated_correct"] == sum(item["correct"] for item in chosen)
    assert row["estimated_accuracy"] == row["estimated_correct"] / 6
    assert row["estimated_cost_usd"] == pytest.approx(sum(item["cost_usd"] for item in chosen))
    assert row["selected_models"] == {"large": 3, "small": 3}
    assert row["decisions"] == {"odd": 3, "rest": 3}
    for name in ("accuracy", "correct", "macro_accuracy", "cost_usd", "tokens", "latency_p50_s", "sr_bench_score"):
        assert row[name] is None, name
    assert (row["total_spend_usd"], row["known_cost_usd"], row["cost_complete"], row["request_count"]) == (0, 0, False, 0)
    assert (whole["total_spend_usd"], row["replayed_call_count"]) == (0, 6)
    calls = loop.command("show", report["run_id"], "--calls")["calls"]
    assert {call["status"] for call in calls} == {"replayed"}
    refused = loop.command("bundle", report["run_id"], "--output", "replay.tar", exit_code=2)
    assert "NOT_LIVE" in refused
    assert not (loop.folder / "replay.tar").exists()
    assert {call["source_run_id"] for call in calls} == {baseline["run_id"]}
    assert all(call["id"].startswith("cached-") and call["source_call_id"].startswith("call-") for call in calls)
    one = loop.command("show", report["run_id"], "--call-id", calls[0]["id"])
    source = loop.command("show", baseline["run_id"], "--call-id", calls[0]["source_call_id"])
    assert one["final"] == source["final"], "the texts come from the original's evidence"
    assert loop.command("report", baseline["run_id"])["summary"] == baseline["summary"], "the originals are untouched"


def test_replay_options_name_the_baseline_and_its_preview(loop: Loop, baseline: Any, preview: Any) -> None:
    listed = loop.command("replay-options")
    assert [row["id"] for row in listed["baselines"]] == [baseline["run_id"]]
    options = loop.command("replay-options", baseline["run_id"])
    assert [row["id"] for row in options["options"]] == [preview["run_id"]]
    assert options["model_requests"] == 0
    none = loop.command("replay-options", preview["run_id"])
    assert none["empty_reason"] == "baseline_not_eligible_live_single"


def test_an_experiment_links_runs_by_roles_that_fit(loop: Loop, baseline: Any, preview: Any) -> None:
    made = loop.command("experiment", "create", "odd or even", "--idempotency-key", "e1")
    assert loop.command("experiment", "create", "odd or even", "--idempotency-key", "e1")["id"] == made["id"]
    attach = ("experiment", "attach", made["id"], "--run")
    loop.command(*attach, baseline["run_id"], "--role", "baseline")
    loop.command(*attach, preview["run_id"], "--role", "preview", "--hypothesis", "cheaper")
    refused = loop.command(*attach, preview["run_id"], "--role", "baseline", exit_code=2)
    assert "expected one that fits this run: preview" in refused
    shown = loop.command("experiment", "show", made["id"])
    assert [(item["role"], item["run_id"]) for item in shown["members"]] == [
        ("preview", preview["run_id"]),
        ("baseline", baseline["run_id"]),
    ]
    row = next(row for row in loop.command("runs")["runs"] if row["id"] == baseline["run_id"])
    assert row["experiment_roles"] == [{"experiment_id": made["id"], "role": "baseline", "hypothesis": None}]
    assert loop.command("experiment", "delete", made["id"])["run_count"] == 2
    again = loop.command("experiment", "create", "odd or even", "--idempotency-key", "e1", exit_code=4)
    assert "EXPERIMENT_DELETED" in again
    assert loop.command("report", baseline["run_id"])["status"] == "completed"


def test_a_change_is_planned_applied_waited_for_and_captured(loop: Loop, baseline: Any, preview: Any) -> None:
    endpoint = ("--endpoint", loop.testbed)
    change = loop.file(
        "change.json",
        {
            "routing": {
                "decisions": [
                    {"name": "odd", "calls": ["small"], "keyword": "odd"},
                    {"name": "rest", "calls": ["large"]},
                ]
            },
            "evaluation": {"store_url": "http://10.0.0.7:6333", "note": "ranked by hand"},
        },
    )
    merge = ("--config", change, "--mode", "merge", *endpoint)
    assert loop.command("config", "validate", *merge, program="vllm-sr")["valid"] is True
    planned = loop.command("config", "plan", *merge, program="vllm-sr")
    assert planned["restart_required"] is False
    applied = loop.command("config", "apply", *merge, program="vllm-sr")
    assert applied["active_runtime_hash"] == planned["generated_runtime_hash"]
    # The plan of before names the old configuration: no preview answers it.
    stale = loop.command("preview", "--manifest", str(loop.folder / "preview.json"), exit_code=1)
    assert stale["summary"]["targets"][0]["completed"] == 0
    loop.register(config_hash=applied["active_runtime_hash"], capture_recipe=True)
    manifest = {"version": "sr-bench-1.0", "name": "captured", "cases": CASES, "targets": loop.targets["targets"][-1:]}
    live = loop.command("run", "--manifest", loop.file("captured.json", manifest))
    recipe = loop.command("recipes", live["run_id"], "--target", "mix")
    assert recipe["active_runtime_hash"] == applied["active_runtime_hash"]
    assert recipe["evaluation"] == {"store_url": "<redacted>", "note": "ranked by hand"}
    assert recipe["redactions"] == ["evaluation.store_url"]
    assert live["provenance"]["runner"]["recipes"]["mix"]["recipe_sha256"] == recipe["recipe_sha256"]
    borrowed = loop.command("recipes", baseline["run_id"], "--target", "mix", exit_code=3)
    assert "RECIPE_UNAVAILABLE" in borrowed
    # Whoever asks for the recipe of another configuration gets no run at all.
    loop.register(config_hash="f" * 64)
    manifest["targets"] = loop.targets["targets"][-1:]
    count = loop.counts()["requests"]
    refused = loop.command("run", "--manifest", loop.file("refused.json", manifest), exit_code=4)
    assert "RECIPE_CAPTURE_FAILED" in refused
    assert loop.counts()["requests"] == count
    loop.register(config_hash=applied["active_runtime_hash"], capture_recipe=False)


def test_a_change_that_needs_a_restart_is_handed_over_and_learned_state_is_not_replayed(
    loop: Loop, baseline: Any, preview: Any
) -> None:
    endpoint = ("--endpoint", loop.testbed)
    with urllib.request.urlopen(
        urllib.request.Request(f"{loop.testbed}/api/v1/config", headers={"authorization": f"Bearer {TOKEN}"}), timeout=60
    ) as answer:
        config = json.load(answer)
    config["listeners"] = [{"name": "http", "timeout_s": 10}]
    config["global"]["router"]["learning"] = {"enabled": True}
    change = loop.file("restart.json", config)
    refused = loop.command("config", "apply", "--config", change, *endpoint, program="vllm-sr", exit_code=4)
    assert "RESTART_REQUIRED" in refused
    assert "--replace-active-config" in refused
    handed = loop.command("serve", "--replace-active-config", "--config", change, *endpoint, program="vllm-sr")
    assert handed["activation_status"] == "active"
    loop.register(config_hash=handed["active_runtime_hash"])
    out = str(loop.folder / "learned.json")
    loop.command("candidate-plan", baseline["run_id"], "--target", "mix", "--mode", "preview", "--output", out)
    learned = loop.command("preview", "--manifest", out)
    details = loop.command("show", learned["run_id"], "--results", "--limit", "1")["results"][0]["details"]
    provenance = details["routing"]["selection_provenance"]
    assert provenance["config_hash"] == handed["active_runtime_hash"]
    assert {"state_hash", "captured_at", "sampled", "sampling_seed"} <= provenance.keys()
    check = loop.command("replay", "--baseline", baseline["run_id"], "--preview", learned["run_id"], exit_code=2)
    codes = {(item["code"], item["case_id"]) for item in check["reasons"]}
    assert {("state_dependent_preview", case["id"]) for case in CASES} <= codes
    assert {("route_not_deterministic", case["id"]) for case in CASES} <= codes
