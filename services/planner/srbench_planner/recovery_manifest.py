"""The manifest of a recovery: the parent's, narrowed to the chosen cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from srbench_kit.canonical import digest
from srbench_kit.errors import Conflict
from srbench_kit.values import Json

from srbench_planner import benchmark_options, plan_identity
from srbench_planner.freeze import ORDER, FrozenPlan
from srbench_planner.manifest import DEFAULT_NAME, MAX_NAME

NAME_PREFIX = "recovery of "
_TERMS = ("case_sha256", "sampling", "benchmark_options", "benchmark_weights", "adapter_versions", "output_policy")
# What freezing the narrowed manifest works out again, or what only the service writes; and claims, which are about the
# whole: merged with its recoveries, the parent still makes them.
_LEFT_OUT = frozenset({"plan_sha256", "case_sha256", "execution_cells", "experiment", "recovery", "cases", "claims"})


def pairs(cells: Sequence[tuple[str, str]]) -> list[Json]:
    """(case, target) pairs as manifests write them."""
    return [{"case_id": case, "target_id": target} for case, target in cells]


def cells_sha256(cells: Sequence[tuple[str, str]]) -> str:
    """Digest of chosen cells, in dispatch order."""
    return digest(pairs(cells))


def child_manifest(
    parent: Mapping[str, Json], cases: Sequence[Mapping[str, Json]], cells: Sequence[tuple[str, str]]
) -> dict[str, Json]:
    """The manifest to freeze.

    Targets without a chosen cell are left out, but kept as auxiliaries where a benchmark has them judge or simulate.

    Args:
        parent: the parent's frozen manifest.
        cases: the parent's inline cases; empty when a dataset is bound.
        cells: (case id, target id) in dispatch order.
    """
    manifest = {key: value for key, value in parent.items() if key not in _LEFT_OUT}
    name = str(parent.get("name") or DEFAULT_NAME)
    manifest["name"] = name if name.startswith(NAME_PREFIX) else f"{NAME_PREFIX}{name}"[:MAX_NAME]
    if parent.get("output_policy") == "native":
        # It is the largest window of the targets, and the target with the largest may be left out.
        limits = parent["limits"]
        assert isinstance(limits, dict)
        manifest["limits"] = {key: value for key, value in limits.items() if key != "max_output_tokens"}
    if "dataset" not in parent:
        manifest["cases"] = [dict(case) for case in cases]
    chosen = {target for _, target in cells}
    manifest["targets"] = [target for target in _targets(parent) if target["id"] in chosen]
    idle = {str(target["id"]): target for target in _targets(parent) if target["id"] not in chosen}
    options, auxiliary = parent.get("benchmark_options") or {}, parent.get("auxiliary_targets") or {}
    assert isinstance(options, dict)
    assert isinstance(auxiliary, dict)
    judges: dict[str, Json] = {name: idle[name] for _, name in benchmark_options.referenced(options) if name in idle}
    if auxiliary or judges:
        manifest["auxiliary_targets"] = auxiliary | judges
    manifest["execution_cells"] = pairs(cells)
    return manifest


def check_same_terms(parent: Mapping[str, Json], child: Mapping[str, Json]) -> None:
    """Raises: `Conflict` (`PARENT_PLAN_CHANGED`) unless the child's cells are asked exactly as the parent's were: program,
    registry and options may have moved on since."""
    differing = [name for name in _TERMS if (parent.get(name) or None) != (child.get(name) or None)]
    before = {str(target["id"]): target for target in _targets(parent)}
    differing += [f"targets.{target['id']}" for target in _targets(child) if before.get(str(target["id"])) != target]
    if differing:
        names = ", ".join(differing)
        sentence = f"the parent cannot be recovered: {names} would not be what it was when the parent was frozen"
        raise Conflict("PARENT_PLAN_CHANGED", sentence, fields=names)


def _targets(manifest: Mapping[str, Json]) -> list[dict[str, Json]]:
    found = manifest["targets"]
    assert isinstance(found, list)
    return [target for target in found if isinstance(target, dict)]


def with_recovery(frozen: FrozenPlan, parent: Mapping[str, Json], block: dict[str, Json]) -> FrozenPlan:
    """The frozen child with its `recovery` block, which names the request but not the experiment."""
    manifest = dict(frozen.manifest) | {"recovery": block}
    experiment = parent.get("experiment")
    if isinstance(experiment, dict):
        manifest["experiment"] = {"id": experiment["id"], "role": "recovery"}
    manifest = {key: manifest[key] for key in ORDER if key in manifest}
    return replace(frozen, manifest=manifest, manifest_sha256=plan_identity.manifest_sha256(manifest))
