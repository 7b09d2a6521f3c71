"""The plan that asks other routers exactly what a baseline asked: its manifest with other targets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit.errors import Forbidden, InvalidInput
from srbench_kit.values import Json

from srbench_planner import benchmark_options, checks, manifest
from srbench_planner.freeze import FrozenPlan

MODES = ("live", "preview")
# A baseline's claims hold for what is compared with it without being repeated.
_DROPPED = frozenset(
    {"experiment", "plan_sha256", "case_sha256", "execution_cells", "preview_context", "baseline_run_id", "claims"}
)
# What must come out of freezing as it went in.
_UNCHANGED = (
    *("case_sha256", "sampling", "limits", "profile", "seed", "cost_policy", "output_policy", "benchmark_options"),
    *("benchmark_weights", "adapter_versions", "version"),
)


def candidate_manifest(
    baseline: Mapping[str, Json],
    cases: Json,
    registered: list[dict[str, Json]],
    *,
    baseline_run_id: str,
    target_ids: list[str],
    mode: str,
    name: str,
    experiment: Json,
) -> dict[str, Json]:
    """The manifest to be frozen. `cases` are the inline cases; `None` where a dataset is bound.

    Raises: `InvalidInput` (`BAD_FIELD`), `Forbidden` (`TARGET_NOT_REGISTERED`).
    """
    chosen = checks.one_of(mode or "live", "mode", MODES)
    found: dict[str, Json] = {key: value for key, value in baseline.items() if key not in _DROPPED}
    if cases is not None:
        found["cases"] = cases
    found["mode"] = chosen
    found["name"] = name or f"candidate on {baseline.get('name')}"[: manifest.MAX_NAME]
    found["targets"] = _routers(registered, target_ids)
    auxiliary = _auxiliaries(baseline, target_ids)
    found.pop("auxiliary_targets", None)
    if auxiliary:
        found["auxiliary_targets"] = auxiliary
    found["baseline_run_id"] = baseline_run_id
    if experiment is not None:
        found["experiment"] = experiment
    return found


def check_unchanged(baseline: Mapping[str, Json], frozen: FrozenPlan) -> None:
    """Refuses a plan that would not ask the same. Raises: `InvalidInput` (`CANDIDATE_PLAN_CHANGED`)."""
    for key in _UNCHANGED:
        if baseline.get(key) != frozen.manifest.get(key):
            raise InvalidInput(
                "CANDIDATE_PLAN_CHANGED",
                f"{key} would be {checks.show(frozen.manifest.get(key))}, but the baseline has "
                f"{checks.show(baseline.get(key))}; a candidate is asked the same or not at all",
                field=key,
            )


def _routers(registered: list[dict[str, Json]], target_ids: list[str]) -> list[Json]:
    if not target_ids or len(set(target_ids)) < len(target_ids):
        raise checks.bad("target_ids", list(target_ids), "at least one id, none twice")
    by_id = {str(target["id"]): target for target in registered}
    routers: list[Json] = []
    for index, name in enumerate(target_ids):
        target = by_id.get(name)
        if target is None:
            raise Forbidden(
                "TARGET_NOT_REGISTERED",
                f"target_ids[{index}] is {name!r}; expected a target that the operator registered",
            )
        if target["kind"] != "mom":
            raise checks.bad(f"target_ids[{index}]", name, "a target of kind mom")
        routers.append(target)
    return routers


def _auxiliaries(baseline: Mapping[str, Json], target_ids: list[str]) -> dict[str, Json]:
    """The baseline's auxiliaries, and those of its targets that judge or simulate."""
    found = baseline.get("auxiliary_targets")
    auxiliary: dict[str, Json] = dict(found) if isinstance(found, dict) else {}
    options, targets = baseline.get("benchmark_options"), baseline.get("targets")
    named = {name for _, name in benchmark_options.referenced(options)} if isinstance(options, dict) else set()
    for target in targets if isinstance(targets, list) else []:
        if isinstance(target, dict) and target["id"] in named and target["id"] not in target_ids:
            auxiliary[str(target["id"])] = target
    return auxiliary
