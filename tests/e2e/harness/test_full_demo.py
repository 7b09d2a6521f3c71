"""`sr-bench demo --full`: all nine benchmarks, in containers, sandboxes and upstream's code, to a full score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from srbench_kit import upstreams

from tests.e2e.whole_stack import clean_environment

pytestmark = pytest.mark.e2e
WEIGHTS = {
    "mmlu-pro": 0.10,
    "gpqa-diamond": 0.15,
    "hle": 0.15,
    "livecodebench": 0.10,
    "scicode": 0.10,
    "terminal-bench-2.1": 0.10,
    "simpleqa-verified": 0.10,
    "arc-agi-2": 0.10,
    "tau3": 0.10,
}
COUNTS = {
    "mmlu-pro": 14,
    "gpqa-diamond": 4,
    "hle": 4,
    "livecodebench": 2,
    "scicode": 1,
    "terminal-bench-2.1": 1,
    "simpleqa-verified": 5,
    "arc-agi-2": 2,
    "tau3": 3,
}


def environment() -> dict[str, str]:
    kept = ("SR_BENCH_HOME", "SR_BENCH_TAU3_PYTHON", "SR_BENCH_TERMINAL_PYTHON", "SR_BENCH_SANDBOX_PYTHON")
    for variable, folder in (("TAU3", "tau3"), ("TERMINAL", "terminal-bench-2.1")):
        python = upstreams.python(variable, folder)
        assert python.is_file(), f"{python} is missing; run python -m srbench_executor.harness.installing"
    return clean_environment() | {name: os.environ[name] for name in kept if name in os.environ}


@pytest.mark.timeout(600)
def test_the_full_demo_ends_with_a_full_smoke_score_by_the_fixed_weights(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "srbench_cli", "demo", "--full", "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=560, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    assert json.loads(done.stdout) == report
    rows = {row["id"]: row for row in report["summary"]["targets"]}
    assert set(rows) == {"compact", "frontier", "mixture"}
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in report["benchmarks"]:
        parts[row["target_id"]][row["benchmark"]] = row
    for name, row in rows.items():
        assert (row["total"], row["scored"], row["failed"]) == (36, 36, 0), row["failure_reasons"]
        assert {benchmark: part["total"] for benchmark, part in parts[name].items()} == COUNTS
        expected = sum(weight * parts[name][benchmark]["accuracy"] for benchmark, weight in WEIGHTS.items())
        assert row["sr_bench_score"] == pytest.approx(expected)
        assert row["cost_usd"] is not None
        assert f"{name}: smoke score {100 * expected:.1f} %" in done.stderr
    # Agents, programs and judged answers are right by skill, not by chance.
    right = {name: sum(part["correct"] for part in found.values()) for name, found in parts.items()}
    assert right["frontier"] > right["mixture"] > right["compact"] > 0
    for benchmark in ("tau3", "livecodebench", "scicode", "terminal-bench-2.1"):
        assert parts["frontier"][benchmark]["correct"] == COUNTS[benchmark]
    assert rows["frontier"]["evaluation_call_count"] > 9
