"""Freezing: from a manifest that a person wrote to the one that is executed. Freezing the result changes nothing.

The checks run in the order of the protocol, so that the same manifest always gives the same first error.
"""

from __future__ import annotations

from dataclasses import dataclass

from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import (
    benchmark_options,
    case_rules,
    checks,
    claims,
    dataset_binding,
    harness_needs,
    limits,
    manifest,
    native,
    plan_identity,
    registry_policy,
    sampling,
    targets,
)
from srbench_planner.cells import CellMatrix, pick_cells
from srbench_planner.ports import Benchmarks, BenchmarkSpec, CaseFiles
from srbench_planner.worst_case import Planned, Spend, worst_case

# How a frozen manifest is laid out.
ORDER = (
    *("version", "mode", "profile", "seed", "name", "cost_policy", "output_policy", "experiment", "dataset", "cases"),
    *("targets", "auxiliary_targets", "benchmark_options", "limits", "sampling", "execution_cells", "preview_context"),
    *("limitations", "claims", "baseline_run_id", "recovery"),
    *("case_sha256", "benchmark_weights", "adapter_versions", "plan_sha256"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The operator's registry.

    Attributes:
        binding: whether the caller may freeze nothing else; otherwise it stands for targets that are named
            by id, and fills in options and judges of which the manifest says nothing.
    """

    targets: list[dict[str, Json]]
    options: dict[str, Json]
    binding: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPlan:
    """A frozen manifest and what follows from it.

    Attributes:
        manifest: the frozen manifest; with `cases` only where no dataset is bound.
        cases: all cases in order.
        matrix: the planned cells.
        manifest_sha256: what idempotency keys compare.
        reviewed_sha256: the `plan_sha256` that the input carried; empty when it carried none.
        worst_case: the most that all its calls can cost.
        missing: what it lacks before it can be graded.
    """

    manifest: dict[str, Json]
    cases: list[dict[str, Json]]
    matrix: CellMatrix
    manifest_sha256: str
    reviewed_sha256: str
    worst_case: Spend
    missing: tuple[InvalidInput, ...] = ()

    @property
    def plan_sha256(self) -> str:
        """The plan's name."""
        return str(self.manifest["plan_sha256"])

    @property
    def case_sha256(self) -> str:
        """Digest of the ordered cases."""
        return str(self.manifest["case_sha256"])


class Freezer:
    """Freezes manifests against the registered benchmarks and the datasets of a store."""

    def __init__(self, benchmarks: Benchmarks, files: CaseFiles) -> None:
        self._benchmarks = benchmarks
        self._files = files

    def freeze(self, value: Json, registry: Registry | None = None, *, collect: bool = False) -> FrozenPlan:
        """The frozen plan of the manifest `value`. With `collect`, what the plan lacks before it can be graded is given in
        `missing` instead of being raised.

        Raises: `InvalidInput` with the field at fault, `NotFound` for files, `Forbidden` for what is not registered.
        """
        specs = self._benchmarks.specs
        found, head = manifest.read_head(value)
        binding = dataset_binding.bind(found, head, self._files)
        if registry is not None:
            found = _registered(found, registry, _benchmarks_of(binding.cases))
        live = head["mode"] == "live"
        cases = case_rules.check_cases(binding.cases, specs, live=live, holdout=head["profile"] == "standard")
        if not live:
            case_rules.check_previewable(cases)
        frozen: dict[str, Json] = dict(head)
        own, auxiliary = _freeze_targets(found, head)
        bounds = _freeze_limits(found, head, own, auxiliary)
        plan_sampling = _freeze_sampling(found, head, own, auxiliary, bounds)
        frozen["sampling"] = plan_sampling
        ids = [str(case["id"]) for case in cases]
        matrix = pick_cells(found.get("execution_cells"), ids, [str(target["id"]) for target in own])
        manifest.check_experiment_role(head, {str(target["kind"]) for target in own})
        bounds.setdefault("max_failed_cells", limits.tolerance(len(matrix)))
        frozen["limits"] = {key: bounds[key] for key in limits.ORDER}
        frozen["case_sha256"] = digest(list(cases))
        used = [spec for name, spec in specs.items() if name in _benchmarks_of(binding.cases)]
        frozen["benchmark_weights"] = _weights(found, self._benchmarks, used)
        frozen["adapter_versions"] = _same(found, "adapter_versions", {spec.id: spec.adapter_version for spec in used})
        options = benchmark_options.frozen_options(found.get("benchmark_options"), specs)
        singles = {str(target["id"]) for target in [*own, *auxiliary.values()] if target["kind"] == "single"}
        missing = tuple(benchmark_options.unknown_references(options, singles))
        if live:
            missing += _missing_for_live(options, used, cases, bounds)
        if missing and not (collect and live):
            raise missing[0]
        frozen["targets"] = list(own)
        optional: dict[str, Json] = {"auxiliary_targets": dict(auxiliary), "benchmark_options": options}
        optional["dataset"] = binding.dataset
        optional["cases"] = list(cases) if binding.dataset is None else None
        optional["claims"] = claims.freeze_claims(found.get("claims"), [str(target["id"]) for target in own])
        optional["execution_cells"] = _pairs(matrix, ids, own)
        frozen |= {key: item for key, item in optional.items() if item}
        frozen["plan_sha256"] = plan_identity.plan_sha256(frozen, matrix)
        return FrozenPlan(
            manifest={key: frozen[key] for key in ORDER if key in frozen},
            cases=cases,
            matrix=matrix,
            manifest_sha256=plan_identity.manifest_sha256(frozen),
            reviewed_sha256=str(found.get("plan_sha256") or ""),
            worst_case=worst_case(Planned(frozen, cases, specs), matrix),
            missing=missing,
        )


def _registered(found: dict[str, Json], registry: Registry, benchmarks: set[str]) -> dict[str, Json]:
    """The manifest with what the registry says of its targets and of the benchmarks that it uses."""
    if registry.binding:
        return registry_policy.apply_registry(found, registry.targets, registry.options, benchmarks)
    found = registry_policy.fill_in(found, registry.targets)
    if found.get("plan_sha256"):
        return found
    return registry_policy.apply_defaults(found, registry.targets, registry.options, benchmarks)


def _missing_for_live(
    options: dict[str, Json], used: list[BenchmarkSpec], cases: list[dict[str, Json]], bounds: dict[str, Json]
) -> tuple[InvalidInput, ...]:
    """What a live plan lacks before its cells can be asked and graded."""
    most_calls = bounds["max_calls_per_case"]
    assert isinstance(most_calls, int)
    return (
        *benchmark_options.missing_for_live(options, used, most_calls, cases),
        *harness_needs.missing(used, cases, options, bounds),
    )


def _benchmarks_of(cases: list[Json]) -> set[str]:
    names = (case.get("benchmark") for case in cases if isinstance(case, dict))
    return {name for name in names if isinstance(name, str)}


def _freeze_targets(
    found: dict[str, Json], head: dict[str, Json]
) -> tuple[list[dict[str, Json]], dict[str, dict[str, Json]]]:
    given = found.get("targets")
    if not isinstance(given, list) or not given:
        raise checks.bad("targets", given, "a list of at least one target")
    own = [targets.freeze_target(item, f"targets[{index}]") for index, item in enumerate(given)]
    auxiliary: dict[str, dict[str, Json]] = {}
    for name, item in checks.obj(found.get("auxiliary_targets") or {}, "auxiliary_targets").items():
        target = targets.freeze_target(item, f"auxiliary_targets.{name}")
        if target["id"] != name:
            raise checks.bad(f"auxiliary_targets.{name}.id", target["id"], f"its key, {name}")
        auxiliary[name] = target
    targets.unique_ids([*own, *auxiliary.values()], "targets")
    priced = head["cost_policy"] == "require_priced"
    for path, target in _paths(own, auxiliary):
        if head["mode"] == "live":
            targets.check_live(target, path, priced=priced)
        elif path.startswith("targets") and target["kind"] != "mom":
            raise checks.bad(f"{path}.kind", target["kind"], "mom in mode preview")
        elif path.startswith("targets") and "preview_url" not in target:
            raise checks.missing(f"{path}.preview_url", "the address of routing previews in mode preview")
    return own, auxiliary


def _paths(own: list[dict[str, Json]], auxiliary: dict[str, dict[str, Json]]) -> list[tuple[str, dict[str, Json]]]:
    numbered = [(f"targets[{index}]", target) for index, target in enumerate(own)]
    return numbered + [(f"auxiliary_targets.{name}", target) for name, target in auxiliary.items()]


def _freeze_limits(
    found: dict[str, Json], head: dict[str, Json], own: list[dict[str, Json]], auxiliary: dict[str, dict[str, Json]]
) -> dict[str, Json]:
    given = found.get("limits")
    bounds = limits.frozen_limits(given)
    if head["output_policy"] == "native":
        asked = given.get("max_output_tokens") if isinstance(given, dict) else None
        priced = head["cost_policy"] == "require_priced"
        bounds["max_output_tokens"] = native.native_ceiling(_paths(own, auxiliary), asked, priced=priced)
    return bounds


def _freeze_sampling(
    found: dict[str, Json],
    head: dict[str, Json],
    own: list[dict[str, Json]],
    auxiliary: dict[str, dict[str, Json]],
    bounds: dict[str, Json],
) -> dict[str, Json]:
    bounded = head["output_policy"] == "bounded"
    most = bounds["max_output_tokens"]
    assert isinstance(most, int)
    frozen = sampling.frozen_sampling(found.get("sampling"), most, bounded=bounded)
    for path, target in _paths(own, auxiliary):
        params = target.get("request_params")
        if isinstance(params, dict):
            sampling.check_effective(frozen, params, f"{path}.request_params", most, bounded=bounded)
    return frozen


def _weights(found: dict[str, Json], registered: Benchmarks, used: list[BenchmarkSpec]) -> Json:
    shown = registered.built_in | {spec.id for spec in used}
    return _same(found, "benchmark_weights", {name: s.weight for name, s in registered.specs.items() if name in shown})


def _same(found: dict[str, Json], key: str, registered: dict[str, Json]) -> Json:
    given = found.get(key)
    if given is not None and given != registered:
        raise checks.bad(key, given, f"absent, or as registered: {checks.show(registered)}")
    return registered


def _pairs(matrix: CellMatrix, ids: list[str], own: list[dict[str, Json]]) -> Json:
    if matrix.picked is None:
        return None
    pairs = [matrix.pair(cell) for cell in range(len(matrix))]
    return [{"case_id": ids[case], "target_id": own[target]["id"]} for case, target in pairs]
