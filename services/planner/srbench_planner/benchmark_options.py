"""Operator options by benchmark: judges, simulators, pins of harnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks
from srbench_planner.ports import BenchmarkSpec

ROLES = ("judge", "simulator")


def _seconds(value: Json, path: str) -> object:
    return checks.number(value, path, "seconds above 0", 0, 10**9, above=True)


RULES: dict[str, Callable[[Json, str], object]] = {
    "judge": checks.text,
    "simulator": checks.text,
    "grader_version": checks.text,
    "release": checks.text,
    "source_revision": checks.text,
    "sandbox_image": checks.text,
    "task_images": checks.obj,
    "max_steps": lambda value, path: checks.integer(value, path, 1, 1000),
    "test_timeout_s": _seconds,
    "grade_timeout_s": _seconds,
}


def frozen_options(value: Json, specs: Mapping[str, BenchmarkSpec]) -> dict[str, Json]:
    """The options by benchmark, empty ones left out.

    Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`).
    """
    if value is None:
        return {}
    found = checks.obj(value, "benchmark_options")
    checks.known_keys(found, specs, "benchmark_options")
    frozen: dict[str, Json] = {}
    for benchmark, given in found.items():
        path = f"benchmark_options.{benchmark}"
        options = checks.obj({} if given is None else given, path)
        checks.known_keys(options, RULES, path)
        kept: dict[str, Json] = {key: item for key, item in options.items() if item is not None}
        for key, item in kept.items():
            RULES[key](item, f"{path}.{key}")
        if kept:
            frozen[benchmark] = kept
    return frozen


def referenced(options: Mapping[str, Json]) -> Iterable[tuple[str, str]]:
    """Each judge and simulator named in `options`: (path, target id)."""
    for benchmark, given in options.items():
        if isinstance(given, dict):
            for role in ROLES:
                if isinstance(given.get(role), str):
                    yield f"benchmark_options.{benchmark}.{role}", str(given[role])


def check_references(options: Mapping[str, Json], singles: set[str]) -> None:
    """Refuses a judge or simulator that is no target of kind `single` in the plan."""
    for path, name in referenced(options):
        if name not in singles:
            raise checks.bad(
                path, name, "the id of a target of kind single in targets or auxiliary_targets", "NO_SUCH_TARGET"
            )


def check_live(options: Mapping[str, Json], used: Iterable[BenchmarkSpec]) -> None:
    """Refuses a plan whose benchmarks cannot be graded: a judge benchmark without a judge.

    Raises: `InvalidInput` (`MISSING_FIELD`).
    """
    for spec in used:
        given = options.get(spec.id)
        if spec.grader == "judge" and not (isinstance(given, dict) and given.get("judge")):
            raise InvalidInput(
                "MISSING_FIELD",
                f"benchmark_options.{spec.id}.judge is missing; expected the id of the target that judges its answers",
                field=f"benchmark_options.{spec.id}.judge",
            )
