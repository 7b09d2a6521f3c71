"""The two names of a frozen manifest.

`plan_sha256` covers all that can change an answer, a score, a price or the word on a claim, and nothing else: two plans of
one name are the same experiment. `manifest_sha256` covers the whole manifest but for places: two starts of one name are the
same request. See docs/decisions/2026-11-30-plan-identity.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit.canonical import folded_digest
from srbench_kit.values import Json

from srbench_planner import dataset_binding, sampling, targets
from srbench_planner.cells import CellMatrix

PLAN_FIELDS = ("version", "mode", "seed", "cost_policy", "output_policy", "benchmark_weights", "adapter_versions")
# Concurrency changes when a cell is asked, not what it is asked.
FREE_LIMITS = frozenset({"concurrency"})
TARGET_FIELDS = (
    "id",
    "kind",
    "model",
    "base_url",
    "model_aliases",
    "max_inference_calls",
    "config_hash",
    "expected_response_model",
    "usage_dialect",
    "cache_reporting",
    "response_mode",
    "session_mode",
    "native_limits",
)


def projection(frozen: Mapping[str, Json], matrix: CellMatrix) -> dict[str, Json]:
    """What `plan_sha256` is the digest of. `frozen` holds `case_sha256`; `matrix` its cells."""
    preview = frozen["mode"] == "preview"
    plan_sampling, limits = frozen["sampling"], frozen["limits"]
    assert isinstance(plan_sampling, dict)
    assert isinstance(limits, dict)
    auxiliary = frozen.get("auxiliary_targets") or {}
    assert isinstance(auxiliary, dict)
    own = frozen["targets"]
    assert isinstance(own, list)
    shown: dict[str, Json] = {key: frozen[key] for key in PLAN_FIELDS}
    shown["case_sha256"] = frozen["case_sha256"]
    shown["cells"] = None if matrix.picked is None else [list(matrix.pair(cell)) for cell in range(len(matrix))]
    shown["targets"] = [_target(target, plan_sampling, preview=preview) for target in own]
    shown["auxiliary_targets"] = [_target(auxiliary[name], plan_sampling, preview=preview) for name in sorted(auxiliary)]
    shown["limits"] = {key: value for key, value in limits.items() if key not in FREE_LIMITS}
    shown["benchmark_options"] = _options(frozen)
    if frozen.get("claims"):
        # They change no answer, but what an answer is taken to show; who reviews a plan by its name has reviewed them.
        shown["claims"] = frozen["claims"]
    if preview:
        shown["preview_context"] = frozen["preview_context"]
    return shown


def plan_sha256(frozen: Mapping[str, Json], matrix: CellMatrix) -> str:
    """The name of the experiment."""
    return folded_digest(projection(frozen, matrix))


def manifest_sha256(frozen: Mapping[str, Json]) -> str:
    """The name of the request: everything in the frozen manifest but places. Its cases are covered by `case_sha256`."""
    kept = {key: value for key, value in frozen.items() if key not in ("plan_sha256", "cases")}
    dataset = kept.get("dataset")
    if isinstance(dataset, dict):
        kept["dataset"] = {key: value for key, value in dataset.items() if key not in dataset_binding.PLACES}
    return folded_digest(kept)


def _target(value: Json, plan_sampling: Mapping[str, Json], *, preview: bool) -> Json:
    assert isinstance(value, dict)
    shown: dict[str, Json] = {key: value[key] for key in TARGET_FIELDS if key in value}
    params = value.get("request_params")
    # What is sent counts, not how it was written: a parameter repeated from the plan's sampling changes nothing.
    shown["parameters"] = dict(sampling.effective(plan_sampling, params if isinstance(params, dict) else {}))
    prices = value.get("prices")
    if isinstance(prices, dict):
        shown["prices"] = {model: _price(price) for model, price in prices.items()}
    if preview and "preview_url" in value:
        shown["preview_url"] = value["preview_url"]
    return shown


def _price(value: Json) -> Json:
    assert isinstance(value, dict)
    return {key: targets.price_picodollars(price, key) for key, price in value.items()}


def _options(frozen: Mapping[str, Json]) -> dict[str, Json]:
    """The options of the benchmarks in use; those of others change nothing."""
    options, used = frozen.get("benchmark_options"), frozen["adapter_versions"]
    assert isinstance(used, dict)
    if not isinstance(options, dict):
        return {}
    return {benchmark: given for benchmark, given in options.items() if benchmark in used and given}
