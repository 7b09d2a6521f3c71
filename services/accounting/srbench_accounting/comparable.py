"""Whether two runs answered the same questions under the same rules.

What must be equal is what can change an answer, a score or a price. A limit that differs does not matter when no cell of
either run ran into it; concurrency, labels and paths never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from srbench_kit.errors import Conflict, InvalidInput, SrBenchError

if TYPE_CHECKING:
    from srbench_kit.values import Json

# Each limit with the reasons by which a cell shows that it ran into it. `output_limit` stands for every cut of the output.
RAN_INTO: Mapping[str, frozenset[str]] = {
    "total_timeout_s": frozenset({"deadline_exceeded"}),
    "idle_timeout_s": frozenset({"idle_timeout"}),
    "case_timeout_s": frozenset({"deadline_exceeded"}),
    "max_run_seconds": frozenset({"deadline_exceeded", "run_stopped"}),
    "max_cost_picodollars": frozenset({"budget_exhausted", "run_stopped"}),
    "max_failed_cells": frozenset({"run_stopped"}),
    "max_calls_per_case": frozenset({"call_limit"}),
    "max_output_tokens": frozenset({"output_limit", "output_bytes_limit"}),
    "max_output_chars": frozenset({"output_limit", "output_bytes_limit"}),
    "max_log_bytes": frozenset({"output_bytes_limit"}),
    "repetition_window": frozenset({"output_limit"}),
    "repetition_limit": frozenset({"output_limit"}),
    "admission_wait_s": frozenset(
        {"rate_limited", "overloaded", "connect_failed", "name_not_resolved", "tls_failed"},
    ),
}
OUTPUT_LIMIT = "output_limit"
OVER = ("completed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What two plans must share. Objects are compared key by key; an absent and an empty one are equal.

    Attributes:
        sampling: generation parameters common to all targets.
        limits: every limit but concurrency, by name.
        benchmark_options: of the benchmarks in use, without the names of judges and simulators.
        benchmark_weights: of the benchmarks in use.
        evaluators: model and parameters of each judge and simulator, by benchmark and role.
        native_limits: model windows, under output policy `native` only.
        prices: price by model name.
        singles: model and parameters of each single model, by target id: one id must mean one thing.
    """

    version: str = "sr-bench-1.0"
    output_policy: str = "bounded"
    sampling: Json = None
    limits: Json = None
    benchmark_options: Json = None
    benchmark_weights: Json = None
    adapter_versions: Json = None
    native_limits: Json = None
    evaluators: Json = None
    prices: Json = None
    singles: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """How a run's cells ended.

    Attributes:
        planned: planned cells.
        ended: cells with an end.
        unfinished: of those, cells that were stopped or whose end is unknown.
        ungraded: cells that were answered and got no grade.
        reasons: why cells did not complete; `output_limit` when an answer was cut.
    """

    planned: int
    ended: int
    unfinished: int = 0
    ungraded: int = 0
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One side of a comparison, as far as it decides whether there can be one.

    Attributes:
        cases: ids of the cases that every target plans; `None` when the targets do not all plan the same.
        has_single: whether one of its targets is a single model.
    """

    run_id: str
    status: str
    mode: str
    rules: Rules
    endings: Endings
    cases: frozenset[str] | None
    case_sha256: str = ""
    has_single: bool = True


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in the way: a stable reason, a sentence, whether the run's state (not its plan) is at fault, and what the
    sentence mentions, as text."""

    reason: str
    message: str
    state: bool = field(default=False, compare=False)
    facts: Mapping[str, str] = field(default_factory=dict, compare=False)


def _difference(reason: str, message: str, *, state: bool = False, **facts: object) -> Difference:
    return Difference(reason, message, state, {key: str(value) for key, value in facts.items()})


def faults(side: Contender, *, baseline: bool) -> list[Difference]:
    """What keeps a run out of every comparison, in the order of the protocol."""
    found: list[Difference] = []
    run, name, ends = f"run {side.run_id}", side.run_id, side.endings
    if side.mode != "live":
        found.append(
            _difference("NOT_LIVE", f"{run} is a {side.mode}; only live runs are compared", run=name, mode=side.mode)
        )
    if side.status not in OVER:
        sentence = f"{run} is {side.status}; only completed and failed runs are compared"
        found.append(_difference("RUN_NOT_OVER", sentence, state=True, run=name, status=side.status))
    if baseline and not side.has_single:
        found.append(_difference("NO_SINGLE_MODEL", f"{run} has no single model to compare with", run=name))
    if side.cases is None:
        found.append(_difference("PARTIAL_MATRIX", f"the targets of {run} do not all answer the same cases", run=name))
    elif not side.cases:
        found.append(_difference("NO_CASES", f"{run} plans no cases", run=name))
    if ends.ended < ends.planned:
        count = ends.planned - ends.ended
        sentence = f"{count} of {ends.planned} cells of {run} have no end; wait for them, or recover them"
        found.append(_difference("CELLS_PENDING", sentence, state=True, run=name, count=count, planned=ends.planned))
    if ends.unfinished:
        sentence = f"{ends.unfinished} cells of {run} were stopped or lost, which is no wrong answer; recover them"
        found.append(_difference("CELLS_UNFINISHED", sentence, state=True, run=name, count=ends.unfinished))
    if ends.ungraded:
        sentence = f"{ends.ungraded} answers of {run} have no grade; a comparison needs right or wrong for each"
        found.append(_difference("CELLS_UNGRADED", sentence, state=True, run=name, count=ends.ungraded))
    return found


