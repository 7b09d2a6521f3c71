"""Every code that speaks against a replay, each with its sentence; and what a replay takes when nothing does."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from planner_doubles import benchmarks, case
from srbench.v1 import plan_pb2, target_pb2
from srbench_kit.canonical import digest
from srbench_kit.values import to_value
from srbench_planner.cells import CellMatrix
from srbench_planner.replay_plan import replay_plan
from srbench_planner.replay_rules import Choice, SavedAnswer, SavedCall, Side, check_cells, check_runs

SPECS = benchmarks().specs
CASES: list[dict[str, Any]] = [case("q1"), case("q2")]
SINGLES = (("a", "m-a", {}), ("b", "m-b", {}))


def plan(mode: str, targets: list[target_pb2.Target], cases: list[dict[str, Any]], **fields: Any) -> plan_pb2.Plan:
    message = plan_pb2.Plan(
        mode=mode, version="sr-bench-1.0", output_policy="bounded", case_sha256=digest(list(cases)), targets=targets
    )
    message.sampling.CopyFrom(to_value({"temperature": 0, "max_tokens": 16}))
    message.adapter_versions["mmlu-pro"] = "v2"
    for key, value in fields.items():
        setattr(message, key, value)
    return message


def single(name: str, model: str, params: Mapping[str, Any]) -> target_pb2.Target:
    target = target_pb2.Target(id=name, kind=target_pb2.TARGET_KIND_SINGLE, model=model)
    target.request_params.CopyFrom(to_value(dict(params)))
    return target


def side(
    run_id: str, mode: str, targets: list[target_pb2.Target], cases: list[dict[str, Any]] = CASES, **more: Any
) -> Side:
    return Side(
        run_id=run_id,
        status="completed",
        plan=plan(mode, targets, cases, **more),
        options={},
        cases=cases,
        matrix=CellMatrix(len(cases), len(targets)),
    )


def baseline(singles: Any = SINGLES, **more: Any) -> Side:
    return side("run-b", more.pop("mode", "live"), [single(*item) for item in singles], **more)


def preview(**more: Any) -> Side:
    router = target_pb2.Target(id="r", kind=target_pb2.TARGET_KIND_MOM, model="r")
    router.request_params.CopyFrom(to_value({}))
    return side("run-p", more.pop("mode", "preview"), [router], **more)


def document(model: str = "m-a", **over: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "selected_model": model,
        "selection_status": "selected",
        "selection_method": "static",
        "selection_provenance": {"state_dependent": False, "mode": "static", "sampled": False},
        "decision_result": {"decision_name": "easy", "plugins": []},
        "config_hash": "h",
    }
    return found | over


def sha(target: target_pb2.Target, asked: Mapping[str, Any]) -> str:
    return f"{target.id}/{asked['id']}"


def saved(target: str, name: str, **over: Any) -> SavedAnswer:
    call = SavedCall(status="completed", model=f"m-{target}", request_sha256=f"{target}/{name}")
    return replace(SavedAnswer(status="completed", correct=True, calls=(call,)), **over)


ANSWERS = {
    index * 2 + place: saved(target, name) for index, name in enumerate(("q1", "q2")) for place, target in enumerate("ab")
}


def codes_of_runs(left: Side, right: Side) -> set[str]:
    return {item.code for item in check_runs(left, right, SPECS)}


def found(routed: dict[int, Any], answers: dict[int, SavedAnswer] = ANSWERS, left: Side | None = None) -> Any:
    return check_cells(left or baseline(), preview(), answers, routed, sha)


def test_two_fitting_runs_have_nothing_against_them() -> None:
    assert check_runs(baseline(), preview(), SPECS) == []
    checked = found({0: document("m-b"), 1: document("m-a")})
    assert checked.rejections == ()
    assert checked.choices == (
        Choice(cell=0, case=0, target=0, source_cell=1, model="m-b", decision="easy", config_hash="h"),
        Choice(cell=1, case=1, target=0, source_cell=2, model="m-a", decision="easy", config_hash="h"),
    )


def test_cases_are_matched_by_id_whatever_their_order() -> None:
    turned = preview(cases=CASES[::-1])
    assert check_runs(baseline(), turned, SPECS) == []
    checked = check_cells(baseline(), turned, ANSWERS, {0: document(), 1: document()}, sha)
    assert [(choice.case, choice.source_cell) for choice in checked.choices] == [(0, 2), (1, 0)]


@pytest.mark.parametrize(
    ("code", "left", "right"),
    [
        ("native_output_not_replayable", baseline(output_policy="native"), preview()),
        ("baseline_not_completed_live", replace(baseline(), status="failed"), preview()),
        ("baseline_not_completed_live", baseline(mode="preview"), preview()),
        ("preview_not_completed", baseline(), replace(preview(), status="cancelled")),
        ("preview_not_completed", baseline(), preview(mode="live")),
        ("version_mismatch", baseline(version="sr-bench-0.9"), preview()),
        ("partial_matrix", replace(baseline(), matrix=CellMatrix(2, 2, array("q", [0]))), preview()),
        ("duplicate_case_ids", baseline(cases=[CASES[0], CASES[0]]), preview()),
        ("case_receipt_mismatch", replace(baseline(), cases=[case("q1", answer="B"), CASES[1]]), preview()),
        ("case_set_mismatch", baseline(cases=CASES[:1]), preview()),
        ("case_content_mismatch", baseline(cases=[case("q1", answer="B"), CASES[1]]), preview()),
        ("benchmark_not_replayable", baseline(cases=[case("q1", "tau3")]), preview(cases=[case("q1", "tau3")])),
        ("benchmark_not_replayable", baseline(cases=[case("q1", "scicode")]), preview(cases=[case("q1", "scicode")])),
        ("model_missing", replace(baseline(), plan=preview().plan), preview()),
    ],
)
def test_runs_are_refused_by_code(code: str, left: Side, right: Side) -> None:
    assert code in codes_of_runs(left, right)
    sentence = next(item.message for item in check_runs(left, right, SPECS) if item.code == code)
    assert len(sentence.split()) > 4


def test_cases_that_only_python_thinks_equal_are_different() -> None:
    left = baseline(cases=[case("q1", metadata={"n": 1})])
    assert "case_content_mismatch" in codes_of_runs(left, preview(cases=[case("q1", metadata={"n": True})]))


def test_another_grader_is_another_protocol() -> None:
    left, right = baseline(), preview()
    right.plan.adapter_versions["mmlu-pro"] = "v3"
    assert codes_of_runs(left, right) == {"grader_protocol_mismatch"}
    judged = replace(preview(), options={"mmlu-pro": {"judge": "x"}})
    assert codes_of_runs(left, judged) == {"grader_protocol_mismatch"}
    assert codes_of_runs(replace(left, options={"mmlu-pro": {"judge": "x"}}), preview()) == set()


@pytest.mark.parametrize(
    ("code", "routed"),
    [
        ("preview_rows_incomplete", None),
        ("state_dependent_preview", document(selection_provenance={"state_dependent": True, "mode": "learning_snapshot"})),
        ("state_dependent_preview", document(selection_provenance={"mode": "unknown"})),
        ("route_not_deterministic", document(selection_status="execution_required", selection_reason="ensemble")),
        ("route_not_deterministic", document(selection_method="looper")),
        ("route_not_deterministic", document(selection_provenance={"state_dependent": False, "sampled": True})),
        ("plugins_not_replayable", document(decision_result={"plugins": ["semantic-cache"]})),
        ("plugins_not_replayable", document(decision_result={"plugins": [{"type": "system_prompt", "enabled": True}]})),
        ("plugins_not_replayable", document(decision_result=None)),
        ("model_missing", document("m-c")),
    ],
)
def test_a_routing_document_is_refused_by_code_for_its_case(code: str, routed: Any) -> None:
    checked = found({0: routed, 1: document()} if routed is not None else {1: document()})
    assert [(item.code, item.case_id, item.target_id) for item in checked.rejections] == [(code, "q1", "r")]
    assert checked.choices == ()


@pytest.mark.parametrize(
    "plugins",
    [
        ["router_replay"],
        [{"type": "semantic-cache", "enabled": False}],
        [{"type": "rag", "configuration": {"enabled": False}}],
        None,
    ],
)
def test_plugins_that_change_no_answer_do_not_speak_against_it(plugins: Any) -> None:
    routed = document(decision_result={"decision_name": "easy", "plugins": plugins})
    assert found({0: routed, 1: document()}).rejections == ()


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("saved_generation_incomplete", None),
        ("saved_generation_incomplete", saved("a", "q1", calls=())),
        ("saved_generation_incomplete", saved("a", "q1", calls=saved("a", "q1").calls * 2)),
        (
            "saved_generation_incomplete",
            saved("a", "q1", calls=(SavedCall(status="failed", model="m-a", request_sha256="a/q1"),)),
        ),
        ("saved_grade_missing", saved("a", "q1", correct=None)),
        ("saved_grade_missing", saved("a", "q1", status="failed")),
        (
            "saved_prompt_mismatch",
            saved("a", "q1", calls=(SavedCall(status="completed", model="m-a", request_sha256="x"),)),
        ),
        (
            "saved_request_parameters_mismatch",
            saved("a", "q1", calls=(SavedCall(status="completed", model="m-a", request_sha256="x"),)),
        ),
        (
            "saved_model_mismatch",
            saved("a", "q1", calls=(SavedCall(status="completed", model="other", request_sha256="a/q1"),)),
        ),
        ("saved_model_mismatch", saved("a", "q1", calls=(SavedCall(status="completed", model="", request_sha256="a/q1"),))),
    ],
)
def test_a_saved_answer_is_refused_by_code_for_its_case(code: str, answer: SavedAnswer | None) -> None:
    answers = {cell: item for cell, item in ANSWERS.items() if cell} | ({0: answer} if answer else {})
    checked = found({0: document(), 1: document()}, answers)
    assert code in {item.code for item in checked.rejections}
    assert {item.case_id for item in checked.rejections} == {"q1"}


def test_a_model_asked_twice_is_told_apart_by_its_parameters() -> None:
    low_and_high = baseline((("low", "m-a", {"temperature": 0.0}), ("high", "m-a", {"temperature": 1})))
    answers = {
        cell: replace(item, calls=(replace(item.calls[0], model="m-a", request_sha256=f"{name}/{case_id}"),))
        for cell, (name, case_id, item) in enumerate(
            (name, case_id, ANSWERS[0]) for case_id in ("q1", "q2") for name in ("low", "high")
        )
    }
    checked = found({0: document(), 1: document()}, answers, low_and_high)
    assert [choice.source_cell for choice in checked.choices] == [0, 2], "0.0 and 0 are the same parameter"
    twice = baseline((("x", "m-a", {}), ("y", "m-a", {})))
    assert {item.code for item in found({0: document(), 1: document()}, ANSWERS, twice).rejections} == {
        "baseline_models_not_unique"
    }
    other = baseline((("x", "m-a", {"temperature": 1}),))
    assert {item.code for item in found({0: document(), 1: document()}, ANSWERS, other).rejections} == {"sampling_mismatch"}


def test_all_reasons_come_together() -> None:
    routed = document(selection_method="looper", decision_result={"plugins": ["rag"]})
    assert [item.code for item in found({0: routed}).rejections] == [
        "route_not_deterministic",
        "plugins_not_replayable",
        "preview_rows_incomplete",
    ]


def test_the_plan_of_a_replay_names_its_sources_and_grades_as_the_baseline() -> None:
    common: dict[str, Any] = {
        "version": "sr-bench-1.0",
        "seed": 1,
        "output_policy": "bounded",
        "adapter_versions": {"mmlu-pro": "v2"},
        "benchmark_weights": {"mmlu-pro": 0.1},
        "sampling": {"temperature": 0},
        "case_sha256": "c" * 64,
        "limits": {"max_cost_usd": 1},
        "plan_sha256": "p" * 64,
    }
    left = common | {"name": "base", "cost_policy": "require_priced", "mode": "live", "targets": []}
    router = {"id": "r", "kind": "mom", "model": "r", "base_url": "http://x"}
    right = common | {
        "name": "look",
        "cost_policy": "capability_only",
        "mode": "preview",
        "preview_context": {"sampling_seed": 1},
        "targets": [router],
        "experiment": {"id": "exp"},
    }
    made = replay_plan(left, right, CASES, baseline_run_id="run-b", preview_run_id="run-p")
    shown = made.manifest
    assert (shown["mode"], shown["cost_policy"], len(made.matrix)) == ("replay", "require_priced", 2)
    assert shown["replay_sources"]["baseline_run_id"] == "run-b"  # type: ignore[index,call-overload]
    assert shown["replay_compatibility"] == {"version": "sr-bench-replay-compatibility-v1"}
    assert "preview_context" not in shown
    assert "experiment" not in shown
    other = replay_plan(left, right, CASES, baseline_run_id="run-b", preview_run_id="run-q")
    assert other.plan_sha256 != made.plan_sha256
