"""A comparison: who is the baseline, how cases are paired, when a saving is unknown, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from srbench_accounting.claims import Claim
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
from srbench_accounting.compare import Comparison, RunFigures, compare
from srbench_accounting.comparing import compare_all
from srbench_accounting.paired import mcnemar_exact
from srbench_accounting.report import RunFacts, make_report
from srbench_accounting.savings import (
    BASELINE_TIE_UNKNOWN,
    BASELINE_UNPRICED,
    BASELINE_ZERO,
    CANDIDATE_UNKNOWN,
    CANDIDATE_UNPRICED,
    saving_percent,
)
from srbench_kit.errors import Conflict, InvalidInput, SrBenchError

CASES = ["mmlu-pro/0", "mmlu-pro/1", "mmlu-pro/2", "tau3/0"]
Right = dict[str, Sequence[bool]]


def run(
    right: Right,
    *,
    run_id: str = "base",
    costs: dict[str, int | None] | None = None,
    cases: list[str] | None = None,
    judge: dict[str, int | None] | None = None,
    kind: str = "single",
    weights: dict[str, float | str] | None = None,
    **facts: Any,
) -> RunFigures:
    """A run in which each target has the cases right that `right` says, every call costing its target's amount."""
    names, order = list(right), cases or CASES
    cells = [(case, target) for case in range(len(order)) for target in range(len(names))]
    plan = PlanColumns(
        case_ids=order,
        case_benchmark=Labels.of(case.split("/")[0] for case in order),
        target_ids=names,
        cell_case=ints(case for case, _ in cells),
        cell_target=ints(target for _, target in cells),
        weights=weights or {},
    )
    size = len(cells)
    outcomes = OutcomeColumns(
        case=plan.cell_case,
        target=plan.cell_target,
        end=np.full(size, CellEnd.DONE),
        reason=Labels.of([None] * size),
        correct=ints(right[names[target]][case] for case, target in cells),
        strict_format=np.full(size, -1),
        output_limit=np.zeros(size, dtype=np.int64),
        latency_s=np.ones(size),
        queue_wait_s=np.zeros(size),
        finish_s=np.zeros(size),
    )
    judged = [(target, cost) for target, cost in (judge or {}).items()]
    rows = [(case, target, Role.SUBJECT, (costs or {}).get(names[target], 100)) for case, target in cells]
    rows += [(0, names.index(target), Role.JUDGE, cost) for target, cost in judged]
    count, unknown = len(rows), Labels.of([None] * len(rows))
    calls = CallColumns(
        case=ints(row[0] for row in rows),
        target=ints(row[1] for row in rows),
        role=ints(row[2] for row in rows),
        end=np.full(count, CallEnd.COMPLETED),
        **{name: np.ones(count, dtype=np.int64) for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens")},
        **{name: np.ones(count, dtype=np.int64) for name in ("output_tokens", "prompt_tokens", "inference_calls")},
        cost=ints(row[3] for row in rows),
        cache_neutral_cost=ints(row[3] for row in rows),
        reserved=np.full(count, 1000),
        cache_read_reported=np.ones(count, dtype=np.int64),
        model=unknown,
        selected_model=unknown,
        decision=unknown,
        finish_reason=unknown,
        latency_s=np.ones(count),
        ttft_s=np.ones(count),
        first_token_lag_s=floats([None] * count),
    )
    run_facts = RunFacts(**{"run_id": run_id, "status": "completed", "created_s": 0.0, "updated_s": 1.0, **facts})
    report = make_report(run_facts, plan, outcomes, calls)
    return RunFigures(plan=plan, outcomes=outcomes, report=report, singles=frozenset(names if kind == "single" else []))


def router(right: Sequence[bool], cost: int | None = 50, **more: Any) -> RunFigures:
    return run({"r": right}, **{"run_id": "cand", "costs": {"r": cost}, "kind": "mom", **more})


def only(base: RunFigures, candidate: RunFigures) -> Comparison:
    (made,) = compare(base, candidate).comparisons
    return made


ALL, NONE = (1, 1, 1, 1), (0, 0, 0, 0)


def test_the_baseline_is_the_single_model_with_the_highest_weighted_quality() -> None:
    singles: Right = {"many": (1, 1, 1, 0), "rare": (0, 0, 0, 1)}
    assert compare(run(singles), router(ALL)).baseline_selected_target_id == "many"
    weighted = run(singles, weights={"mmlu-pro": 0.1, "tau3": 0.3})
    assert compare(weighted, router(ALL)).baseline_selected_target_id == "rare"


def test_qualities_that_are_equal_as_fractions_tie_whatever_floats_say() -> None:
    weights: dict[str, float | str] = {"mmlu-pro": 0.3, "tau3": 0.1}
    base = run({"a": (0, 0, 1, 0), "b": (0, 0, 0, 1)}, weights=weights)
    assert 0.3 / 3 != 0.1
    assert compare(base, router(ALL)).baseline_tied_best_target_ids == ("a", "b")


def test_ties_go_to_the_lowest_known_total_spend_and_then_to_the_id() -> None:
    tie: Right = {"c": ALL, "a": ALL, "b": ALL}
    made = compare(run(tie, costs={"a": 90, "b": 70, "c": 70}), router(ALL))
    assert (made.baseline_selected_target_id, made.baseline_tied_best_target_ids) == ("b", ("a", "b", "c"))
    judged = compare(run(tie, costs={"a": 90, "b": 70, "c": 70}, judge={"b": 900}), router(ALL))
    assert judged.baseline_selected_target_id == "c"
    unknown = compare(run(tie, costs={"a": 90, "b": None, "c": None}), router(ALL))
    assert unknown.baseline_selected_target_id == "a"


def test_a_router_in_the_baseline_run_is_no_baseline() -> None:
    base = run({"single": (1, 0, 0, 0), "other": ALL})
    assert compare(replace(base, singles=frozenset({"single"})), router(ALL)).baseline_selected_target_id == "single"


def test_differences_are_counted_case_by_case() -> None:
    made = only(run({"a": (1, 1, 0, 0)}), router((1, 0, 1, 1)))
    assert (made.wins, made.losses, made.ties, made.paired_cases) == (2, 1, 1, 4)
    assert made.micro_quality_delta == 0.25
    assert made.quality_delta == 0.5
    assert (made.mcnemar_p, made.mcnemar_p_holm) == (1.0, 1.0)
    assert made.quality_delta_ci95[1] == 1.0


def test_cases_are_paired_by_id_whatever_their_order() -> None:
    base = run({"a": (1, 1, 0, 0)})
    mirrored = router(tuple(reversed((1, 0, 1, 1))), cases=CASES[::-1])
    assert only(base, mirrored) == only(base, router((1, 0, 1, 1)))


def test_several_candidates_are_corrected_for_their_number() -> None:
    cases = [f"hle/{i}" for i in range(12)]
    base = run({"a": [0] * 12}, cases=cases)
    candidate = run({"x": [1] * 10 + [0] * 2, "y": [1] * 6 + [0] * 6}, cases=cases, run_id="cand", kind="mom")
    first, second = compare(base, candidate).comparisons
    assert (first.mcnemar_p, second.mcnemar_p) == (mcnemar_exact(0, 10), mcnemar_exact(0, 6))
    assert first.mcnemar_p_holm == 2 * first.mcnemar_p
    assert second.mcnemar_p_holm == second.mcnemar_p


def test_savings_are_percentages_of_the_baseline() -> None:
    made = only(run({"a": ALL}, judge={"a": 100}), router(ALL, 25))
    assert (made.subject_cost_saving_percent, made.total_cost_saving_percent) == (75.0, 80.0)
    assert (made.baseline_evaluation_cost_picodollars, made.candidate_evaluation_cost_picodollars) == (100, 0)
    assert (made.cache_neutral_cost_saving_percent, made.total_cost_comparison_reason) == (75.0, None)
    assert only(run({"a": ALL}), router(ALL, 150)).total_cost_saving_percent == -50.0


def test_an_unknown_cost_of_any_tied_best_single_makes_every_saving_unknown() -> None:
    made = compare(run({"a": ALL, "b": ALL}, costs={"a": 10, "b": None}), router(ALL))
    assert (made.baseline_selected_target_id, made.baseline_cost_comparison_eligible) == ("a", False)
    one = made.comparisons[0]
    assert (one.subject_cost_saving_percent, one.total_cost_saving_percent) == (None, None)
    assert one.cache_neutral_cost_saving_percent is None
    assert one.total_cost_comparison_reason == made.baseline_cost_comparison_reason == BASELINE_TIE_UNKNOWN
    assert (one.baseline_total_cost_picodollars, one.candidate_total_cost_picodollars) == (40, 200)


def test_an_unknown_cost_of_a_weaker_single_does_not_matter() -> None:
    assert only(run({"a": ALL, "b": NONE}, costs={"a": 100, "b": None}), router(ALL)).total_cost_saving_percent == 50.0


@pytest.mark.parametrize(
    ("base", "candidate", "reason"),
    [
        ({}, {"cost": None}, CANDIDATE_UNKNOWN),
        ({"costs": {"a": 0}}, {}, BASELINE_ZERO),
        ({"cost_policy": "capability_only"}, {}, BASELINE_UNPRICED),
        ({}, {"cost_policy": "capability_only"}, CANDIDATE_UNPRICED),
    ],
)
def test_an_unknown_saving_says_why(base: dict[str, Any], candidate: dict[str, Any], reason: str) -> None:
    made = only(run({"a": ALL}, **base), router(ALL, **candidate))
    assert made.total_cost_saving_percent is None
    assert made.total_cost_comparison_reason == reason
    assert made.subject_cost_comparison_reason == reason


def test_a_judge_of_unknown_cost_hides_the_total_and_not_the_subject() -> None:
    made = only(run({"a": ALL}), router(ALL, 50, judge={"r": None}))
    assert (made.subject_cost_saving_percent, made.total_cost_saving_percent) == (50.0, None)
    assert (made.subject_cost_comparison_reason, made.total_cost_comparison_reason) == (None, CANDIDATE_UNKNOWN)


def test_a_saving_of_unknown_or_of_nothing_is_unknown() -> None:
    assert saving_percent(None, 1) is None
    assert saving_percent(1, None) is None
    assert saving_percent(0, 0) is None
    assert saving_percent(3, 1) == pytest.approx(200 / 3)


def without_ends(side: RunFigures) -> RunFigures:
    some = side.outcomes.take(ints([0]))
    report = make_report(side.report.facts, side.plan, some, empty_calls(side))
    return replace(side, outcomes=some, report=report)


def empty_calls(side: RunFigures) -> CallColumns:
    none, text = np.array([], dtype=np.int64), Labels.of([])
    columns: dict[str, Any] = {}
    for name in CallColumns.__slots__:
        columns[name] = none
        if name in ("model", "selected_model", "decision", "finish_reason"):
            columns[name] = text
        elif name.endswith("_s"):
            columns[name] = floats([])
    return CallColumns(**columns)


def ending(side: RunFigures, end: CellEnd, correct: int = 0) -> RunFigures:
    """The same run with a first cell that ended otherwise."""
    outcomes = replace(side.outcomes, end=side.outcomes.end.copy(), correct=side.outcomes.correct.copy())
    outcomes.end[0], outcomes.correct[0] = end, correct
    return replace(side, outcomes=outcomes)


BASE, OTHER = run({"a": ALL}), router(ALL)
REFUSED: list[tuple[RunFigures, RunFigures, type[SrBenchError], str]] = [
    (BASE, BASE, InvalidInput, "SAME_RUN"),
    (replace(BASE, singles=frozenset()), OTHER, InvalidInput, "NO_SINGLE_MODEL"),
    (BASE, router(ALL, cases=["mmlu-pro/0", "mmlu-pro/1", "mmlu-pro/2", "tau3/9"]), InvalidInput, "CASES_DIFFER"),
    (BASE, router((1, 1, 1), cases=CASES[:3]), InvalidInput, "CASES_DIFFER"),
    (BASE, without_ends(OTHER), Conflict, "CELLS_PENDING"),
    (without_ends(BASE), OTHER, Conflict, "CELLS_PENDING"),
    (BASE, router(ALL, mode="preview"), InvalidInput, "NOT_LIVE"),
    (run({"a": ALL}, mode="replay"), OTHER, InvalidInput, "NOT_LIVE"),
    (BASE, router(ALL, status="running"), Conflict, "RUN_NOT_OVER"),
    (BASE, router(ALL, status="cancelled"), Conflict, "RUN_NOT_OVER"),
    (BASE, ending(OTHER, CellEnd.CANCELLED), Conflict, "CELLS_UNFINISHED"),
    (ending(BASE, CellEnd.INTERRUPTED), OTHER, Conflict, "CELLS_UNFINISHED"),
    (BASE, ending(OTHER, CellEnd.DONE, correct=-1), Conflict, "CELLS_UNGRADED"),
    (run({"a": ALL}, weights={"mmlu-pro": 0, "tau3": 0}), OTHER, InvalidInput, "NO_WEIGHT"),
]


@pytest.mark.parametrize(("base", "candidate", "kind", "reason"), REFUSED, ids=[row[3] for row in REFUSED])
def test_what_cannot_be_compared_is_refused_with_a_reason(
    base: RunFigures, candidate: RunFigures, kind: type[SrBenchError], reason: str
) -> None:
    with pytest.raises(kind) as caught:
        compare(base, candidate)
    assert caught.value.reason == reason


def test_targets_that_plan_different_cases_cannot_be_compared() -> None:
    ragged = run({"a": ALL, "b": ALL})
    keep = ints(range(len(ragged.plan.cell_case) - 1))
    plan = replace(ragged.plan, cell_case=ragged.plan.cell_case[keep], cell_target=ragged.plan.cell_target[keep])
    with pytest.raises(InvalidInput, match="same cases"):
        compare(replace(ragged, plan=plan), OTHER)


def test_the_band_has_every_single_model_and_pays_for_all_of_them() -> None:
    cases = [f"hle/{i}" for i in range(60)]
    base = run({"a": [1] * 40 + [0] * 20, "b": [1] * 20 + [0] * 40}, cases=cases)
    made = compare_all(base, [router([1] * 50 + [0] * 10, cases=cases)]).compared[0]
    assert [one.target_id for one in made.band.singles] == ["a", "b"]
    assert [one.quality_delta for one in made.band.singles] == [pytest.approx(10 / 60), pytest.approx(30 / 60)]
    assert made.band.alpha == 0.05 / 2
    (low, high), wide = made.figures.quality_delta_adaptive_ci95, made.band.against("a")[0].interval
    assert wide[0] < low <= 10 / 60 <= high < wide[1]
    twice = compare_all(base, [router(ALL * 15, cases=cases, run_id=name) for name in ("x", "y")])
    assert {one.band.alpha for one in twice.compared} == {0.05 / 4}


def test_a_verdict_of_worse_after_picking_the_luckiest_of_equal_singles_is_rare() -> None:
    """Twenty single models and a router of one and the same skill: picking the best observed one favours it."""
    source, cases = np.random.default_rng(11), [f"hle/{i}" for i in range(150)]
    words = []
    for _ in range(60):
        right = (source.random((21, 150)) < 0.5).astype(int)
        base = run({f"m{n:02}": row for n, row in enumerate(right[:20].tolist())}, cases=cases)
        words.append(compare_all(base, [router(right[20].tolist(), cases=cases)]).compared[0].verdict.word)
    assert words.count("not established") >= 57


def test_claims_of_both_plans_are_judged() -> None:
    base, other = run({"a": ALL}), router(ALL)
    mine = replace(other, claims=(Claim(margin=0.3, target_id="r", run_id="cand"),))
    both = replace(base, claims=(Claim(margin=0.2, run_id="base"),))
    (one,) = compare_all(base, [mine]).compared[0].verdict.claims
    assert (one.margin, one.plan_run_id) == (0.3, "cand")
    (one,) = compare_all(both, [mine]).compared[0].verdict.claims
    assert (one.margin, one.plan_run_id) == (0.2, "base")
    assert compare_all(base, [other]).compared[0].verdict.claims == ()
