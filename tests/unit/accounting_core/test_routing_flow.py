"""The flow of questions: every planned cell counted once, where its last call went."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.columns import CallColumns, CallEnd, CellEnd, Labels, OutcomeColumns, Role, floats, ints
from srbench_accounting.routing_flow import PlannedCells, routing_flow

BENCHMARKS = ("arc", "mmlu")
Outcome = tuple[int, int, int, int | None]
Call = tuple[int, int, int, int, str, str, int | None]


def cells(count: int, targets: int) -> PlannedCells:
    rows = [(case, target) for case in range(count) for target in range(targets)]
    return PlannedCells(
        case=ints(case for case, _ in rows),
        target=ints(target for _, target in rows),
        benchmark=Labels.of(BENCHMARKS[case % 2] for case, _ in rows),
        stratum=Labels.of(("math", "law", None)[case % 3] for case, _ in rows),
    )


def outcome_columns(rows: list[Outcome]) -> OutcomeColumns:
    nothing = floats([None] * len(rows))
    return OutcomeColumns(
        case=ints(row[0] for row in rows),
        target=ints(row[1] for row in rows),
        end=ints(row[2] for row in rows),
        correct=ints(row[3] for row in rows),
        reason=Labels.of([None] * len(rows)),
        strict_format=ints([None] * len(rows)),
        output_limit=ints([0] * len(rows)),
        latency_s=nothing,
        queue_wait_s=nothing,
        finish_s=nothing,
    )


def call_columns(rows: list[Call]) -> CallColumns:
    unknown, nothing = ints([None] * len(rows)), floats([None] * len(rows))
    models = Labels.of(row[4] for row in rows)
    return CallColumns(
        case=ints(row[0] for row in rows),
        target=ints(row[1] for row in rows),
        role=ints(row[2] for row in rows),
        end=ints(row[3] for row in rows),
        cost=ints(row[6] for row in rows),
        model=models,
        selected_model=Labels.of(row[4] for row in rows),
        decision=Labels.of(row[5] for row in rows),
        finish_reason=Labels.of([None] * len(rows)),
        input_tokens=unknown,
        cached_input_tokens=unknown,
        cache_write_tokens=unknown,
        output_tokens=unknown,
        prompt_tokens=unknown,
        cache_neutral_cost=unknown,
        reserved=unknown,
        inference_calls=unknown,
        cache_read_reported=unknown,
        latency_s=nothing,
        ttft_s=nothing,
        first_token_lag_s=nothing,
    )


def word(found: Outcome | None) -> str:
    if found is None:
        return "pending"
    if found[2] == CellEnd.DONE:
        return {1: "right", 0: "wrong", None: "ungraded"}[found[3]]
    return {CellEnd.FAILED: "failed", CellEnd.CANCELLED: "cancelled", CellEnd.INTERRUPTED: "sent_unknown"}[
        CellEnd(found[2])
    ]


def slowly(planned: PlannedCells, outcomes: list[Outcome], calls: list[Call]) -> Counter[tuple[object, ...]]:
    """The same counts, cell by cell."""
    counted: Counter[tuple[object, ...]] = Counter()
    for row, (case, target) in enumerate(zip(planned.case.tolist(), planned.target.tolist(), strict=True)):
        own = [c for c in calls if c[:3] == (case, target, Role.SUBJECT) and c[3] != CallEnd.NOT_ACCEPTED]
        ends = {found[:2]: found for found in outcomes}
        names = [
            labels.vocabulary[labels.codes[row]] if labels.codes[row] >= 0 else ""
            for labels in (planned.benchmark, planned.stratum)
        ]
        decision, model = (own[-1][5], own[-1][4]) if own else ("", "")
        way = (target, *names, decision, model, word(ends.get((case, target))))
        counted[("cells", *way)] += 1
        counted[("known", *way)] += sum(c[6] for c in own if c[6] is not None)
        counted[("unknown", *way)] += sum(c[6] is None for c in own)
    return +counted


ENDS = st.sampled_from([CallEnd.COMPLETED, CallEnd.FAILED, CallEnd.NOT_ACCEPTED])
CALLS = st.tuples(
    st.integers(0, 5), st.integers(0, 1), st.sampled_from([Role.SUBJECT, Role.JUDGE]), ENDS,
    st.sampled_from(["small", "large"]), st.sampled_from(["", "easy", "hard"]), st.none() | st.integers(0, 2**40),
)  # fmt: skip
OUTCOME = st.tuples(
    st.integers(0, 5), st.integers(0, 1), st.sampled_from(list(CellEnd)), st.sampled_from([None, 0, 1])
)  # fmt: skip


@given(st.lists(OUTCOME, max_size=12, unique_by=lambda row: row[:2]), st.lists(CALLS, max_size=20))
def test_the_counts_are_those_made_cell_by_cell(outcomes: list[Outcome], calls: list[Call]) -> None:
    planned = cells(6, 2)
    found = routing_flow(planned, outcome_columns(outcomes), call_columns(calls))
    counted: Counter[tuple[object, ...]] = Counter()
    for row in found:
        way = (row.target, row.benchmark, row.stratum, row.decision, row.model, row.outcome)
        counted[("cells", *way)] += row.cell_count
        counted[("known", *way)] += row.known_cost_picodollars
        counted[("unknown", *way)] += row.unknown_cost_count
    assert +counted == slowly(planned, outcomes, calls)
    assert sum(row.cell_count for row in found) == 12


def test_the_last_accepted_call_says_which_model_and_decision_a_cell_had() -> None:
    subject, done, refused = Role.SUBJECT, CallEnd.COMPLETED, CallEnd.NOT_ACCEPTED
    calls: list[Call] = [
        (0, 0, subject, done, "small", "easy", 5),
        (0, 0, subject, done, "large", "hard", 7),
        (0, 0, subject, refused, "tiny", "none", None),
        (0, 0, Role.JUDGE, done, "judge", "", 100),
    ]
    (row,) = routing_flow(cells(1, 1), outcome_columns([(0, 0, CellEnd.DONE, 1)]), call_columns(calls))
    assert (row.decision, row.model, row.outcome) == ("hard", "large", "right")
    assert (row.known_cost_picodollars, row.unknown_cost_count) == (12, 0)


def test_a_run_without_any_call_is_pending_everywhere() -> None:
    found = routing_flow(cells(4, 1), outcome_columns([]), call_columns([]))
    assert {row.outcome for row in found} == {"pending"}
    assert np.sum([row.cell_count for row in found]) == 4
    assert {row.model for row in found} == {""}
