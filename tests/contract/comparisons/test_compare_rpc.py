"""The comparison RPCs on recorded runs: refusals, several candidates, questions one by one, and what can be compared."""

from __future__ import annotations

from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import plan_pb2
from srbench_kit import auth, views
from srbench_kit.values import from_value, to_value

from tests.contract.refusals import reason

LIMITS = {"concurrency": 4, "max_cost_picodollars": 5 * 10**12, "max_calls_per_case": 32, "max_output_tokens": 4096}


def limits(**changes: Any) -> plan_pb2.Limits:
    return plan_pb2.Limits(**{**LIMITS, "total_timeout_s": 180, **changes})


async def compare(stand: Any, *candidates: str, **more: Any) -> pb.ComparisonReport:
    request = pb.CompareRunsRequest(baseline_run_id="base", candidate_run_ids=candidates, **more)
    report: pb.ComparisonReport = await stand.gateway.CompareRuns(request)
    return report


@pytest.fixture
async def two(stand: Any, make: Any) -> Any:
    """A baseline of two single models and a router's run."""
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    await stand.add(make("cand", {"r": "1110"}))
    return stand


async def test_a_comparison_has_a_word_and_a_sentence_for_people(two: Any) -> None:
    found = await compare(two, "cand")
    (one,) = found.comparisons
    assert (found.baseline_selected_target_id, one.wins, one.losses, one.ties) == ("n", 1, 0, 3)
    assert (one.verdict, one.quality_delta) == ("not established", 0.25)
    assert "not established that r is better or worse than n" in one.verdict_sentence
    assert (
        one.total_cost_saving.low_percent
        == one.total_cost_saving.high_percent
        == pytest.approx(one.total_cost_saving_percent)
    )
    low, high = one.total_cost_saving.ci95_percent
    assert low <= one.total_cost_saving.low_percent <= high
    assert found.model_requests == 0


async def test_null_routers_and_regret_come_with_it(two: Any) -> None:
    (one,) = (await compare(two, "cand")).comparisons
    nulls, parts = one.null_routers, one.regret.total
    assert {policy.name: policy.quality for policy in nulls.always} == {"n": 0.5, "s": 0.25}
    assert nulls.oracle.quality == 0.5
    assert (parts.correct, parts.pool_limit) == (0.75, 0.25)
    assert sum((parts.correct, parts.pool_limit, parts.selection_error, parts.execution_failure)) == 1
    assert {row.decision for row in one.regret.decisions} == {"hard", "easy"}
    (bare,) = (await compare(two, "cand", figures_only=True)).comparisons
    assert not bare.HasField("null_routers")
    assert bare.quality_delta == one.quality_delta


async def test_a_margin_is_judged_and_called_what_it_is(two: Any) -> None:
    found = await compare(two, "cand", margin=0.05)
    made = found.comparisons[0].non_inferiority
    assert (made.verdict, made.exploratory, made.HasField("plan_run_id")) == ("not shown", True, False)
    assert made.more_cases > 0
    assert "exploratory" in found.margin_qualification
    assert "Exploratory" in made.sentence


async def test_a_claim_of_the_plan_is_judged_and_shown_by_report_and_comparison(stand: Any, make: Any) -> None:
    claim = plan_pb2.Claim(kind="non_inferiority", margin=0.3)
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    await stand.add(make("cand", {"r": "1110"}, plan={"claims": [claim]}))
    found = await compare(stand, "cand")
    (judged,) = found.comparisons[0].claims
    assert (judged.verdict, judged.margin, judged.plan_run_id, judged.exploratory) == ("not shown", 0.3, "cand", False)
    assert not found.comparisons[0].HasField("non_inferiority")
    assert not found.HasField("margin_qualification")
    report = await stand.gateway.GetReport(accounting_pb.GetReportRequest(run_id="cand"))
    assert list(report.claims) == [claim]
    shown = views.deep(found)["comparisons"][0]
    assert shown["claims"][0]["more_cases"] == judged.more_cases
    assert shown["non_inferiority"] is None
    assert views.report(report)["claims"] == [{"kind": "non_inferiority", "margin": 0.3, "target_id": None}]


