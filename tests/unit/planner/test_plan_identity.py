"""What names a plan: everything that can change an answer, a score or a price, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from planner_doubles import PRICE, WEIGHTS, Files, case, freezer, manifest, target
from srbench_kit.canonical import digest, folded_digest

BASE = {
    "cost_policy": "require_priced",
    "targets": [target("t1", model="m1", prices={"m1": PRICE, "m2": PRICE}, request_params={"reasoning_effort": "low"})],
    "cases": [case(messages=[{"role": "system", "content": "s"}, {"role": "user", "content": "p"}])],
    "sampling": {"temperature": 0, "max_tokens": 64},
}


def named(**change: Any) -> str:
    return freezer().freeze(manifest(**(BASE | change))).plan_sha256


def requested(**change: Any) -> str:
    return freezer().freeze(manifest(**(BASE | change))).manifest_sha256


def with_target(**fields: Any) -> dict[str, Any]:
    return {"targets": [BASE["targets"][0] | fields]}


def test_the_published_digests_of_the_released_protocol_are_reproduced() -> None:
    released: dict[str, Any] = manifest() | {
        "mode": "live",
        "profile": "quick",
        "seed": 20260918,
        "name": "sr-bench",
        "output_policy": "bounded",
        "limits": {
            "concurrency": 1,
            "total_timeout_s": 180,
            "idle_timeout_s": 30,
            "max_output_tokens": 4096,
            "max_output_chars": 131072,
            "max_log_bytes": 8388608,
            "repetition_window": 128,
            "repetition_limit": 5,
            "max_cost_usd": 5.0,
            "max_run_seconds": 1800,
            "max_calls_per_case": 32,
            "case_timeout_s": 600,
        },
        "sampling": {"temperature": 0, "max_tokens": 4096},
        "benchmark_weights": WEIGHTS,
        "adapter_versions": {"mmlu-pro": "sr-bench-mcq-final-v2"},
    }
    released["case_sha256"] = digest(released["cases"])
    assert released["case_sha256"] == "e392b39f773d3513e532a738f2afe81be7f20ac4dd835f7466b6fde08dbf8efc"
    assert folded_digest(released) == "5a654b03ffcadb390113af27e7e827dc9b2280a047effcef56844a3b47c5cbd9"


def test_seven_variants_and_their_base_are_eight_plans() -> None:
    messages = [{"role": "system", "content": "s2"}, {"role": "user", "content": "p"}]
    repeated = [BASE["cases"][0], BASE["cases"][0] | {"id": "q1#2"}]
    variants: list[dict[str, Any]] = [
        {},
        with_target(id="t2"),
        with_target(model="m2"),
        {"sampling": {"temperature": 0.7, "max_tokens": 64}},
        {"sampling": {"temperature": 0, "max_tokens": 65}},
        {"cases": [case(messages=messages)]},
        {"cases": repeated},
        with_target(request_params={"reasoning_effort": "high"}),
    ]
    assert len({named(**variant) for variant in variants}) == 8


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"limits": {"max_cost_usd": 6}},
        {"limits": {"max_run_seconds": 1801}},
        {"limits": {"idle_timeout_s": 29}},
        {"limits": {"max_failed_cells": 1}},
        {"limits": {"admission_wait_s": 0}},
        {"limits": {"max_calls_per_case": 2}},
        with_target(base_url="http://127.0.0.1:2/v1"),
        with_target(prices={"m1": PRICE | {"output": 4.1}, "m2": PRICE}),
        with_target(model_aliases={"m1-2026": "m1"}),
        with_target(usage_dialect="openai"),
        with_target(cache_reporting="none"),
        with_target(response_mode="json"),
        with_target(session_mode="session_aware"),
        with_target(expected_response_model="m1"),
        with_target(config_hash="h"),
        {"cases": [case(answer="B")]},
        {"cases": [case(metadata={"stratum": "x"})]},
        {"auxiliary_targets": {"j": target("j", prices={"m": PRICE})}},
        {"claims": [{"kind": "non_inferiority", "margin": 0.02}]},
    ],
)
def test_what_can_change_an_answer_a_score_a_price_or_the_word_on_a_claim_changes_the_name(change: dict[str, Any]) -> None:
    assert named(**change) != named()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another"},
        {"experiment": {"id": "exp-" + "0" * 32, "role": "baseline"}},
        {"limitations": ["a sentence"]},
        {"limits": {"concurrency": 64}},
        with_target(max_concurrency=3),
        with_target(requests_per_minute=60, tokens_per_minute=1000),
        with_target(api_key_env="KEY"),
        with_target(cost_mode="x"),
        {"profile": "smoke"},
        {"benchmark_options": {"tau3": {"max_steps": 7}}},
        {"baseline_run_id": "run-1"},
    ],
)
def test_labels_places_and_pace_do_not_change_the_name_but_make_another_request(change: dict[str, Any]) -> None:
    assert named(**change) == named()
    assert requested(**change) != requested()


@pytest.mark.parametrize(
    "change",
    [
        {"benchmark_options": {}},
        {"benchmark_options": {"mmlu-pro": {}}},
        {"limits": {}},
        {"limits": {"idle_timeout_s": 30, "max_cost_usd": 5.0}},
        {"sampling": {"max_tokens": 64, "temperature": 0.0}},
        {"mode": "live", "profile": "quick", "auxiliary_targets": {}},
        {"claims": []},
        {"claims": None},
        {"preview_context": None},
        with_target(base_url="http://127.0.0.1:1/v1/"),
        with_target(response_mode="stream"),
    ],
)
def test_two_spellings_of_one_manifest_are_one_plan_and_one_request(change: dict[str, Any]) -> None:
    assert named(**change) == named()
    assert requested(**change) == requested()


def test_a_parameter_repeated_from_the_plan_changes_nothing() -> None:
    assert named(**with_target(request_params={"reasoning_effort": "low", "temperature": 0})) == named()


def test_neither_name_depends_on_where_the_dataset_lies() -> None:
    files = Files()
    digest_of = files.put("/a/cases.jsonl", [case()])
    assert files.put("/b/cases.jsonl", [case()]) == digest_of
    plans = [
        freezer(files).freeze(manifest(cases=None, dataset={"path": path, "sha256": digest_of}))
        for path in ("/a/cases.jsonl", "/b/cases.jsonl")
    ]
    assert plans[0].plan_sha256 == plans[1].plan_sha256 == freezer().freeze(manifest(cases=[case()])).plan_sha256
    assert plans[0].manifest_sha256 == plans[1].manifest_sha256


def test_in_preview_the_preview_address_and_context_count() -> None:
    router = target(kind="mom", preview_url="http://127.0.0.1:1/preview")
    base = {"mode": "preview", "targets": [router]}
    other = base | {"targets": [router | {"preview_url": "http://127.0.0.1:2/preview"}]}
    seeded = base | {"preview_context": {"sampling_seed": 1}}
    assert len({freezer().freeze(manifest(**change)).plan_sha256 for change in (base, other, seeded)}) == 3


def test_a_reviewed_plan_is_another_once_its_margin_is_another() -> None:
    claims = [{"kind": "non_inferiority", "margin": margin} for margin in (0.02, 0.05)]
    first, second = (named(claims=[claim]) for claim in claims)
    assert first != second
    assert named(claims=[claims[0] | {"target_id": "t1"}]) not in (first, second)
