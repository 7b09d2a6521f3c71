"""Metrics of a real stack as a scraper sees them: what a run leaves in each process, and nothing that names it."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.whole_stack import manifest, mmlu_cases, running_stack, running_testbed

pytestmark = pytest.mark.e2e
CASES = 12
PROCESSES = ("planner", "accounting", "grader", "executor", "gateway")
SAMPLE = re.compile(r"[a-z0-9_]+\Z")


def free_ports(count: int) -> int:
    """The first of `count` free ports in a row, below those that the kernel hands out to others meanwhile."""
    while True:
        first = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def scraped(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Samples by name and labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    text = opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_a_run_is_seen_in_every_process_and_names_nothing(tmp_path: Path) -> None:
    port = free_ports(len(PROCESSES))
    with (
        running_testbed(tmp_path) as bed,
        running_stack(tmp_path / "store", SR_BENCH_METRICS_ADDRESS=str(port)) as stack,
    ):
        small = [one for one in bed.targets if one["id"] == "small"]
        run_id = stack.run(tmp_path, manifest(mmlu_cases(CASES), small), "metrics")
        assert stack.get(f"/runs/{run_id}")["status"] == "completed"
        seen = {name: scraped(port + offset) for offset, name in enumerate(PROCESSES)}
    calls = seen["executor"]["srbench_calls_total"]
    assert calls == {(("status", "completed"),): CASES}
    assert seen["executor"]["srbench_time_to_first_token_seconds_count"] == {(): CASES}
    assert seen["executor"]["srbench_cells_in_hand"] == {(): 0}
    accounting = seen["accounting"]
    assert accounting["srbench_dispatched_calls_total"] == accounting["srbench_outcomes_total"] == {(): CASES}
    assert accounting["srbench_spend_usd_total"][()] > 0
    assert accounting["srbench_open_calls"] == {(): 0}
    assert accounting["srbench_commit_duration_seconds_count"][()] > 0
    assert seen["planner"]["srbench_queue_cells"] == {(("state", "queued"),): 0, (("state", "leased"),): 0}
    assert seen["grader"]["srbench_grades_total"] == {(("result", "judged"),): CASES}
    assert seen["gateway"]["srbench_http_responses_total"][(("status", "2xx"),)] > 0
    for name, found in seen.items():
        assert found["srbench_event_loop_lag_seconds_count"][()] > 0, name
        ours = {metric: labels for metric, labels in found.items() if metric.startswith("srbench_")}
        labels = [value for samples in ours.values() for sample in samples for key, value in sample if key != "le"]
        assert all(SAMPLE.match(value) for value in labels), labels
