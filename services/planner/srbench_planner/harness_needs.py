"""What a live plan must give the harnesses of its benchmarks: targets for their roles, time and calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks
from srbench_planner.ports import BenchmarkSpec, HarnessNeeds, HarnessSpec


def missing(
    used: Iterable[BenchmarkSpec],
    cases: Sequence[Mapping[str, Json]],
    options: Mapping[str, Json],
    limits: Mapping[str, Json],
) -> Iterable[InvalidInput]:
    """Each role without a target, and each limit that is too small for a case, the case that needs most named."""
    for spec in used:
        harness = spec.harness
        if harness is None:
            continue
        given = options.get(spec.id)
        for role in harness.roles:
            if not (isinstance(given, dict) and given.get(role)):
                path = f"benchmark_options.{spec.id}.{role}"
                message = f"{path} is missing; expected the id of the target that is its {role}"
                yield InvalidInput("MISSING_FIELD", message, field=path)
        own = [case for case in cases if case.get("benchmark") == spec.id]
        yield from _too_small(spec.id, harness, own, given, limits)


def _too_small(
    benchmark: str,
    harness: HarnessSpec,
    cases: Sequence[Mapping[str, Json]],
    given: Json,
    limits: Mapping[str, Json],
) -> Iterable[InvalidInput]:
    needs = [(str(case.get("id")), _needs(harness, case)) for case in cases]
    if not needs:
        return
    steps = given.get("max_steps") if isinstance(given, dict) else None
    most = float(steps) if isinstance(steps, int) else float("inf")
    wanted = {
        "case_timeout_s": max((need.case_timeout_s, name) for name, need in needs),
        "max_run_seconds": max((need.case_timeout_s, name) for name, need in needs),
        "max_calls_per_case": max((min(need.calls, most), name) for name, need in needs),
    }
    for key, (least, name) in wanted.items():
        value = limits[key]
        assert isinstance(value, int | float)
        if value < least:
            yield checks.bad(f"limits.{key}", value, f"at least {least:g}: {name} of {benchmark} needs as much")


def _needs(harness: HarnessSpec, case: Mapping[str, Json]) -> HarnessNeeds:
    metadata = case.get("metadata")
    return harness.needs(metadata if isinstance(metadata, dict) else {})