async def test_the_adaptive_interval_stands_beside_hoeffdings_and_a_band_over_all_singles(two: Any) -> None:
    (one,) = (await compare(two, "cand")).comparisons
    low, high = one.quality_delta_adaptive_ci95
    assert low <= one.quality_delta <= high
    assert "independent" in one.quality_delta_adaptive_ci95_qualification
    assert [row.target_id for row in one.band.singles] == ["n", "s"]
    assert one.band.alpha == 0.025
    assert list(one.band.best_single_delta_interval) == [
        min(row.interval[end] for row in one.band.singles) for end in (0, 1)
    ]


async def test_several_candidates_pay_for_their_number(two: Any, make: Any) -> None:
    await two.add(make("cand2", {"r": "0000"}))
    found = await compare(two, "cand", "cand2")
    assert not found.HasField("candidate_run_id")
    assert [one.candidate_run_id for one in found.comparisons] == ["cand", "cand2"]
    assert [run.run_id for run in found.candidates] == ["cand", "cand2"]
    assert len(found.candidate_targets) == 2
    (alone,) = (await compare(two, "cand2")).comparisons
    assert found.comparisons[1].mcnemar_p_holm == min(1.0, 2 * alone.mcnemar_p)


@pytest.mark.parametrize(
    ("candidates", "more", "expected"),
    [
        ([], {}, "MISSING_FIELD"),
        (["base"], {}, "SAME_RUN"),
        (["cand", "cand"], {}, "REPEATED_RUN"),
        (["none"], {}, "NO_SUCH_RUN"),
        ([f"run-{n}" for n in range(33)], {}, "TOO_MANY_RUNS"),
        (["cand"], {"margin": 0.0}, "BAD_MARGIN"),
        (["cand"], {"margin": 1.0}, "BAD_MARGIN"),
        (["cand"], {"margin": float("nan")}, "BAD_MARGIN"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    two: Any, candidates: list[str], more: dict[str, Any], expected: str
) -> None:
    assert await reason(compare(two, *candidates, **more)) == expected


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("NOT_LIVE", {"plan": {"mode": "preview"}}),
    ("NOT_LIVE", {"plan": {"mode": "replay"}}),
    ("RUN_NOT_OVER", {"run": {"status": "running"}}),
    ("RUN_NOT_OVER", {"run": {"status": "cancelled"}}),
    ("RUN_NOT_OVER", {"run": {"status": "interrupted"}}),
    ("VERSION_DIFFERS", {"plan": {"version": "sr-bench-2.0"}}),
    ("OUTPUT_POLICY_DIFFERS", {"plan": {"output_policy": "native"}}),
    ("SAMPLING_DIFFERS", {"plan": {"sampling": to_value({"temperature": 1})}}),
    ("OPTIONS_DIFFER", {"plan": {"benchmark_options": to_value({"mmlu-pro": {"max_steps": 3}})}}),
    ("EVALUATORS_DIFFER", {"plan": {"benchmark_options": to_value({"mmlu-pro": {"judge": "judge"}})}}),
    ("WEIGHTS_DIFFER", {"plan": {"benchmark_weights": {"mmlu-pro": 2.0}}}),
    ("ADAPTERS_DIFFER", {"plan": {"adapter_versions": {"mmlu-pro": "v2"}}}),
    ("PRICES_DIFFER", {"prices": {"north": {"input": 9, "cached_input": 1, "cache_write": 1, "output": 1}}}),
    ("CASES_DIFFER", {"cases": ("mmlu-pro/0", "mmlu-pro/1", "mmlu-pro/2", "mmlu-pro/9")}),
]


@pytest.mark.parametrize(("expected", "changes"), REFUSED, ids=[f"{row[0]}-{n}" for n, row in enumerate(REFUSED)])
async def test_what_cannot_be_compared_is_refused_by_its_reason(
    stand: Any, make: Any, expected: str, changes: dict[str, Any]
) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    await stand.add(make("cand", {"r": "1110"}, **changes))
    assert await reason(compare(stand, "cand")) == expected


@pytest.mark.parametrize(
    ("expected", "base", "cand"),
    [
        ("CELLS_PENDING", "1100", "11-0"),
        ("CELLS_PENDING", "1-00", "1110"),
    ],
)
async def test_cells_without_an_end_are_refused(stand: Any, make: Any, expected: str, base: str, cand: str) -> None:
    await stand.add(make("base", {"n": base, "s": "1000"}))
    await stand.add(make("cand", {"r": cand}))
    assert await reason(compare(stand, "cand")) == expected


@pytest.mark.parametrize("status", ["cancelled", "sent_unknown"])
async def test_stopped_and_lost_cells_are_refused(stand: Any, make: Any, status: str) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    made = make("cand", {"r": "1110"})
    made.results[1] = {**made.results[1], "status": status, "correct": None, "error": "cancelled"}
    await stand.add(made)
    assert await reason(compare(stand, "cand")) == "CELLS_UNFINISHED"


async def test_an_answer_without_a_grade_is_refused(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    made = make("cand", {"r": "1110"})
    made.results[1]["correct"] = None
    await stand.add(made)
    assert await reason(compare(stand, "cand")) == "CELLS_UNGRADED"


async def test_a_baseline_of_routers_is_refused(two: Any, make: Any) -> None:
    request = pb.CompareRunsRequest(baseline_run_id="cand", candidate_run_ids=["base"])
    assert await reason(two.gateway.CompareRuns(request)) == "NO_SINGLE_MODEL"


async def test_cases_of_one_id_that_say_something_else_are_refused(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    made = make("cand", {"r": "1110"})
    made.contents = made.content()
    made.contents[2]["messages"][0]["content"] = "Another question?"
    await stand.add(made)
    assert await reason(compare(stand, "cand")) == "CASE_CONTENT_DIFFERS"


async def test_the_same_cases_in_another_order_are_the_same(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    order = ("mmlu-pro/3", "mmlu-pro/2", "mmlu-pro/1", "mmlu-pro/0")
    await stand.add(make("cand", {"r": "0111"}, cases=order))
    (one,) = (await compare(stand, "cand")).comparisons
    assert (one.wins, one.losses) == (1, 0)


async def test_labels_budget_and_concurrency_do_not_block(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    free = {
        "name": "other",
        "profile": "smoke",
        "seed": 9,
        "limits": limits(concurrency=32, max_cost_picodollars=9 * 10**12),
    }
    await stand.add(make("cand", {"r": "1110"}, plan=free))
    assert (await compare(stand, "cand")).comparisons[0].wins == 1


async def test_a_time_limit_blocks_once_a_cell_ran_into_it(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    await stand.add(make("fine", {"r": "11f0"}, plan={"limits": limits(total_timeout_s=60)}))
    assert (await compare(stand, "fine")).comparisons[0].paired_cases == 4
    made = make("late", {"r": "11f0"}, plan={"limits": limits(total_timeout_s=60)})
    made.results[2]["error"] = "deadline_exceeded"
    await stand.add(made)
    assert await reason(compare(stand, "late")) == "LIMITS_DIFFER"


async def test_a_single_model_under_two_parameter_sets_needs_two_ids(stand: Any, make: Any) -> None:
    profiles = [
        {"id": "n", "kind": "single", "model": "north", "request_params": {"reasoning_effort": "low"}},
        {"id": "n-high", "kind": "single", "model": "north", "request_params": {"reasoning_effort": "high"}},
    ]
    await stand.add(make("base", {"n": "1100", "n-high": "1110"}, profiles))
    assert (await reason_of_other_effort(stand, make)) == "PARAMETERS_DIFFER"
    await stand.add(make("cand", {"r": "1110"}))
    assert (await compare(stand, "cand")).baseline_selected_target_id == "n-high"


async def reason_of_other_effort(stand: Any, make: Any) -> str:
    other = [{"id": "n", "kind": "single", "model": "north", "request_params": {"reasoning_effort": "high"}}]
    await stand.add(make("changed", {"n": "1111"}, other))
    return await reason(compare(stand, "changed"))


async def test_judges_are_compared_by_what_they_are_not_by_address(stand: Any, make: Any) -> None:
    def plan(url: str) -> dict[str, Any]:
        return {"benchmark_options": to_value({"mmlu-pro": {"judge": "judge"}})} | {"name": url}

    await stand.add(make("base", {"n": "1100", "s": "1000"}, plan=plan("a")))
    for run_id in ("moved", "other"):
        await stand.add(make(run_id, {"r": "1110"}, plan=plan("b")))
    judge = stand.planner.runs["moved"].plan.auxiliary_targets[0]
    judge.base_url, judge.api_key_env = "http://elsewhere/v1", "OTHER_KEY"
    assert (await compare(stand, "moved")).comparisons[0].wins == 1
    stand.planner.runs["other"].plan.auxiliary_targets[0].model = "south"
    assert await reason(compare(stand, "other")) == "EVALUATORS_DIFFER"


async def test_an_unknown_cost_leaves_a_range(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "0000"}))
    made = make("cand", {"r": "1110"})
    made.calls[0]["usage"] = None
    await stand.add(made)
    (one,) = (await compare(stand, "cand")).comparisons
    assert not one.HasField("subject_cost_saving_percent")
    assert one.subject_cost_comparison_reason
    saving = one.subject_cost_saving
    assert saving.unknown_cost_calls == 1
    assert saving.low_percent < saving.high_percent
    assert saving.ci95_percent[0] <= saving.low_percent
    assert saving.ci95_percent[1] >= saving.high_percent


async def test_runs_without_prices_have_no_saving_interval(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}, plan={"cost_policy": "capability_only"}))
    await stand.add(make("cand", {"r": "1110"}))
    (one,) = (await compare(stand, "cand")).comparisons
    assert not one.HasField("subject_cost_saving")
    assert one.subject_cost_comparison_reason == "the baseline run enforced no prices"


async def pairs(stand: Any, **more: Any) -> pb.ComparePairsResponse:
    request = pb.ComparePairsRequest(**{"baseline_run_id": "base", "candidate_run_id": "cand", **more})
    response: pb.ComparePairsResponse = await stand.gateway.ComparePairs(request)
    return response


async def test_every_question_shows_both_answers(two: Any) -> None:
    found = await pairs(two, texts=True)
    assert (found.baseline_target_id, found.candidate_target_id, found.total) == ("n", "r", 4)
    assert dict(found.counts) == {"win": 1, "loss": 0, "both_right": 2, "both_wrong": 1}
    assert [pair.outcome for pair in found.pairs] == ["tie", "tie", "win", "tie"]
    win = found.pairs[2]
    assert (win.case_id, win.stratum) == ("mmlu-pro/2", "algebra")
    assert (from_value(win.baseline.answer), from_value(win.candidate.answer)) == ("B", "A")
    assert (win.candidate.model, win.candidate.decision, win.baseline.model) == ("north", "hard", "north")
    assert (win.baseline.final, win.candidate.final) == ("Answer: B", "Answer: A")
    assert win.cost_delta_picodollars == win.candidate.cost_picodollars - win.baseline.cost_picodollars
    assert (win.candidate.latency_s, win.latency_delta_s) == (3.0, 0.0)
    assert win.candidate.call_id.startswith("call-")
    assert not (await pairs(two)).pairs[0].baseline.HasField("final")


async def test_questions_are_filtered_sorted_and_paged(two: Any) -> None:
    assert [pair.case_id for pair in (await pairs(two, outcome="win")).pairs] == ["mmlu-pro/2"]
    assert (await pairs(two, outcome="tie")).total == 3
    assert (await pairs(two, benchmark="none")).total == 0
    dearest = await pairs(two, sort="cost_delta", descending=True, page_size=3)
    rest = await pairs(two, sort="cost_delta", descending=True, page_size=3, page_token=dearest.next_page_token)
    deltas = [pair.cost_delta_picodollars for page in (dearest, rest) for pair in page.pairs]
    assert deltas == sorted(deltas, reverse=True)
    assert (len(deltas), rest.next_page_token) == (4, "")
    assert (await pairs(two, sort="outcome", descending=True)).pairs[0].outcome == "win"
    other = pairs(two, outcome="win", page_token=dearest.next_page_token)
    assert await reason(other) == "BAD_PAGE_TOKEN"


async def test_two_targets_of_one_run_can_be_looked_at_side_by_side(two: Any) -> None:
    same = {"baseline_run_id": "base", "candidate_run_id": "base"}
    found = await pairs(two, **same, baseline_target_id="s", candidate_target_id="n")
    assert dict(found.counts)["win"] == 1
    assert await reason(pairs(two, **same, candidate_target_id="n")) == "MISSING_FIELD"


async def test_two_versions_of_a_router_can_be_looked_at_side_by_side(two: Any, make: Any) -> None:
    await two.add(make("cand2", {"r": "0111"}))
    routers = {"baseline_run_id": "cand", "candidate_run_id": "cand2"}
    found = await pairs(two, **routers, baseline_target_id="r")
    assert dict(found.counts) == {"win": 1, "loss": 1, "both_right": 2, "both_wrong": 0}
    assert await reason(pairs(two, **routers)) == "NO_SINGLE_MODEL"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"outcome": "draw"}, "BAD_FIELD"),
        ({"sort": "colour"}, "BAD_FIELD"),
        ({"page_size": -1}, "BAD_PAGE_SIZE"),
        ({"page_token": "x"}, "BAD_PAGE_TOKEN"),
        ({"baseline_target_id": "zz"}, "NO_SUCH_TARGET"),
        ({"candidate_target_id": "zz"}, "NO_SUCH_TARGET"),
        ({"candidate_run_id": ""}, "MISSING_FIELD"),
        ({"candidate_run_id": "base"}, "MISSING_FIELD"),
        ({"candidate_run_id": "none"}, "NO_SUCH_RUN"),
    ],
)
async def test_pairs_refuse_what_they_do_not_know(two: Any, more: dict[str, Any], expected: str) -> None:
    assert await reason(pairs(two, **more)) == expected


