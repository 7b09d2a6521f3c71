"""Whether two runs answered the same question under the same rules."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from srbench_kit.errors import InvalidInput

if TYPE_CHECKING:
    from srbench_kit.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What must be equal in two plans for their answers to be compared.

    Budget, concurrency, run time, labels and paths are no part of it: they cannot change an answer or a grade.

    Attributes:
        answer_limits: the limits that can cut or forbid an answer, by name.
        benchmark_options: absent and empty are the same.
        native_limits: model windows, under output policy `native` only.
        evaluators: identity (model and generation parameters) of each judge and simulator in use, by id.
    """

    case_sha256: str
    mode: str
    output_policy: str
    sampling: Json
    benchmark_options: Json
    benchmark_weights: Json
    adapter_versions: Json
    answer_limits: Json
    native_limits: Json
    evaluators: Json


def differing_rules(first: Rules, second: Rules) -> tuple[str, ...]:
    """Names of the rules in which the two differ."""
    return tuple(field.name for field in fields(Rules) if _plain(first, field.name) != _plain(second, field.name))


def check_rules(baseline: Rules, candidate: Rules) -> None:
    """Raises `InvalidInput` (`RULES_DIFFER`) naming every rule in which the two runs differ."""
    differing = differing_rules(baseline, candidate)
    if differing:
        names = ", ".join(differing)
        raise InvalidInput("RULES_DIFFER", f"the runs differ in {names}; their answers cannot be compared", rules=names)


def _plain(rules: Rules, name: str) -> Json:
    value: Json = getattr(rules, name)
    return None if value == {} else value
