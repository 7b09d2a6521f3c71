"""What a report says when facts are missing, strange or of another mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from srbench.v1 import report_pb2 as pb
from srbench_accounting import report_convert
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
from srbench_accounting.report import FULL_SUITE, ChildAttempt, Report, RunFacts, TargetProfile, make_report
from srbench_kit.jsonview import to_json
from srbench_kit.values import from_value

FACTS = RunFacts(run_id="run-1", status="completed", created_s=10.0, updated_s=25.5, profile="quick")


def plan_of(cases: list[str], targets: list[str], weights: dict[str, float | str] | None = None) -> PlanColumns:
    return PlanColumns(
        case_ids=cases,
        case_benchmark=Labels.of(case.split("/")[0] for case in cases),
        target_ids=targets,
        cell_case=ints(index for index in range(len(cases)) for _ in targets),
        cell_target=ints(index for _ in cases for index in range(len(targets))),
        weights=weights or {},
    )


def outcomes_of(*rows: dict[str, Any]) -> OutcomeColumns:
    return OutcomeColumns(
        case=ints(row["case"] for row in rows),
        target=ints(row.get("target", 0) for row in rows),
        end=ints(row.get("end", CellEnd.DONE) for row in rows),
        reason=Labels.of(row.get("reason") for row in rows),
        correct=ints(row.get("correct", True) for row in rows),
        strict_format=ints(row.get("strict_format") for row in rows),
        output_limit=ints(row.get("output_limit", 0) for row in rows),
        latency_s=floats(row.get("latency_s", 5.0) for row in rows),
        queue_wait_s=floats(row.get("queue_wait_s") for row in rows),
        finish_s=floats(row.get("finish_s") for row in rows),
    )


def calls_of(*rows: dict[str, Any]) -> CallColumns:
    return CallColumns(
        case=ints(row["case"] for row in rows),
        target=ints(row.get("target", 0) for row in rows),
        role=ints(row.get("role", Role.SUBJECT) for row in rows),
        end=ints(row.get("end", CallEnd.COMPLETED) for row in rows),
        input_tokens=ints(row.get("input", 8) for row in rows),
        cached_input_tokens=ints(row.get("cached", 2) for row in rows),
        cache_write_tokens=ints(row.get("write", 0) for row in rows),
        output_tokens=ints(row.get("output", 3) for row in rows),
        prompt_tokens=ints(row.get("prompt", 10) for row in rows),
        cost=ints(row.get("cost", 100) for row in rows),
        cache_neutral_cost=ints(row.get("neutral", 120) for row in rows),
        reserved=ints(row.get("reserved", 900) for row in rows),
        inference_calls=ints(row.get("inferences", 1) for row in rows),
        cache_read_reported=ints(row.get("told", True) for row in rows),
        model=Labels.of(row.get("model", "m") for row in rows),
        selected_model=Labels.of(row.get("selected") for row in rows),
        decision=Labels.of(row.get("decision") for row in rows),
        finish_reason=Labels.of(row.get("finish", "stop") for row in rows),
        latency_s=floats(row.get("latency_s", 2.0) for row in rows),
        ttft_s=floats(row.get("ttft_s", 0.5) for row in rows),
        first_token_lag_s=floats(row.get("lag_s") for row in rows),
    )


ONE = plan_of(["mmlu-pro/0", "mmlu-pro/1"], ["a"])
DONE = outcomes_of({"case": 0}, {"case": 1, "correct": False})
CALLED = calls_of({"case": 0}, {"case": 1})


def only(report: Report) -> Any:
    return report.summary.targets[0]


def test_a_run_without_any_fact_is_all_pending_and_nothing_is_free() -> None:
    row = only(make_report(replace(FACTS, status="running"), ONE, outcomes_of(), calls_of()))
    assert (row.total, row.pending, row.completed, row.failed, row.correct, row.accuracy) == (2, 2, 0, 0, 0, 0.0)
    assert (row.cost_picodollars, row.total_spend_picodollars, row.tokens, row.call_count) == (None, None, None, None)
    assert (row.known_cost_picodollars, row.evaluation_cost_picodollars, row.spend_upper_picodollars) == (0, 0, 0)
    assert (row.latency_p50_s, row.ttft_p50_s, row.ttft_p95_s, row.first_token_lag_max_s) == (None, None, None, None)
    assert row.cache_read.cache_read_rate is None
    assert not row.complete


def test_a_plan_without_cells_has_no_accuracy_and_no_interval() -> None:
    empty = replace(ONE, cell_case=ints([]), cell_target=ints([]))
    report = make_report(FACTS, empty, outcomes_of(), calls_of())
    assert (only(report).accuracy, only(report).accuracy_ci95, only(report).macro_accuracy) == (None, None, None)
    assert report.benchmarks == ()


def test_all_right_reaches_exactly_one() -> None:
    row = only(make_report(FACTS, ONE, outcomes_of({"case": 0}, {"case": 1}), CALLED))
    assert row.accuracy_ci95[1] == 1.0
    assert row.accuracy == row.macro_accuracy == 1.0


def test_failed_cells_stay_in_the_denominator_and_are_told_by_reason() -> None:
    outcomes = outcomes_of(
        {"case": 0, "target": 0},
        {"case": 1, "target": 0, "end": CellEnd.FAILED, "correct": None, "reason": "stream_cut"},
    )
    row = only(make_report(replace(FACTS, status="failed"), ONE, outcomes, CALLED))
    assert (row.correct, row.accuracy, row.scored, row.failed, row.complete) == (1, 0.5, 1, 1, False)
    assert row.failure_reasons == {"stream_cut": 1}


def test_a_grade_on_a_cell_that_did_not_end_well_does_not_count() -> None:
    outcomes = outcomes_of({"case": 0, "end": CellEnd.INTERRUPTED, "reason": "executor_lost"}, {"case": 1})
    row = only(make_report(FACTS, ONE, outcomes, CALLED))
    assert (row.correct, row.scored, row.completed) == (1, 1, 1)


def test_one_unknown_cost_makes_the_sum_unknown_and_stays_reserved() -> None:
    report = make_report(FACTS, ONE, DONE, calls_of({"case": 0}, {"case": 1, "cost": None, "output": None}))
    row = only(report)
    assert (row.cost_picodollars, row.known_cost_picodollars, row.cost_complete) == (None, 100, False)
    assert (row.spend_upper_picodollars, report.summary.spend_upper_picodollars) == (1000, 1000)
    assert (report.summary.total_spend_picodollars, report.summary.known_spend_picodollars) == (None, 100)
    assert row.tokens is None
    unbounded = make_report(FACTS, ONE, DONE, calls_of({"case": 0, "cost": None, "reserved": None}, {"case": 1}))
    assert only(unbounded).spend_upper_picodollars is None


def test_a_case_that_was_never_called_leaves_the_cost_unknown() -> None:
    row = only(make_report(FACTS, ONE, DONE, calls_of({"case": 0}, {"case": 0})))
    assert (row.cost_picodollars, row.known_cost_picodollars, row.call_count, row.request_count) == (None, 200, None, 2)


def test_judges_cost_apart_and_count_in_the_total() -> None:
    judged = calls_of({"case": 0}, {"case": 0, "role": Role.JUDGE, "cost": 7}, {"case": 1})
    row = only(make_report(FACTS, ONE, DONE, judged))
    assert (row.cost_picodollars, row.evaluation_cost_picodollars, row.total_spend_picodollars) == (200, 7, 207)
    assert (row.request_count, row.evaluation_call_count) == (2, 1)
    unknown = calls_of({"case": 0}, {"case": 0, "role": Role.JUDGE, "cost": None}, {"case": 1})
    row = only(make_report(FACTS, ONE, DONE, unknown))
    assert (row.cost_picodollars, row.evaluation_cost_picodollars, row.total_spend_picodollars) == (200, None, None)


def test_an_offer_that_was_not_accepted_is_no_call() -> None:
    refused = {"case": 0, "end": CallEnd.NOT_ACCEPTED, "cost": None, "input": None, "finish": None, "latency_s": 9.0}
    row = only(make_report(FACTS, ONE, DONE, calls_of(refused, {"case": 0}, {"case": 1})))
    assert (row.request_count, row.cost_picodollars, row.call_count, row.request_time_sum_s) == (2, 200, 2, 4.0)


def test_open_calls_wait_for_their_model() -> None:
    open_call = {
        "case": 1,
        "end": CallEnd.SENT,
        "cost": None,
        "model": None,
        "finish": None,
        "latency_s": None,
        "told": None,
    }
    row = only(make_report(FACTS, ONE, outcomes_of({"case": 0}), calls_of({"case": 0}, open_call)))
    assert (row.pending_selection_count, row.pending, row.selected_models) == (1, 1, {"m": 1})
    assert (row.cache_read.reported_calls, row.cache_read.unreported_calls) == (1, 0)
    assert row.output_diagnostics.unknown_finish_reason == 1


def test_the_cache_read_rate_covers_the_calls_that_told_it() -> None:
    told = calls_of({"case": 0, "cached": 4}, {"case": 1, "told": False, "cached": None})
    row = only(make_report(FACTS, ONE, DONE, told)).cache_read
    assert (row.reported_calls, row.unreported_calls, row.cached_input_tokens, row.prompt_tokens) == (1, 1, 4, 10)
    assert row.cache_read_rate == 0.4
    partly = calls_of({"case": 0}, {"case": 1, "prompt": None})
    assert only(make_report(FACTS, ONE, DONE, partly)).cache_read.cache_read_rate is None


def test_times_come_from_subject_calls_and_else_from_the_cell() -> None:
    calls = calls_of({"case": 0}, {"case": 0, "latency_s": 3.0}, {"case": 1, "role": Role.JUDGE, "latency_s": 50.0})
    row = only(make_report(FACTS, ONE, DONE, calls))
    assert (row.latency_p50_s, row.case_wall_time_p50_s) == (5.0, 5.0)
    row = only(make_report(FACTS, ONE, outcomes_of({"case": 0, "latency_s": 8.0}, {"case": 1, "latency_s": 6.0}), calls))
    assert row.latency_p50_s == 5.5
    lagged = calls_of({"case": 0, "lag_s": 0.001}, {"case": 1, "lag_s": 0.25})
    assert only(make_report(FACTS, ONE, DONE, lagged)).first_token_lag_max_s == 0.25


def test_switches_are_counted_between_known_models_of_one_case() -> None:
    plan = plan_of([f"tau3/{i}" for i in range(4)], ["a"])
    calls = calls_of(
        {"case": 0, "selected": "x", "decision": "p"},
        {"case": 1, "selected": "x"},
        {"case": 0, "selected": None, "end": CallEnd.FAILED, "decision": "q"},
        {"case": 2, "selected": "x"},
        {"case": 0, "selected": "y"},
        {"case": 1, "selected": "x"},
        {"case": 2, "selected": "y", "inferences": 2},
        {"case": 3, "selected": "x", "inferences": 2},
    )
    outcomes = outcomes_of({"case": 0}, {"case": 1, "correct": False}, {"case": 2}, {"case": 3})
    made = only(make_report(FACTS, plan, outcomes, calls)).continuity
    assert (made.multi_request_tasks, made.multi_inference_tasks, made.unknown_model_requests) == (2, 1, 1)
    assert (made.switched_tasks, made.switched_accuracy, made.unswitched_tasks, made.unswitched_accuracy) == (
        1,
        1.0,
        1,
        0.0,
    )
    assert (made.model_switches, made.mean_switches_per_task, made.max_switches_per_task) == (1, 0.5, 1)
    assert made.decision_changed_tasks == 1


def test_what_first_went_wrong_is_the_earliest_failure() -> None:
    outcomes = outcomes_of(
        {"case": 0, "end": CellEnd.FAILED, "reason": "http_error", "finish_s": 30.0},
        {"case": 1, "end": CellEnd.INTERRUPTED, "reason": "executor_lost", "finish_s": 20.0},
    )
    failure = make_report(replace(FACTS, status="failed"), ONE, outcomes, CALLED).failure
    assert failure is not None
    assert (failure.case_id, failure.reason, failure.inferred_from_saved_results) == ("mmlu-pro/1", "executor_lost", True)
    halted = make_report(replace(FACTS, status="failed", reason="deadline_exceeded"), ONE, DONE, CALLED).failure
    assert halted is not None
    assert (halted.case_id, halted.reason, halted.inferred_from_saved_results) == ("", "deadline_exceeded", False)
    assert make_report(FACTS, ONE, DONE, CALLED).failure is None


def test_a_preview_measures_no_answer() -> None:
    row = only(make_report(replace(FACTS, mode="preview"), ONE, outcomes_of({"case": 0, "correct": None}), calls_of()))
    assert (row.correct, row.accuracy, row.accuracy_ci95, row.macro_accuracy, row.sr_bench_score) == (None,) * 5
    assert (row.latency_p50_s, row.latency_p95_s, row.case_wall_time_p50_s) == (None, None, None)


def test_a_replay_measures_nothing_and_spends_nothing() -> None:
    report = make_report(replace(FACTS, mode="replay"), ONE, DONE, CALLED)
    row = only(report)
    assert (row.correct, row.accuracy, row.accuracy_ci95, row.tokens, row.ttft_p50_s) == (None,) * 5
    assert (row.cost_picodollars, row.cache_neutral_cost_picodollars, row.cost_complete) == (None, None, False)
    assert (row.known_cost_picodollars, row.total_spend_picodollars, report.summary.total_spend_picodollars) == (0, 0, 0)
    assert report.summary.known_spend_picodollars == 0


def test_a_score_needs_all_nine_benchmarks_complete_and_no_recovery() -> None:
    plan = plan_of([f"{name}/0" for name in sorted(FULL_SUITE)], ["a"], {"hle": "0.2"})
    cases = range(len(FULL_SUITE))
    outcomes, calls = outcomes_of(*({"case": case} for case in cases)), calls_of(*({"case": case} for case in cases))
    assert only(make_report(FACTS, plan, outcomes, calls)).sr_bench_score == 1.0
    recovered = only(make_report(replace(FACTS, recovery={"parent_run_id": "r"}), plan, outcomes, calls))
    assert (recovered.sr_bench_score, recovered.macro_accuracy) == (None, 1.0)
    assert only(make_report(FACTS, plan, outcomes.take(ints(range(8))), calls)).sr_bench_score is None
    assert only(make_report(FACTS, ONE, DONE, CALLED)).sr_bench_score is None


def test_the_macro_accuracy_weighs_benchmarks_by_their_decimal_text() -> None:
    plan = plan_of(["hle/0", "tau3/0", "tau3/1"], ["a"], {"hle": 0.1, "tau3": 0.3})
    outcomes = outcomes_of({"case": 0}, {"case": 1}, {"case": 2, "correct": False})
    assert only(make_report(FACTS, plan, outcomes, calls_of())).macro_accuracy == 0.625


def test_the_scope_of_a_score_is_said_in_words() -> None:
    own = only(make_report(replace(FACTS, custom_subset=True), ONE, DONE, CALLED)).score_scope
    assert own == "1 of nine benchmarks, weights renormalised; profile=quick; custom subset"
    foreign = only(make_report(FACTS, plan_of(["mine/0"], ["a"]), outcomes_of(), calls_of())).score_scope
    assert foreign.startswith("diagnostic with benchmarks outside the suite")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"mode": "replay"}, "replay"),
        ({"mode": "preview"}, "preview"),
        ({"status": "failed"}, "failed"),
        ({"recovery": {}}, "new attempts"),
        ({"cost_policy": "capability_only"}, "no budget"),
        ({"accounting_correction": {"id": "x"}}, "corrected"),
        ({"custom_subset": True}, "subset"),
        ({"plan_limitations": ("Only on Tuesdays.",)}, "Only on Tuesdays."),
    ],
)
def test_each_condition_adds_its_sentence(change: dict[str, Any], word: str) -> None:
    facts = replace(FACTS, runner={"version": "1"})
    plain = make_report(facts, ONE, DONE, CALLED).limitations
    changed = make_report(replace(facts, **change), ONE, DONE, CALLED).limitations
    assert any(word in sentence for sentence in set(changed) - set(plain))


def test_unknown_costs_a_missing_runner_and_gpqa_are_said() -> None:
    unknown = make_report(FACTS, ONE, DONE, calls_of({"case": 0, "cost": None}, {"case": 1})).limitations
    assert any("cost of some calls is unknown" in sentence for sentence in unknown)
    assert any("Nobody recorded" in sentence for sentence in unknown)
    assert not any("no call that a model accepted" in sentence for sentence in unknown)
    refused = make_report(FACTS, ONE, DONE, calls_of({"case": 0})).limitations
    assert any("no call that a model accepted" in sentence for sentence in refused)
    assert not any("cost of some calls is unknown" in sentence for sentence in refused)
    gpqa = make_report(FACTS, plan_of(["gpqa-diamond/0"], ["a"]), outcomes_of(), calls_of()).limitations
    assert any("GPQA" in sentence for sentence in gpqa)


def test_the_order_of_rows_changes_no_figure() -> None:
    cases, targets = [f"{name}/{i}" for name in ("hle", "tau3") for i in range(30)], ["a", "b", "c"]
    plan, chance = plan_of(cases, targets), np.random.default_rng(3)
    cells = [(case, target) for case in range(60) for target in range(3)]
    outcomes = outcomes_of(*({"case": c, "target": t, "correct": bool(chance.integers(2))} for c, t in cells))
    calls = calls_of(*({"case": c, "target": t, "cost": int(chance.integers(99))} for c, t in cells))
    order = chance.permutation(len(cells))
    shuffled = make_report(FACTS, plan, outcomes.take(order), calls.take(chance.permutation(len(cells))))
    assert shuffled == make_report(FACTS, plan, outcomes, calls)


def test_the_message_holds_every_figure_and_leaves_the_unknown_absent() -> None:
    facts = replace(
        FACTS,
        child_attempts=[ChildAttempt(id="run-2", status="running")],
        sampling={"temperature": 0, "seed": 2**70},
        target_profiles=[TargetProfile(id="a", model="m", kind="single", request_params={"top_p": 0.5})],
        adapter_versions={"mmlu-pro": "v2"},
        recovery={"parent_run_id": "run-0"},
    )
    made = make_report(facts, ONE, DONE, calls_of({"case": 0}, {"case": 1, "cost": None, "write": None, "finish": None}))
    message = report_convert.report(made)
    row, ours = message.summary.targets[0], only(made)
    assert pb.Report.FromString(message.SerializeToString()) == message
    assert (row.correct, row.accuracy, list(row.accuracy_ci95)) == (1, 0.5, list(ours.accuracy_ci95))
    assert not row.HasField("cost_picodollars")
    assert not row.HasField("tokens")
    assert not row.HasField("benchmark")
    assert message.benchmarks[0].benchmark == "mmlu-pro"
    assert row.known_cost_picodollars == 100
    assert dict(row.selected_models) == {"m": 2}
    assert row.output_diagnostics.subject_calls.unknown_finish_reason == 1
    assert row.cache_read.cache_read_rate == 0.2
    assert row.ttft_p95_s == 0.5
    assert message.summary.wall_time_s == 15.5
    assert from_value(message.provenance.sampling) == {"temperature": 0, "seed": 2**70}
    assert from_value(message.recovery) == {"parent_run_id": "run-0"}
    assert message.child_attempts[0].id == "run-2"
    known = report_convert.report(make_report(FACTS, ONE, DONE, CALLED)).summary.targets[0]
    assert (known.tokens.input_tokens, known.tokens.cached_input_tokens, known.cost_picodollars) == (16, 4, 200)


def test_every_field_of_the_metrics_message_is_filled_from_a_full_row() -> None:
    row = report_convert.metrics(make_report(FACTS, ONE, DONE, CALLED).benchmarks[0])
    json = to_json(row)
    allowed_null = {"queue_wait_p50_s", "queue_wait_p95_s", "first_token_lag_max_s", "macro_accuracy", "sr_bench_score"}
    only_in_replays = {name for name in json if name.startswith("estimated_")} | {"replayed_call_count"}
    nulls = {name for name, value in json.items() if value is None} | {"estimated_accuracy_ci95"}
    assert nulls == allowed_null | only_in_replays
    assert json["cost_usd"] == 2e-10


def test_of_sixteen_thousand_cells_each_is_counted_once() -> None:
    cases = [f"{name}/{i}" for name in sorted(FULL_SUITE) for i in range(445)]
    plan, size = plan_of(cases, ["a", "b", "c", "d"]), len(cases) * 4
    some = calls_of({"case": 0, "selected": "x", "decision": "p"}).take(np.zeros(size, dtype=np.int64))
    done = outcomes_of({"case": 0}).take(np.zeros(size, dtype=np.int64))
    calls = replace(some, case=plan.cell_case, target=plan.cell_target)
    outcomes = replace(done, case=plan.cell_case, target=plan.cell_target)
    report = make_report(FACTS, plan, outcomes, calls)
    assert [row.correct for row in report.summary.targets] == [len(cases)] * 4
