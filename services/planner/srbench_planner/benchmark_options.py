"""Operator options by benchmark: judges, simulators, pins of harnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks
from srbench_planner.ports import BenchmarkSpec

ROLES = ("judge", "second_judge", "simulator")
RESPONSE_FORMATS = ("none", "json_object", "json_schema")
TAU3_RELEASE = "1.0.1"
JUDGE_VERSION = "sr-bench-reference-judge-v1"


def _seconds(value: Json, path: str) -> object:
    return checks.number(value, path, "seconds above 0", 0, 10**9, above=True)


RULES: dict[str, Callable[[Json, str], object]] = {
    "judge": checks.text,
    "second_judge": checks.text,
    "judge_response_format": lambda value, path: checks.one_of(value, path, RESPONSE_FORMATS),
    "simulator": checks.text,
    "grader_version": checks.text,
    "release": checks.text,
    "source_revision": checks.text,
    "sandbox_image": checks.text,
    "task_images": checks.obj,
    "max_steps": lambda value, path: checks.integer(value, path, 1, 1000),
    "test_timeout_s": _seconds,
    "grade_timeout_s": _seconds,
    "test_data_sha256": checks.sha256,
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


def unknown_references(options: Mapping[str, Json], singles: set[str]) -> Iterable[InvalidInput]:
    """Each judge or simulator that is no target of kind `single` in the plan."""
    for path, name in referenced(options):
        if name not in singles:
            wanted = "the id of a target of kind single in targets or auxiliary_targets"
            yield checks.bad(path, name, wanted, "NO_SUCH_TARGET")


def missing_for_live(
    options: Mapping[str, Json], used: Iterable[BenchmarkSpec], max_calls: int, cases: Iterable[Mapping[str, Json]] = ()
) -> Iterable[InvalidInput]:
    """What keeps a live plan from being graded: each judge that is not named, each call limit that leaves too few calls,
    each case in steps that has none."""
    listed = list(cases)
    for spec in used:
        given = options.get(spec.id)
        path = f"benchmark_options.{spec.id}"
        if spec.id == "tau3" and isinstance(given, dict) and given.get("release", TAU3_RELEASE) != TAU3_RELEASE:
            yield checks.bad(f"{path}.release", given["release"], TAU3_RELEASE)
        if spec.driver == "scicode":
            yield from _steps_missing(spec, [case for case in listed if case.get("benchmark") == spec.id], max_calls)
        if spec.grader != "judge":
            continue
        if not (isinstance(given, dict) and given.get("judge")):
            yield InvalidInput(
                "MISSING_FIELD",
                f"{path}.judge is missing; expected the id of the target that judges its answers",
                field=f"{path}.judge",
            )
            continue
        if given.get("grader_version", JUDGE_VERSION) != JUDGE_VERSION:
            yield checks.bad(f"{path}.grader_version", given["grader_version"], JUDGE_VERSION)
        if given.get("second_judge") == given["judge"]:
            yield checks.bad(f"{path}.second_judge", given["judge"], "another target than judge")
        needed = 3 if given.get("second_judge") else 2
        if max_calls < needed:
            yield checks.bad(
                "limits.max_calls_per_case", max_calls, f"at least {needed}: {spec.id} has its answers judged by a model"
            )


def _steps_missing(spec: BenchmarkSpec, cases: Iterable[Mapping[str, Json]], max_calls: int) -> Iterable[InvalidInput]:
    counts = {str(case["id"]): step_count(case) for case in cases}
    empty = [name for name, count in counts.items() if not count]
    if empty:
        message = f"{empty[0]} holds no steps to ask; prepare the dataset again with this version"
        yield InvalidInput("MISSING_STEPS", message, case_id=empty[0], count=len(empty))
    most = max(counts.values(), default=0)
    if most > max_calls:
        yield checks.bad("limits.max_calls_per_case", max_calls, f"at least {most}, the steps of a case of {spec.id}")


def step_count(case: Mapping[str, Json]) -> int:
    """How many questions a case in steps asks: its user messages that say something."""
    return len(step_prompts(case))


def step_prompts(case: Mapping[str, Json]) -> list[list[Json]]:
    """The messages of a case in steps as each of its questions is asked, answers left out."""
    messages = case.get("messages")
    found = messages if isinstance(messages, list) else []
    asked = [
        place
        for place, each in enumerate(found)
        if isinstance(each, dict) and each.get("role") == "user" and each.get("content")
    ]
    return [found[: place + 1] for place in asked]
