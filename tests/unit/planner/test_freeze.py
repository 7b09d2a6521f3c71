"""Freezing: defaults, refusals that name the field, and a result that freezes to itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_doubles import PRICE, Files, case, freezer, manifest, target
from srbench_kit.errors import Forbidden, InvalidInput, NotFound
from srbench_planner import limits, sampling, targets
from srbench_planner import manifest as fields
from srbench_planner.freeze import Registry

PREVIEW_URL = "http://127.0.0.1:1/api/v1/routing/preview"
MOM = {"kind": "mom", "config_hash": "a" * 64, "max_inference_calls": 1, "capture_recipe": True, "preview_url": PREVIEW_URL}
WINDOW = {"context_window": 1000, "max_output_tokens": 500}


def refusal(value: Any, files: Files | None = None) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        freezer(files).freeze(value)
    return caught.value


def test_the_smallest_manifest_gets_the_published_defaults() -> None:
    frozen = freezer().freeze(manifest()).manifest
    assert frozen["case_sha256"] == "e392b39f773d3513e532a738f2afe81be7f20ac4dd835f7466b6fde08dbf8efc"
    assert (frozen["mode"], frozen["profile"], frozen["seed"], frozen["name"]) == ("live", "quick", 20260918, "sr-bench")
    assert frozen["sampling"] == {"temperature": 0, "max_tokens": 4096}
    assert frozen["limits"] == {
        "concurrency": 1,
        "total_timeout_s": 180,
        "idle_timeout_s": 30,
        "max_output_tokens": 4096,
        "max_output_chars": 131072,
        "max_log_bytes": 8388608,
        "repetition_window": 128,
        "repetition_limit": 5,
        "max_cost_usd": 5,
        "max_run_seconds": 1800,
        "max_calls_per_case": 32,
        "case_timeout_s": 600,
        "max_failed_cells": 25,
        "admission_wait_s": 20,
    }


@pytest.mark.parametrize(
    ("change", "reason", "part"),
    [
        ({"version": "2"}, "BAD_VERSION", 'version is "2"; expected sr-bench-1.0'),
        ({"mode": "replay"}, "BAD_FIELD", "live or preview"),
        ({"profile": "big"}, "BAD_FIELD", "smoke, quick or standard"),
        ({"seed": True}, "BAD_FIELD", "seed is true"),
        ({"seed": 1.0}, "BAD_FIELD", "seed is 1.0"),
        ({"runner_provenance": {}}, "SERVICE_FIELD", "runner_provenance"),
        ({"recovery": {}}, "SERVICE_FIELD", "recovery"),
        ({"limitz": {}}, "UNKNOWN_FIELD", "limitz is not known; did you mean limits?"),
        ({"limits": {"max_cost_us": 1}}, "UNKNOWN_FIELD", "max_cost_us is not known; did you mean limits.max_cost_usd?"),
        ({"limits": []}, "BAD_FIELD", "limits is []; expected an object"),
        ({"limits": {"concurrency": 0}}, "BAD_FIELD", "limits.concurrency"),
        ({"limits": {"concurrency": True}}, "BAD_FIELD", "limits.concurrency"),
        ({"limits": {"max_cost_usd": 0}}, "BAD_FIELD", "limits.max_cost_usd"),
        ({"limits": {"admission_wait_s": -1}}, "BAD_FIELD", "limits.admission_wait_s"),
        ({"limits": {"max_failed_cells": 0}}, "BAD_FIELD", "limits.max_failed_cells"),
        ({"limits": {"total_timeout_s": 20}}, "BAD_FIELD", "limits.idle_timeout_s is 30"),
        ({"limits": {"total_timeout_s": 3600}}, "BAD_FIELD", "at most limits.max_run_seconds"),
        ({"targets": []}, "BAD_FIELD", "targets is []"),
        ({"targets": [target(), target()]}, "DUPLICATE_TARGET", "'a'"),
        ({"auxiliary_targets": {"a": target("a")}}, "DUPLICATE_TARGET", "'a'"),
        ({"auxiliary_targets": {"j": target("k")}}, "BAD_FIELD", "auxiliary_targets.j.id"),
        ({"cost_policy": "require_priced"}, "MISSING_FIELD", "targets[0].prices"),
        ({"cost_policy": "require_priced", "targets": [target(prices={"x": PRICE})]}, "MISSING_FIELD", "].prices.m"),
        ({"targets": [target(kind="mom")]}, "MISSING_FIELD", "targets[0].config_hash"),
        ({"cases": []}, "NO_CASES", "cases"),
        ({"cases": None}, "MISSING_FIELD", "cases"),
        ({"cases": [case(), case()]}, "DUPLICATE_CASE", "'q1'"),
        ({"cases": [case(benchmark="mmlu")]}, "NO_SUCH_BENCHMARK", "cases[0].benchmark"),
        ({"cases": [case(answr="A")]}, "UNKNOWN_FIELD", "did you mean cases[0].answer?"),
        ({"cases": [case(answer=None)]}, "MISSING_FIELD", "cases[0].answer"),
        ({"cases": [case(answer="K")]}, "BAD_REFERENCE", "cases[0].answer is not one letter from A to J"),
        ({"cases": [case(answer="C", choices=["4", "5"])]}, "BAD_REFERENCE", "one letter from A to B"),
        ({"cases": [case(answer=1)]}, "BAD_REFERENCE", "cases[0].answer is not"),
        ({"cases": [case(benchmark="arc-agi-2", answer=[[1, 2], [3]])]}, "BAD_REFERENCE", "cases[0].answer"),
        ({"cases": [case(benchmark="arc-agi-2", answer=[[10]])]}, "BAD_REFERENCE", "whole numbers from 0 to 9"),
        ({"cases": [case(benchmark="hle", answer=7)]}, "BAD_REFERENCE", "a text for the judge"),
        ({"targets": [target(kind="mom", config_hash="a\nx-more: 1")]}, "BAD_FIELD", "visible ASCII"),
        ({"targets": [target(kind="mom", config_hash="é")]}, "BAD_FIELD", "targets[0].config_hash"),
        ({"cases": [case(messages=[])]}, "BAD_FIELD", "cases[0].messages"),
        ({"cases": [case(messages=[{"role": "robot"}])]}, "BAD_FIELD", "cases[0].messages[0].role"),
        ({"cases": [case(request_metadata={"k": 1})]}, "BAD_FIELD", "cases[0].request_metadata.k"),
        ({"cases": [case()], "profile": "standard"}, "BAD_FIELD", "cases[0].metadata.split"),
        ({"cases": [case(benchmark="hle")]}, "MISSING_FIELD", "benchmark_options.hle.judge"),
        ({"benchmark_options": {"hle": {"judge": "zzz"}}}, "NO_SUCH_TARGET", "benchmark_options.hle.judge"),
        ({"benchmark_options": {"hle": {"jugde": "a"}}}, "UNKNOWN_FIELD", "did you mean benchmark_options.hle.judge?"),
        ({"benchmark_options": {"hel": {}}}, "UNKNOWN_FIELD", "did you mean benchmark_options.hle?"),
        ({"benchmark_options": {"tau3": {"max_steps": 1001}}}, "BAD_FIELD", "from 1 to 1000"),
        ({"sampling": {"temperature": None}}, "BAD_FIELD", "only a target's request_params may remove"),
        ({"sampling": {"max_tokens": 5000}}, "BAD_FIELD", "at most limits.max_output_tokens, 4096"),
        ({"sampling": {"min_tokens": 5000}}, "BAD_FIELD", "at most the output cap"),
        ({"targets": [target(request_params={"max_tokens": None})]}, "BAD_CAP", "targets[0].request_params"),
        ({"targets": [target(request_params={"max_completion_tokens": 9})]}, "BAD_CAP", "exactly one of the two"),
        ({"execution_cells": []}, "BAD_FIELD", "execution_cells"),
        ({"execution_cells": [{"case_id": "q1", "target_id": "b"}]}, "BAD_FIELD", "execution_cells[0].target_id"),
        ({"execution_cells": [{"case_id": "q1", "target_id": "a"}] * 2}, "DUPLICATE_CELL", "execution_cells[1]"),
        ({"execution_cells": [{"case_id": "q1", "target": "a"}]}, "UNKNOWN_FIELD", "target_id?"),
        ({"experiment": {"id": "exp-1", "role": "baseline"}}, "BAD_FIELD", "experiment.id"),
        ({"experiment": {"id": "exp-" + "0" * 32, "role": "candidate"}}, "BAD_FIELD", "experiment.role"),
        ({"benchmark_weights": {"mmlu-pro": 1}}, "BAD_FIELD", "benchmark_weights"),
        ({"adapter_versions": {"mmlu-pro": "x"}}, "BAD_FIELD", "adapter_versions"),
        ({"plan_sha256": "x"}, "BAD_FIELD", "64 lower-case hex"),
        ({"mode": "preview"}, "BAD_FIELD", "targets[0].kind"),
        ({"mode": "preview", "targets": [target(kind="mom")]}, "MISSING_FIELD", "targets[0].preview_url"),
        ({"mode": "preview", "preview_context": {"sesion_id": "x"}}, "UNKNOWN_FIELD", "preview_context.session_id?"),
        ({"output_policy": "native"}, "MISSING_FIELD", "targets[0].native_limits"),
        ({"name": 7}, "BAD_FIELD", "name is 7"),
    ],
)  # fmt: skip
def test_a_bad_manifest_is_refused_by_field(change: dict[str, Any], reason: str, part: str) -> None:
    error = refusal(manifest(**change))
    assert error.reason == reason
    assert part in error.message


def test_a_refused_reference_is_not_shown() -> None:
    error = refusal(manifest(cases=[case(answer="SECRET-ANSWER")]))
    assert "SECRET" not in error.message + str(error.facts)


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_what_is_no_object_is_no_manifest(value: Any) -> None:
    assert refusal(value).message.startswith("the manifest is ")


def test_some_models_need_other_parameters_and_a_null_removes_one() -> None:
    params = {"temperature": None, "max_tokens": None, "max_completion_tokens": 2000}
    frozen = freezer().freeze(manifest(targets=[target(request_params=params)]))
    assert frozen.manifest["targets"][0]["request_params"] == params  # type: ignore[index,call-overload]
    whole = freezer().freeze(manifest(sampling={"max_completion_tokens": 100})).manifest
    assert whole["sampling"] == {"temperature": 0, "max_completion_tokens": 100}


def test_concurrency_is_not_capped_and_admission_may_be_off() -> None:
    frozen = freezer().freeze(manifest(limits={"concurrency": 4096, "admission_wait_s": 0})).manifest
    assert (frozen["limits"]["concurrency"], frozen["limits"]["admission_wait_s"]) == (4096, 0)  # type: ignore[index,call-overload]


def test_the_default_tolerance_is_25_cells_or_a_tenth() -> None:
    assert [limits.tolerance(count) for count in (1, 250, 251, 16000)] == [25, 25, 26, 1600]


def test_cells_are_case_major_and_a_complete_list_is_no_list() -> None:
    two = {"cases": [case("q1"), case("q2")], "targets": [target("a"), target("b")]}
    pairs = [{"case_id": c, "target_id": t} for c in ("q2", "q1") for t in ("b", "a")]
    whole = freezer().freeze(manifest(**two, execution_cells=pairs))
    assert "execution_cells" not in whole.manifest
    assert [whole.matrix.pair(cell) for cell in range(len(whole.matrix))] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    part = freezer().freeze(manifest(**two, execution_cells=pairs[:3]))
    assert [part.matrix.pair(cell) for cell in range(len(part.matrix))] == [(0, 1), (1, 0), (1, 1)]
    assert part.manifest["execution_cells"][0] == {"case_id": "q1", "target_id": "b"}  # type: ignore[index,call-overload]
    assert refusal(manifest(**two, execution_cells=pairs[1:2])).reason == "TARGET_WITHOUT_CELLS"


def test_native_output_takes_the_largest_window() -> None:
    native = target(native_limits={"m": WINDOW})
    frozen = freezer().freeze(manifest(output_policy="native", targets=[native]))
    assert frozen.manifest["limits"]["max_output_tokens"] == 500  # type: ignore[index,call-overload]
    assert frozen.manifest["sampling"] == {"temperature": 0}
    assert freezer().freeze(frozen.manifest).manifest == frozen.manifest
    router = target("r", **(MOM | {"native_limits": {"m": WINDOW | {"max_output_tokens": 400}}}))
    assert "the same as in targets[0]" in refusal(manifest(output_policy="native", targets=[native, router])).message
    assert refusal(manifest(output_policy="native", targets=[native], sampling={"max_tokens": 5})).reason == "CAP_FORBIDDEN"


def test_a_dataset_is_bound_by_digest_and_its_own_manifest_is_merged() -> None:
    files = Files()
    digest = files.put("/data/cases.jsonl", [case()], id="d1" * 32, profile="quick", seed=20260918, custom_subset=False)
    files.own["d1" * 32] = "/data/cases.jsonl"
    bound = manifest(dataset={"path": "/data/cases.jsonl", "sha256": digest, "name": "mine"})
    del bound["cases"]
    frozen = freezer(files).freeze(bound)
    assert "cases" not in frozen.manifest
    dataset = frozen.manifest["dataset"]
    assert isinstance(dataset, dict)
    assert (dataset["id"], dataset["name"], dataset["custom_subset"]) == ("d1" * 32, "mine", False)
    by_id = freezer(files).freeze(bound | {"dataset": {"id": "d1" * 4}})
    assert by_id.plan_sha256 == frozen.plan_sha256
    assert freezer(files).freeze(by_id.manifest).manifest == by_id.manifest
    assert refusal(bound | {"profile": "smoke"}, files).reason == "DATASET_CONFLICT"
    assert refusal(bound | {"seed": 1}, files).reason == "DATASET_CONFLICT"
    assert refusal(bound | {"cases": [case("other")]}, files).reason == "DATASET_CONFLICT"
    assert refusal(bound | {"dataset": {"path": "/data/cases.jsonl"}}, files).message.startswith(
        "dataset.sha256 is missing"
    )
    with pytest.raises(NotFound):
        freezer(files).freeze(bound | {"dataset": {"path": "/nowhere", "sha256": digest}})


def test_a_claimed_preparation_needs_its_proof() -> None:
    files = Files()
    digest = files.put("/d", [case()])
    bound = manifest(dataset={"path": "/d", "sha256": digest, "preparation": {"x": 1}})
    assert refusal(bound, files).reason == "DATASET_CONFLICT"
    files.put("/e", [case()], preparation={"x": 1}, case_count=1)
    changed = manifest(dataset={"path": "/e", "sha256": digest, "case_count": 2})
    assert "dataset.case_count" in refusal(changed, files).message


def test_a_moved_store_finds_its_dataset_by_id() -> None:
    files = Files()
    digest = files.put("/new/cases.jsonl", [case()], id="ab" * 32)
    files.own["ab" * 32] = "/new/cases.jsonl"
    dataset = {"path": "/old/cases.jsonl", "sha256": digest, "id": "ab" * 32}
    assert freezer(files).freeze(manifest(dataset=dataset)).manifest["dataset"]["path"] == "/new/cases.jsonl"  # type: ignore[index,call-overload]


def test_forwarded_callers_get_the_operators_targets_and_nothing_else() -> None:
    registered = freezer().freeze(manifest(targets=[target(prices={"m": PRICE}), target("j")])).manifest["targets"]
    registry = Registry(targets=registered, options={"hle": {"judge": "j"}, "tau3": {"max_steps": 5}}, binding=True)  # type: ignore[arg-type]
    hle = manifest(targets=[{"id": "a"}], cases=[case(benchmark="hle")])
    frozen = freezer().freeze(hle, registry).manifest
    assert frozen["targets"] == [registered[0]]  # type: ignore[index]
    assert frozen["auxiliary_targets"] == {"j": registered[1]}  # type: ignore[index]
    assert frozen["benchmark_options"] == {"hle": {"judge": "j"}}
    assert freezer().freeze(frozen, registry).manifest == frozen
    for change, reason in (
        ({"targets": [{"id": "zzz"}]}, "TARGET_NOT_REGISTERED"),
        ({"targets": [{"id": "a", "base_url": "http://evil/v1"}]}, "TARGET_CHANGED"),
        ({"targets": [{"id": "a", "api_key_env": "HOME"}]}, "TARGET_CHANGED"),
        ({"targets": [{"id": "a"}], "benchmark_options": {"hle": {"judge": "a"}}}, "OPTIONS_CHANGED"),
    ):
        with pytest.raises(Forbidden) as caught:
            freezer().freeze(manifest(**change), registry)
        assert caught.value.reason == reason


def test_a_local_caller_may_name_a_registered_target_by_its_id() -> None:
    registered = freezer().freeze(manifest(targets=[target(prices={"m": PRICE})])).manifest["targets"]
    registry = Registry(targets=registered, options={}, binding=False)  # type: ignore[arg-type]
    own = target("own")
    frozen = freezer().freeze(manifest(targets=[{"id": "a"}, own]), registry).manifest
    assert frozen["targets"][0] == registered[0]  # type: ignore[index]
    assert frozen["targets"][1]["id"] == "own"  # type: ignore[index,call-overload]
    with pytest.raises(InvalidInput, match="registered id: a"):
        freezer().freeze(manifest(targets=[{"id": "zzz"}]), registry)


def test_the_worst_case_is_the_sum_of_all_reservations() -> None:
    priced = manifest(
        cost_policy="require_priced", targets=[target(prices={"m": PRICE})], limits={"max_output_tokens": 100}
    )
    one = freezer().freeze(priced).worst_case.picodollars
    two = freezer().freeze(priced | {"cases": [case("q1"), case("q2")]}).worst_case.picodollars
    assert one is not None
    # 100 output tokens at 4 dollars a million, and a prompt of a few hundred bytes at 1.5 at the most.
    assert 100 * 4_000_000 + 320 * 1_500_000 < one < 100 * 4_000_000 + 700 * 1_500_000
    assert two == 2 * one
    assert freezer().freeze(manifest()).worst_case.picodollars is None


counts = st.integers(1, 500)
changes = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(-(2**63), 2**63 - 1),
        "name": st.sampled_from(["a", "b c", "ü"]),
        "limits": st.fixed_dictionaries(
            {},
            optional={
                "concurrency": counts,
                "max_cost_usd": st.floats(0.01, 100),
                "max_output_tokens": st.integers(500, 9000),
                "max_failed_cells": counts,
                "admission_wait_s": st.integers(0, 60),
            },
        ),
        "sampling": st.fixed_dictionaries(
            {},
            optional={
                "temperature": st.floats(0, 2),
                "max_tokens": counts,
                "top_p": st.floats(0, 1),
                "stop": st.sampled_from(["", "x"]),
            },
        ),
        "limitations": st.lists(st.just("a sentence"), max_size=2),
        "cases": st.integers(1, 4).map(lambda count: [case(f"q{index}") for index in range(count)]),
        "targets": st.integers(1, 3).map(lambda count: [target(f"t{index}", request_params={}) for index in range(count)]),
        "benchmark_options": st.sampled_from([{}, {"hle": {}}, {"tau3": {"max_steps": 7}}]),
    },
)


@given(changes)
def test_freezing_a_frozen_plan_changes_nothing(change: dict[str, Any]) -> None:
    frozen = freezer().freeze(manifest(**change))
    again = freezer().freeze(frozen.manifest)
    assert again.manifest == frozen.manifest
    assert again.manifest_sha256 == frozen.manifest_sha256
    assert again.reviewed_sha256 == frozen.plan_sha256


NAMES = {*fields.FIELDS, *fields.SERVICE_FIELDS, *limits.ORDER, *sampling.RULES, *targets.FIELDS, *targets.SECRETS}


@given(st.text("abcdefghijklmnopqrstuvwxyz_ ", min_size=1).filter(lambda key: key not in NAMES))
def test_an_unknown_key_is_refused_at_every_level_with_a_known_name(key: str) -> None:
    for changed in (
        manifest(**{key: 1}),
        manifest(limits={key: 1}),
        manifest(sampling={key: 1}),
        manifest(targets=[target(**{key: 1})]),
        manifest(targets=[target(request_params={key: 1})]),
    ):
        error = refusal(changed)
        assert error.reason == "UNKNOWN_FIELD"
        assert "; did you mean " in error.message or "; known are " in error.message
        assert error.facts["nearest"] in NAMES


def test_a_digest_that_the_file_does_not_have_is_the_callers_mistake() -> None:
    files = Files()
    files.put("/d", [case()])
    error = refusal(manifest(cases=None, dataset={"path": "/d", "sha256": "0" * 64}), files)
    assert (error.reason, error.facts["field"]) == ("DATASET_DAMAGED", "dataset.sha256")


def test_a_plan_that_names_targets_that_are_not_there_lacks_each_of_them() -> None:
    options = {"hle": {"judge": "nobody", "second_judge": "no-one"}, "tau3": {"simulator": "nobody"}}
    found = freezer().freeze(manifest(benchmark_options=options), collect=True)
    assert [error.facts["field"] for error in found.missing] == [
        "benchmark_options.hle.judge",
        "benchmark_options.hle.second_judge",
        "benchmark_options.tau3.simulator",
    ]