async def test_a_failed_answer_is_a_loss_with_its_reason(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    await stand.add(make("cand", {"r": "1f00"}))
    (loss,) = (await pairs(stand, outcome="loss")).pairs
    assert (loss.candidate.status, loss.candidate.reason) == ("failed", "http_error")
    assert not loss.HasField("cost_delta_picodollars")


async def options(stand: Any, **more: Any) -> pb.ListComparisonOptionsResponse:
    who = more.pop("actor", auth.Actor(id="local", role="local"))
    metadata = tuple(auth.actor_metadata(who).items())
    request = pb.ListComparisonOptionsRequest(**more)
    response: pb.ListComparisonOptionsResponse = await stand.gateway.ListComparisonOptions(request, metadata=metadata)
    return response


async def test_options_name_the_partners_and_why_the_others_are_none(two: Any, make: Any) -> None:
    await two.add(make("hot", {"r": "1110"}, plan={"sampling": to_value({"temperature": 1})}))
    await two.add(make("open", {"r": "11-0"}, run={"status": "running"}))
    found = await options(two, baseline_run_id="base")
    assert [run.id for run in found.options] == ["cand"]
    reasons = {run.id: [one.reason for one in run.reasons] for run in found.incompatible}
    assert reasons == {"hot": ["SAMPLING_DIFFERS"], "open": ["RUN_NOT_OVER", "CELLS_PENDING"]}
    assert (found.baseline.id, found.scanned_pairs, found.model_requests) == ("base", 3, 0)
    assert not found.HasField("empty_reason")
    everything = await options(two)
    assert [run.id for run in everything.baselines] == ["base"]


async def test_options_of_a_run_that_can_be_no_baseline(two: Any) -> None:
    found = await options(two, baseline_run_id="cand")
    assert (list(found.options), found.empty_reason) == ([], "baseline_not_eligible_live_single")
    assert [one.reason for one in found.baseline.reasons] == ["NO_SINGLE_MODEL"]


async def test_options_page_through_runs_and_see_only_the_callers(two: Any, make: Any) -> None:
    await two.add(make("bobs", {"r": "1110"}, run={"owner": "bob"}))
    first = await options(two, baseline_run_id="base", page_size=2)
    assert ([run.id for run in first.options], first.has_more) == (["bobs", "cand"], True)
    last = await options(two, baseline_run_id="base", page_size=2, page_token=first.next_page_token)
    assert (list(last.options), last.has_more, last.empty_reason) == ([], False, "no_compatible_saved_runs")
    bob = await options(two, actor=auth.Actor(id="bob", role="write"), baseline_run_id="base")
    assert [run.id for run in bob.options] == ["bobs"]
    assert await reason(options(two, page_token=first.next_page_token)) == "BAD_PAGE_TOKEN"
    assert await reason(options(two, baseline_run_id="none")) == "NO_SUCH_RUN"
