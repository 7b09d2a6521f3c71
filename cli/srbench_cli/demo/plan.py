"""What the demo evaluates. Pure."""

from __future__ import annotations

from srbench_kit.values import Json

# Streams at once; the testbed's latencies make a cell take about 0.2 s.
CONCURRENCY = 128
MAX_COST_USD = 50
MAX_RUN_SECONDS = 900


def manifest(dataset_path: str, dataset_sha256: str, registered: list[Json]) -> dict[str, Json]:
    """The demo's manifest."""
    return {
        "version": "sr-bench-1.0",
        "name": "demo",
        "profile": "quick",
        "dataset": {"path": dataset_path, "sha256": dataset_sha256},
        "targets": registered,
        "limits": {"concurrency": CONCURRENCY, "max_cost_usd": MAX_COST_USD, "max_run_seconds": MAX_RUN_SECONDS},
        "limitations": ["The models are a testbed's: the figures show how sr-bench works and say nothing of any model."],
    }
