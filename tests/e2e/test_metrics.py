"""Metrics of a real stack as a scraper sees them: what a run leaves in each process, nothing that names it; no trace."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.test_traces import collecting
from tests.e2e.whole_stack import manifest, mmlu_cases, running_stack, running_testbed, until
from tests.ports import free_ports

pytestmark = pytest.mark.e2e
CASES = 12
PROCESSES = ("planner", "accounting", "grader", "executor", "gateway")
LAG = "srbench_event_loop_lag_seconds_count"
SAMPLE = re.compile(r"[a-z0-9_]+\Z")


def scraped(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Samples by name and labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    text = opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_a_run_is_seen_in_every_process_and_names_nothing_and_no_trace_is_sent_unasked(tmp_path: Path) -> None:
    ports = dict(zip(PROCESSES, free_ports(len(PROCESSES)), strict=True))
    environment = {"SR_BENCH_METRICS_ADDRESS": str(ports["planner"])}
    with (
        collecting() as collector,
        running_testbed(tmp_path) as bed,
        running_stack(tmp_path / "store", **environment, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint) as stack,
    ):
        small = [one for one in bed.targets if one["id"] == "small"]
        run_id = stack.run(tmp_path, manifest(mmlu_cases(CASES), small), "metrics")
        assert stack.get(f"/runs/{run_id}")["status"] == "completed"
        # The run is over for its planner; the executor lets go of its last cell a moment later.
        until(lambda: scraped(ports["executor"])["srbench_cells_in_hand"] == {(): 0})
        until(lambda: all(LAG in scraped(port) and scraped(port)[LAG][()] > 0 for port in ports.values()))
        seen = {name: scraped(port) for name, port in ports.items()}
    assert collector.spans == [], "traces are off"
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
        assert found[LAG][()] > 0, name
        ours = {metric: labels for metric, labels in found.items() if metric.startswith("srbench_")}
        labels = [value for samples in ours.values() for sample in samples for key, value in sample if key != "le"]
        assert all(SAMPLE.match(value) for value in labels), labels