def differences(first: Contender, second: Contender) -> list[Difference]:
    """What keeps two runs from being compared with each other: the first difference of each kind."""
    found: list[Difference] = []
    if first.cases is not None and second.cases is not None and first.cases != second.cases:
        found.append(_cases(first, second))
    one, other = first.rules, second.rules
    found += _plain("VERSION_DIFFERS", "version", one.version, other.version)
    found += _plain("OUTPUT_POLICY_DIFFERS", "output_policy", one.output_policy, other.output_policy)
    found += _objects("SAMPLING_DIFFERS", "sampling", one.sampling, other.sampling)
    found += _limits(first, second)
    found += _objects("OPTIONS_DIFFER", "benchmark_options", one.benchmark_options, other.benchmark_options)
    found += _objects("WEIGHTS_DIFFER", "benchmark_weights", one.benchmark_weights, other.benchmark_weights)
    found += _objects("ADAPTERS_DIFFER", "adapter_versions", one.adapter_versions, other.adapter_versions)
    found += _objects("EVALUATORS_DIFFER", "evaluators", one.evaluators, other.evaluators)
    found += _shared("NATIVE_LIMITS_DIFFER", "native_limits", one.native_limits, other.native_limits)
    found += _shared("PRICES_DIFFER", "prices", one.prices, other.prices)
    found += _shared("PARAMETERS_DIFFER", "targets", one.singles, other.singles)
    return found


def refusal(found: list[Difference]) -> SrBenchError:
    """The error that tells all of `found`: the first one's reason, every sentence, every reason in `reasons`."""
    kind = Conflict if all(one.state for one in found) else InvalidInput
    first = next((one for one in found if not one.state), found[0]) if kind is InvalidInput else found[0]
    ordered = [first, *(one for one in found if one is not first)]
    reasons = ",".join(dict.fromkeys(one.reason for one in ordered))
    facts = {f"{one.reason}.{key}": value for one in reversed(ordered) for key, value in one.facts.items()}
    return kind(first.reason, "; ".join(one.message for one in ordered), reasons=reasons, **facts)


def check_pair(baseline: Contender, candidate: Contender, *, any_target: bool = False) -> None:
    """Raises: `InvalidInput` or `Conflict` with the reasons above, unless the two can be compared.

    Args:
        any_target: the baseline needs no single model, since another of its targets was named.
    """
    if baseline.run_id == candidate.run_id:
        run = baseline.run_id
        raise InvalidInput("SAME_RUN", f"run {run} cannot be compared with itself; name two runs", run=run)
    found = [
        *faults(baseline, baseline=not any_target),
        *faults(candidate, baseline=False),
        *differences(baseline, candidate),
    ]
    if found:
        raise refusal(found)


def content_difference(first: Mapping[str, str], second: Mapping[str, str]) -> Difference | None:
    """The first case, by id, whose content is not the same in both; both map case ids to digests."""
    for case_id in sorted(first):
        if first[case_id] != second.get(case_id):
            sentence = f"case {case_id} does not say the same in both runs"
            return _difference("CASE_CONTENT_DIFFERS", sentence, case=case_id)
    return None


def _cases(first: Contender, second: Contender) -> Difference:
    assert first.cases is not None
    assert second.cases is not None
    only_first, only_second = sorted(first.cases - second.cases), sorted(second.cases - first.cases)
    case, run = (only_first[0], first.run_id) if only_first else (only_second[0], second.run_id)
    count = len(only_first) + len(only_second)
    sentence = f"the runs do not plan the same cases: {count} differ, the first is {case}, only in {run}"
    return _difference("CASES_DIFFER", sentence, count=count, case=case, run=run)


def _plain(reason: str, name: str, one: Json, other: Json) -> list[Difference]:
    return [] if one == other else [_differs(reason, name, one, other)]


def _differs(reason: str, path: str, one: Json, other: Json, met: str = "") -> Difference:
    """Two values of one field; `met` when cells ran into the limit that it is."""
    sentence = f"{path} is {_shown(one)} and {_shown(other)}" + (f", and cells ran into it ({met})" if met else "")
    return _difference(reason, sentence, field=path, first=_shown(one), second=_shown(other), met=met)


def _objects(reason: str, name: str, one: Json, other: Json) -> list[Difference]:
    found = _first_path(one, other, name)
    return [] if found is None else [_differs(reason, *found)]


def _shared(reason: str, name: str, one: Json, other: Json) -> list[Difference]:
    """As `_objects`, for those keys alone that both have."""
    first, second = _object(one), _object(other)
    both = sorted(first.keys() & second.keys())
    return _objects(reason, name, {key: first[key] for key in both}, {key: second[key] for key in both})


def _limits(first: Contender, second: Contender) -> list[Difference]:
    one, other = _object(first.rules.limits), _object(second.rules.limits)
    seen = first.endings.reasons | second.endings.reasons
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) == other.get(name):
            continue
        # A limit that nobody has heard of may do anything.
        met = sorted(seen & RAN_INTO[name]) if name in RAN_INTO else ["any"]
        if met:
            values = one.get(name), other.get(name)
            return [_differs("LIMITS_DIFFER", f"limits.{name}", *values, met=", ".join(met))]
    return []


def _first_path(one: Json, other: Json, path: str) -> tuple[str, Json, Json] | None:
    """The first place where two JSON values differ, and what stands there; an absent and an empty object are equal."""
    if _same(one, other):
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            found = _first_path(one.get(key), other.get(key), f"{path}.{key}")
            if found is not None:
                return found
    return path, one, other


def _same(one: Json, other: Json) -> bool:
    empty: Iterable[Json] = (None, {})
    return (one in empty and other in empty) or (one == other and isinstance(one, bool) == isinstance(other, bool))


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _shown(value: Json) -> str:
    text = "absent" if value is None else repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
