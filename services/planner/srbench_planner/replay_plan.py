"""The plan of a replay: the preview's routers over its cases, with the baseline's grading and limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit.canonical import folded_digest
from srbench_kit.values import Json

from srbench_planner import plan_identity
from srbench_planner.cells import CellMatrix
from srbench_planner.freeze import ORDER, FrozenPlan
from srbench_planner.worst_case import Spend

COMPATIBILITY = "sr-bench-replay-compatibility-v1"
# What grades and bounds answers comes from the run that has the answers.
_FROM_BASELINE = (
    *("cost_policy", "benchmark_weights", "adapter_versions", "benchmark_options", "auxiliary_targets", "limits"),
)
# An estimate supports no claim.
_DROPPED = frozenset({"preview_context", "experiment", "plan_sha256", "baseline_run_id", "claims"})


def replay_plan(
    baseline: Mapping[str, Json],
    preview: Mapping[str, Json],
    cases: list[dict[str, Json]],
    *,
    baseline_run_id: str,
    preview_run_id: str,
) -> FrozenPlan:
    """The frozen plan of the replay of two frozen manifests; `cases` are the preview's, in its order."""
    frozen: dict[str, Json] = {key: value for key, value in preview.items() if key not in _DROPPED}
    for key in _FROM_BASELINE:
        frozen.pop(key, None)
        if key in baseline:
            frozen[key] = baseline[key]
    frozen["mode"] = "replay"
    frozen["name"] = f"replay of {preview.get('name')} on {baseline.get('name')}"[:200]
    sources: dict[str, Json] = {
        "baseline_run_id": baseline_run_id,
        "baseline_plan_sha256": baseline["plan_sha256"],
        "preview_run_id": preview_run_id,
        "preview_plan_sha256": preview["plan_sha256"],
    }
    targets = frozen["targets"]
    assert isinstance(targets, list)
    matrix = CellMatrix(len(cases), len(targets))
    projection: dict[str, Json] = plan_identity.projection(frozen, matrix)
    frozen["plan_sha256"] = folded_digest({**projection, "replay_sources": sources})
    extra: dict[str, Json] = {"replay_sources": sources, "replay_compatibility": {"version": COMPATIBILITY}}
    manifest = {key: frozen[key] for key in ORDER if key in frozen} | extra
    return FrozenPlan(
        manifest=manifest,
        cases=cases,
        matrix=matrix,
        manifest_sha256=plan_identity.manifest_sha256(manifest),
        reviewed_sha256="",
        worst_case=Spend(0, 0),
    )
