"""A run and its recoveries as one evaluation: the rule, and what it does to every figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.cell_ledgers import cell_ledgers
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
from srbench_accounting.lineage import Attempt, Merged, merge
from srbench_accounting.report import RunFacts, make_report

CASES = ["mmlu-pro/0", "mmlu-pro/1", "mmlu-pro/2"]


def plan(targets: list[str]) -> PlanColumns:
    return PlanColumns(
        case_ids=CASES,
        case_benchmark=Labels.of(["mmlu-pro"] * 3),
        target_ids=targets,
        cell_case=ints(index for index in range(3) for _ in targets),
        cell_target=ints(index for _ in CASES for index in range(len(targets))),
        weights={},
    )


def outcomes(*rows: tuple[int, int, int, int | None]) -> OutcomeColumns:
    """Rows of case, target, end, correct."""
    nothing = floats([None] * len(rows))
    return OutcomeColumns(
        case=ints(row[0] for row in rows),
        target=ints(row[1] for row in rows),
        end=ints(row[2] for row in rows),
        reason=Labels.of(None if row[2] == CellEnd.DONE else "http_error" for row in rows),
        correct=ints(row[3] for row in rows),
        strict_format=ints(None for _ in rows),
        output_limit=ints(0 for _ in rows),
        latency_s=floats(1.0 for _ in rows),
        queue_wait_s=nothing,
        finish_s=nothing,
    )


def calls(*rows: dict[str, Any]) -> CallColumns:
    def column(name: str, default: Any) -> Any:
        return ints(row.get(name, default) for row in rows)

    return CallColumns(
        case=column("case", 0),
        target=column("target", 0),
        role=column("role", Role.SUBJECT),
        end=column("end", CallEnd.COMPLETED),
        input_tokens=column("input", 1),
        cached_input_tokens=column("cached", 0),
        cache_write_tokens=column("write", 0),
        output_tokens=column("output", 1),
        prompt_tokens=column("prompt", 1),
        cost=column("cost", 10),
        cache_neutral_cost=column("neutral", 10),
        reserved=column("reserved", 50),
        inference_calls=column("inferences", 1),
        cache_read_reported=column("told", 1),
        model=Labels.of(row.get("model", "m") for row in rows),
        selected_model=Labels.of(row.get("selected") for row in rows),
        decision=Labels.of(None for _ in rows),
        finish_reason=Labels.of("stop" for _ in rows),
        latency_s=floats(row.get("latency_s", 2.0) for row in rows),
        ttft_s=floats(row.get("ttft_s", 0.5) for row in rows),
        first_token_lag_s=floats(None for _ in rows),
    )


def attempt(number: int, outcome_rows: OutcomeColumns, call_rows: CallColumns, targets: list[str], **more: Any) -> Attempt:
    given = {"status": "completed", "updated_s": 10.0 + number} | more
    return Attempt(RunFacts(run_id=f"run-{number}", created_s=float(number), **given), targets, outcome_rows, call_rows)


DONE, FAILED, INTERRUPTED = CellEnd.DONE, CellEnd.FAILED, CellEnd.INTERRUPTED
LOST = {"end": CallEnd.FAILED, "cost": -1, "input": -1, "output": -1, "model": None, "latency_s": 90.0, "ttft_s": 80.0}


def recovered() -> Merged:
    """Three cells; the last two of them failed, and a child of the second target alone answered both."""
    first = attempt(
        1,
        outcomes((0, 1, DONE, 1), (1, 1, FAILED, None), (2, 1, FAILED, None)),
        calls({"case": 0, "target": 1}, {"case": 1, "target": 1, **LOST}, {"case": 2, "target": 1, **LOST}),
        ["a", "b"],
        status="failed",
    )
    child = attempt(
        2,
        outcomes((1, 0, DONE, 0), (2, 0, DONE, 1)),
        calls({"case": 1, "selected": "x"}, {"case": 2, "selected": "y"}),
        ["b"],
        recovery={"parent_run_id": "run-1"},
    )
    whole = replace(plan(["a", "b"]), cell_case=ints(range(3)), cell_target=ints([1, 1, 1]))
    return merge([first, child], whole)


def test_the_first_attempt_with_an_answer_counts_and_so_does_the_spend_of_all() -> None:
    found = recovered()
    report = make_report(found.facts, replace(plan(["a", "b"]), cell_case=ints(range(3)), cell_target=ints([1, 1, 1])),
                         found.outcomes, found.calls)  # fmt: skip
    row = report.summary.targets[1]
    assert (row.complete, row.completed, row.correct, row.failed) == (True, 3, 2, 0)
    assert (row.request_count, row.known_cost_picodollars, row.cost_picodollars) == (5, 30, None)
    assert row.spend_upper_picodollars == 30 + 2 * 50
    times = (row.latency_p50_s, row.ttft_p50_s, row.ttft_p95_s, row.request_time_sum_s)
    assert times == (2.0, 0.5, 0.5, 6.0), "the times are those of the attempts that count"
    assert row.continuity.multi_request_tasks == 0, "attempts of a cell are no conversation"
    assert row.selected_models == {"m": 1, "x": 1, "y": 1}


def test_a_merged_evaluation_says_so_and_is_completed_when_every_cell_has_an_answer() -> None:
    facts = recovered().facts
    assert (facts.status, facts.reason, facts.merged, facts.updated_s) == ("completed", "", True, 12.0)
    assert isinstance(facts.recovery, dict)
    assert facts.recovery["attempts"] == [
        {"run_id": "run-1", "status": "failed", "answers_that_count": 1},
        {"run_id": "run-2", "status": "completed", "answers_that_count": 2},
    ]
    assert not facts.is_recovery
    report = make_report(facts, plan(["b"]), outcomes(), calls())
    assert any("merge the run" in sentence for sentence in report.limitations)


def test_a_lineage_that_begins_with_a_recovery_stays_a_part() -> None:
    first = attempt(1, outcomes((0, 0, DONE, 1)), calls({}), ["a"], recovery={"parent_run_id": "run-0"})
    facts = merge([first], replace(plan(["a"]), cell_case=ints([0]), cell_target=ints([0]))).facts
    assert facts.is_recovery
    assert facts.status == "completed"


def test_an_unfinished_lineage_is_what_its_runs_are() -> None:
    first = attempt(1, outcomes((0, 0, FAILED, None)), calls({}), ["a"], status="failed", reason="too_many_failures")
    running = attempt(2, outcomes(), calls(), ["a"], status="running")
    assert merge([first, running], plan(["a"])).facts.status == "running"
    ended = attempt(2, outcomes((0, 0, INTERRUPTED, None)), calls({}), ["a"], status="interrupted")
    found = merge([first, ended], plan(["a"]))
    assert (found.facts.status, found.facts.reason) == ("failed", "too_many_failures")
    assert found.outcomes.end.tolist() == [INTERRUPTED], "where no attempt has an answer the last that ended counts"


ENDS = st.sampled_from([CellEnd.DONE, CellEnd.FAILED, CellEnd.CANCELLED, CellEnd.INTERRUPTED])


@given(st.lists(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 1)), ENDS), min_size=1, max_size=5))
def test_merging_agrees_with_the_rule_written_down_cell_by_cell(ends: list[dict[tuple[int, int], CellEnd]]) -> None:
    attempts = [
        attempt(
            number,
            outcomes(*[(case, target, end, 1 if end == DONE else None) for (case, target), end in found.items()]),
            calls(*[{"case": case, "target": target, "cost": 10**number} for case, target in found]),
            ["a", "b"],
        )
        for number, found in enumerate(ends)
    ]
    merged = merge(attempts, plan(["a", "b"]))
    wanted: dict[tuple[int, int], tuple[int, CellEnd]] = {}
    for number, found in enumerate(ends):
        for cell, end in found.items():
            if cell not in wanted or wanted[cell][1] != DONE:
                wanted[cell] = number, end
    got = zip(merged.outcomes.case.tolist(), merged.outcomes.target.tolist(), merged.outcomes.end.tolist(), strict=True)
    assert {(case, target): end for case, target, end in got} == {cell: end for cell, (_, end) in wanted.items()}
    assert int(merged.calls.cost.sum()) == sum(10**number * len(found) for number, found in enumerate(ends))
    current = merged.calls.current()
    assert {
        (case, target): cost
        for case, target, cost in zip(current.case.tolist(), current.target.tolist(), current.cost.tolist(), strict=True)
    } == {cell: 10**number for cell, (number, _) in wanted.items()}


def test_facts_by_cell_add_up() -> None:
    found = list(
        cell_ledgers(
            outcomes((0, 0, DONE, 1), (1, 0, INTERRUPTED, None)),
            calls(
                {"case": 1, "end": CallEnd.SENT_UNKNOWN, "cost": -1},
                {"case": 0, "end": CallEnd.NOT_ACCEPTED, "cost": 0},
                {"case": 0},
                {"case": 0, "role": Role.JUDGE, "end": CallEnd.SENT, "cost": -1, "reserved": -1},
            ),
        )
    )
    assert [(one.case, one.outcome, one.reason, one.call_count) for one in found] == [
        (0, DONE, "", 2),
        (1, INTERRUPTED, "http_error", 1),
    ]
    assert [(one.open_count, one.ambiguous_count, one.unknown_cost_count) for one in found] == [(1, 0, 0), (0, 1, 1)]
    assert [(one.known_spend, one.spend_upper) for one in found] == [(10, None), (0, 50)]
    assert np.all(np.array([one.target for one in found]) == 0)
