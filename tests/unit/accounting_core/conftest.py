"""Evaluations from JSON, in the form of the shared goldens, as columns; and the small ones kept beside these tests."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from srbench_accounting.columns import (
    CallColumns,
    CallEnd,
    CellEnd,
    Labels,
    OutcomeColumns,
    PlanColumns,
    Role,
    floats,
    ints,
)
from srbench_accounting.compare import RunFigures
from srbench_accounting.pricing import Price, cache_neutral_cost, cost_of
from srbench_accounting.report import RunFacts, TargetProfile, make_report
from srbench_accounting.usage import Usage

from tests.goldens import SHARED

BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


def picodollars(per_million: float | str) -> int:
    value = Decimal(str(per_million)) * 10**6
    assert value == int(value)
    return int(value)


def usage_of(raw: dict[str, int] | None) -> Usage:
    if raw is None:
        return Usage()
    return Usage(**{name: raw[name] for name in BUCKETS}, prompt_tokens=sum(raw[name] for name in BUCKETS[:3]))


def call_columns(
    side: dict[str, Any], prices: dict[str, Price], cases: dict[str, int], targets: dict[str, int]
) -> CallColumns:
    calls = side["calls"]
    usages = [usage_of(call["usage"]) for call in calls]
    priced = [prices[call["selected_model"] or call["model"]] for call in calls]
    return CallColumns(
        case=ints(cases[call["case_id"]] for call in calls),
        target=ints(targets[call["target_id"]] for call in calls),
        role=ints(Role[call["role"].upper()] for call in calls),
        end=ints(CallEnd[call["status"].upper()] for call in calls),
        input_tokens=ints(usage.input_tokens for usage in usages),
        cached_input_tokens=ints(usage.cached_input_tokens for usage in usages),
        cache_write_tokens=ints(usage.cache_write_tokens for usage in usages),
        output_tokens=ints(usage.output_tokens for usage in usages),
        prompt_tokens=ints(usage.prompt_tokens for usage in usages),
        cost=ints(cost_of(usage, price).exact for usage, price in zip(usages, priced, strict=True)),
        cache_neutral_cost=ints(cache_neutral_cost(usage, price) for usage, price in zip(usages, priced, strict=True)),
        reserved=ints(call.get("reserved") for call in calls),
        inference_calls=ints(call["inference_call_count"] for call in calls),
        cache_read_reported=ints(None if call["usage"] is None else 1 for call in calls),
        model=Labels.of(call["model"] for call in calls),
        selected_model=Labels.of(call["selected_model"] for call in calls),
        decision=Labels.of(call["decision"] for call in calls),
        finish_reason=Labels.of(call["finish_reason"] for call in calls),
        latency_s=floats(call["latency_s"] for call in calls),
        ttft_s=floats(call["ttft_s"] for call in calls),
        first_token_lag_s=floats(call.get("first_token_lag_s") for call in calls),
    )


def outcome_columns(side: dict[str, Any], cases: dict[str, int], targets: dict[str, int]) -> OutcomeColumns:
    rows = side["results"]
    return OutcomeColumns(
        case=ints(cases[row["case_id"]] for row in rows),
        target=ints(targets[row["target_id"]] for row in rows),
        end=ints(CellEnd.DONE if row["status"] == "completed" else CellEnd.FAILED for row in rows),
        reason=Labels.of(row.get("error") for row in rows),
        correct=ints(row.get("correct") for row in rows),
        strict_format=ints(row.get("strict_format") for row in rows),
        output_limit=ints(bool(row.get("output_limit")) for row in rows),
        latency_s=floats(row["latency_s"] for row in rows),
        queue_wait_s=floats(row.get("queue_wait_s") for row in rows),
        finish_s=floats(row.get("finish_s") for row in rows),
    )


def figures_of(evaluation: dict[str, Any], name: str) -> RunFigures:
    side, case_ids = evaluation[name], evaluation["case_order"]
    target_ids = [target["id"] for target in side["targets"]]
    cases = {case: index for index, case in enumerate(case_ids)}
    targets = {target: index for index, target in enumerate(target_ids)}
    prices = {
        model: Price(**{rate: picodollars(usd) for rate, usd in rates.items()})
        for model, rates in evaluation["prices"].items()
    }
    plan = PlanColumns(
        case_ids=case_ids,
        case_benchmark=Labels.of(case.split("/")[0] for case in case_ids),
        target_ids=target_ids,
        cell_case=ints(index for index in range(len(case_ids)) for _ in target_ids),
        cell_target=ints(index for _ in case_ids for index in range(len(target_ids))),
        weights=evaluation["weights"],
    )
    outcomes = outcome_columns(side, cases, targets)
    profiles = [TargetProfile(id=one["id"], model=one["model"], kind=one["kind"]) for one in side["targets"]]
    facts = RunFacts(
        run_id=name,
        status=side["report"]["status"],
        mode=side["report"]["mode"],
        cost_policy=side["report"]["cost_policy"],
        created_s=100.0,
        updated_s=160.0,
        profile="quick",
        target_profiles=profiles,
    )
    report = make_report(facts, plan, outcomes, call_columns(side, prices, cases, targets))
    singles = frozenset(target["id"] for target in side["targets"] if target["kind"] == "single")
    return RunFigures(plan=plan, outcomes=outcomes, report=report, singles=singles)


@pytest.fixture
def figures() -> Callable[[dict[str, Any], str], RunFigures]:
    """(evaluation, `baseline` or `candidate`) → its figures."""
    return figures_of


@pytest.fixture
def shared() -> Path | None:
    """The folder of shared cases and goldens, where there is one."""
    return SHARED
