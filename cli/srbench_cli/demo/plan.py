"""What the demo evaluates: its targets and its manifest. Pure."""

from __future__ import annotations

from srbench_kit.values import Json

# Streams at once; the testbed's latencies make a cell take about 0.2 s.
CONCURRENCY = 128
MAX_COST_USD = 50
MAX_RUN_SECONDS = 900


def targets(config: dict[str, Json], base_url: str, config_hash: str) -> list[Json]:
    """The registry document of the testbed's models and routers, which listen at `base_url`."""
    models = _objects(config, "models")
    prices: dict[str, Json] = {str(model["id"]): model["price"] for model in models}
    found: list[Json] = [
        {
            "id": model["id"],
            "kind": "single",
            "model": model["id"],
            "base_url": base_url,
            "prices": {str(model["id"]): model["price"]},
        }
        for model in models
    ]
    for router in _objects(config, "routers"):
        found.append(
            {
                "id": router["id"],
                "kind": "mom",
                "model": router["id"],
                "base_url": base_url,
                "prices": prices,
                "max_inference_calls": _most_calls(router),
                "config_hash": config_hash,
            }
        )
    return found


def _objects(config: dict[str, Json], name: str) -> list[dict[str, Json]]:
    items = config[name]
    assert isinstance(items, list)
    return [item for item in items if isinstance(item, dict)]


def _most_calls(router: dict[str, Json]) -> int:
    calls = [route.get("calls") for route in _objects(router, "routes")]
    return max(len(item) if isinstance(item, list) else 1 for item in calls)


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
