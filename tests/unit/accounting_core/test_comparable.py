"""What keeps two runs from being compared: every rule with its reason and a sentence, and what does not matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from srbench_accounting.comparable import (
    RAN_INTO,
    Contender,
    Endings,
    Rules,
    check_pair,
    content_difference,
    differences,
    faults,
    refusal,
)
from srbench_kit.errors import Conflict, InvalidInput, SrBenchError

LIMITS = {
    "total_timeout_s": 180,
    "idle_timeout_s": 30,
    "case_timeout_s": 600,
    "max_run_seconds": 1800,
    "max_cost_picodollars": 5,
    "max_output_tokens": 100,
    "max_output_chars": 1000,
    "repetition_window": 128,
    "repetition_limit": 5,
    "max_calls_per_case": 32,
    "max_failed_cells": 25,
    "admission_wait_s": 20,
    "max_log_bytes": 10,
}
RULES = Rules(
    sampling={"temperature": 0},
    limits=LIMITS,
    benchmark_options={"tau3": {"max_steps": 3}},
    benchmark_weights={"hle": 1},
    adapter_versions={"hle": "v1"},
    native_limits={"m": {"context_window": 1}},
    evaluators={"hle.judge": {"model": "j", "parameters": {}}},
    prices={"m": {"input": 1}, "only-here": {"input": 2}},
    singles={"a": {"model": "m", "parameters": {"temperature": 0}}},
)
BASE = Contender(
    run_id="base",
    status="completed",
    mode="live",
    rules=RULES,
    endings=Endings(planned=4, ended=4),
    cases=frozenset({"q1", "q2"}),
)
OTHER = replace(BASE, run_id="cand", status="failed")


def with_rules(**changes: Any) -> Contender:
    return replace(OTHER, rules=replace(RULES, **changes))


def test_runs_under_the_same_rules_are_comparable() -> None:
    check_pair(BASE, OTHER)


RULE_CASES: list[tuple[str, dict[str, Any], str]] = [
    ("VERSION_DIFFERS", {"version": "sr-bench-2.0"}, "sr-bench-2.0"),
    ("OUTPUT_POLICY_DIFFERS", {"output_policy": "native"}, "output_policy is 'bounded' and 'native'"),
    ("SAMPLING_DIFFERS", {"sampling": {"temperature": 1}}, "sampling.temperature is 0 and 1"),
    ("OPTIONS_DIFFER", {"benchmark_options": {"tau3": {"max_steps": 9}}}, "benchmark_options.tau3.max_steps is 3 and 9"),
    ("OPTIONS_DIFFER", {"benchmark_options": {}}, "benchmark_options.*absent|benchmark_options is .* and"),
    ("WEIGHTS_DIFFER", {"benchmark_weights": {"hle": 2}}, "benchmark_weights.hle is 1 and 2"),
    ("ADAPTERS_DIFFER", {"adapter_versions": {"hle": "v2"}}, "adapter_versions.hle is 'v1' and 'v2'"),
    ("EVALUATORS_DIFFER", {"evaluators": {"hle.judge": {"model": "k"}}}, "evaluators.hle.judge.model is 'j' and 'k'"),
    ("NATIVE_LIMITS_DIFFER", {"native_limits": {"m": {"context_window": 2}}}, "native_limits.m.context_window is 1 and 2"),
    ("PRICES_DIFFER", {"prices": {"m": {"input": 9}}}, "prices.m.input is 1 and 9"),
    (
        "PARAMETERS_DIFFER",
        {"singles": {"a": {"model": "m", "parameters": {"temperature": 1}}}},
        "targets.a.parameters.temperature is 0 and 1",
    ),
]


@pytest.mark.parametrize(("reason", "changes", "sentence"), RULE_CASES)
def test_a_rule_that_differs_is_refused_with_its_reason_and_place(
    reason: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        check_pair(BASE, with_rules(**changes))
    assert caught.value.reason == reason


def test_every_kind_of_difference_is_named_once_and_all_are_listed() -> None:
    other = with_rules(sampling={"temperature": 1, "top_p": 0.5}, adapter_versions={"hle": "v2"})
    with pytest.raises(InvalidInput) as caught:
        check_pair(BASE, other)
    assert caught.value.reason == "SAMPLING_DIFFERS"
    assert caught.value.facts["reasons"] == "SAMPLING_DIFFERS,ADAPTERS_DIFFER"
    assert "top_p" not in caught.value.message
    assert "adapter_versions.hle" in caught.value.message


@pytest.mark.parametrize(
    "changes",
    [
        {"benchmark_options": {"tau3": {"max_steps": 3}}},
        {"prices": {"m": {"input": 1}, "new": {"input": 7}}},
        {"singles": {"b": {"model": "m", "parameters": {"temperature": 1}}}},
        {"native_limits": None},
    ],
    ids=["same", "prices of other models", "a profile under its own id", "windows of other models"],
)
def test_what_cannot_change_an_answer_a_score_or_a_price_does_not_block(changes: dict[str, Any]) -> None:
    check_pair(BASE, with_rules(**changes))


def test_absent_and_empty_options_are_equal() -> None:
    first = replace(BASE, rules=replace(RULES, benchmark_options={}))
    check_pair(first, with_rules(benchmark_options=None))


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_a_limit_blocks_only_when_a_cell_ran_into_it(name: str) -> None:
    other = with_rules(limits={**LIMITS, name: 7_777})
    check_pair(BASE, other)
    for reason in sorted(RAN_INTO[name]):
        met = replace(BASE, endings=replace(BASE.endings, reasons=frozenset({"http_error", reason})))
        with pytest.raises(
            InvalidInput, match=rf"limits.{name} is .* and 7777, and cells ran into it \({reason}\)"
        ) as caught:
            check_pair(met, other)
        assert caught.value.reason == "LIMITS_DIFFER"


def test_a_limit_that_is_met_and_equal_does_not_block() -> None:
    met = Endings(planned=4, ended=4, reasons=frozenset({"deadline_exceeded"}))
    check_pair(replace(BASE, endings=met), replace(OTHER, endings=met))


def test_an_unknown_limit_always_blocks() -> None:
    with pytest.raises(InvalidInput, match=r"limits\.brand_new"):
        check_pair(BASE, with_rules(limits={**LIMITS, "brand_new": 1}))


STATE_CASES: list[tuple[str, dict[str, Any], type[SrBenchError]]] = [
    ("NOT_LIVE", {"mode": "preview"}, InvalidInput),
    ("RUN_NOT_OVER", {"status": "running"}, Conflict),
    ("RUN_NOT_OVER", {"status": "cancelled"}, Conflict),
    ("RUN_NOT_OVER", {"status": "interrupted"}, Conflict),
    ("PARTIAL_MATRIX", {"cases": None}, InvalidInput),
    ("NO_CASES", {"cases": frozenset()}, InvalidInput),
    ("CELLS_PENDING", {"endings": Endings(planned=4, ended=3)}, Conflict),
    ("CELLS_UNFINISHED", {"endings": Endings(planned=4, ended=4, unfinished=1)}, Conflict),
    ("CELLS_UNGRADED", {"endings": Endings(planned=4, ended=4, ungraded=1)}, Conflict),
]


@pytest.mark.parametrize(("reason", "changes", "kind"), STATE_CASES)
def test_a_run_that_can_be_no_side_says_why(reason: str, changes: dict[str, Any], kind: type[SrBenchError]) -> None:
    for pair in ((replace(BASE, **changes), OTHER), (BASE, replace(OTHER, **changes))):
        with pytest.raises(kind) as caught:
            check_pair(*pair)
        assert caught.value.reason == reason
    assert [one.reason for one in faults(replace(BASE, **changes), baseline=True)] == [reason]


def test_a_baseline_needs_a_single_model_and_a_candidate_does_not() -> None:
    routers_only = replace(OTHER, has_single=False)
    check_pair(BASE, routers_only)
    with pytest.raises(InvalidInput) as caught:
        check_pair(routers_only, BASE)
    assert caught.value.reason == "NO_SINGLE_MODEL"


def test_a_run_is_not_compared_with_itself() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_pair(BASE, BASE)
    assert caught.value.reason == "SAME_RUN"


def test_other_cases_are_counted_and_the_first_is_named() -> None:
    other = replace(OTHER, cases=frozenset({"q2", "q9"}))
    with pytest.raises(InvalidInput, match="2 differ, the first is q1, only in base") as caught:
        check_pair(BASE, other)
    assert caught.value.reason == "CASES_DIFFER"
    more = replace(OTHER, cases=frozenset({"q1", "q2", "q3"}))
    assert "1 differ, the first is q3, only in cand" in differences(BASE, more)[0].message


def test_cases_of_one_name_must_say_the_same() -> None:
    assert content_difference({"q1": "a", "q2": "b"}, {"q2": "b", "q1": "a"}) is None
    found = content_difference({"q1": "a", "q2": "b"}, {"q1": "a", "q2": "c"})
    assert found is not None
    assert (found.reason, "q2" in found.message) == ("CASE_CONTENT_DIFFERS", True)


def test_a_plan_that_differs_is_told_before_a_run_that_is_not_over() -> None:
    error = refusal([*faults(replace(BASE, status="running"), baseline=True), *differences(BASE, with_rules(sampling={}))])
    assert isinstance(error, InvalidInput)
    assert error.facts["reasons"] == "SAMPLING_DIFFERS,RUN_NOT_OVER"
