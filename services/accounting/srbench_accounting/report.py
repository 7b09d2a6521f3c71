"""The report of one run: a pure function of its plan and its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from srbench_accounting.claims import Claim
from srbench_accounting.columns import (
    CallColumns,
    CallEnd,
    CellEnd,
    Floats,
    Ints,
    Labels,
    OutcomeColumns,
    PlanColumns,
    Role,
    distinct,
    known_sum,
    sum_if_known,
)
from srbench_accounting.continuity import CellSwitches, cell_switches
from srbench_accounting.limitations import limitations
from srbench_accounting.metrics import Metrics, Scope, as_preview, as_replay, measure, spend_upper
from srbench_accounting.routing import RoutingColumns

if TYPE_CHECKING:
    from srbench_kit.values import Json

VERSION = "sr-bench-1.0"
FULL_SUITE = frozenset(
    {
        "mmlu-pro",
        "gpqa-diamond",
        "hle",
        "livecodebench",
        "scicode",
        "terminal-bench-2.1",
        "simpleqa-verified",
        "arc-agi-2",
        "tau3",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProfile:
    """A target's identity; `kind` is `single` or `mom`."""

    id: str
    model: str
    kind: str
    request_params: Json = None
    config_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAttempt:
    """A later run that tried cells again: its id, its status, and how far it is, as counts by the names of `Progress`."""

    id: str
    status: str
    progress: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run and its plan, as far as the report repeats or words them.

    Attributes:
        status: `queued`, `running`, `completed`, `failed`, `cancelled` or `interrupted`.
        reason: stable reason of a status other than `completed`; empty otherwise.
        mode: `live`, `preview` or `replay`.
        created_s, updated_s: seconds since 1970.
        recovery: recovery facts; `None` unless the run is one, or the report is merged.
        child_attempts: later runs that tried cells again.
        plan_limitations: further sentences from the plan.
        claims: what the plan claims; a comparison judges it.
        merged: whether the figures are those of the run and its recoveries together.
    """

    run_id: str
    status: str
    reason: str = ""
    mode: str = "live"
    cost_policy: str = "require_priced"
    created_s: float
    updated_s: float
    recovery: Json = None
    child_attempts: Sequence[ChildAttempt] = ()
    plan_sha256: str = ""
    case_sha256: str = ""
    profile: str = ""
    seed: int = 0
    custom_subset: bool = False
    dataset: Json = None
    sampling: Json = None
    adapter_versions: Mapping[str, str] = field(default_factory=dict)
    target_profiles: Sequence[TargetProfile] = ()
    accounting_correction: Json = None
    runner: Json = None
    plan_limitations: Sequence[str] = ()
    claims: Sequence[Claim] = ()
    merged: bool = False

    @property
    def is_recovery(self) -> bool:
        """Whether the run tries only some cells of another run again; a merged report is of the run that it begins with."""
        if self.merged:
            return isinstance(self.recovery, dict) and bool(self.recovery.get("parent_run_id"))
        return self.recovery is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What first went wrong; case and target are empty when the run as a whole did."""

    case_id: str
    target_id: str
    reason: str
    inferred_from_saved_results: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures of the run; fields as in `srbench.v1.ReportSummary`."""

    targets: tuple[Metrics, ...]
    wall_time_s: float
    total_spend_picodollars: int | None
    known_spend_picodollars: int
    spend_upper_picodollars: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Figures and their limits; `facts` is what they were made from."""

    facts: RunFacts
    failure: Failure | None
    summary: Summary
    benchmarks: tuple[Metrics, ...]
    limitations: tuple[str, ...]


def make_report(
    facts: RunFacts,
    plan: PlanColumns,
    outcomes: OutcomeColumns,
    calls: CallColumns,
    routings: RoutingColumns | None = None,
) -> Report:
    """The report. Rows by target come in plan order, rows by benchmark and target in order of target, then benchmark.

    Args:
        outcomes: at most one a planned cell.
        calls: in the order of dispatch; offers that were provably not accepted are left out here.
        routings: the answered previews of a run of mode `preview`; `None` for all others.
    """
    calls = calls.where(calls.end != CallEnd.NOT_ACCEPTED)
    tables = _sorted(plan, outcomes, calls, routings)
    targets: list[Metrics] = []
    rows: list[Metrics] = []
    for target in range(len(plan.target_ids)):
        own = [measure(scope) for scope in tables.benchmark_scopes(plan, target)]
        whole = measure(tables.scope(plan, target, None))
        targets.append(_in_mode(_with_score(whole, own, facts, plan.weights), facts.mode))
        rows.extend(_in_mode(row, facts.mode) for row in own)
    benchmarks = frozenset(row.benchmark for row in rows if row.benchmark is not None)
    summary = _summary(facts, targets, calls)
    return Report(
        facts=facts,
        failure=_failure(facts, plan, outcomes),
        summary=summary,
        benchmarks=tuple(rows),
        limitations=limitations(
            facts,
            benchmarks,
            call_costs_known=sum_if_known(calls.cost) is not None,
            every_cell_asked=len(tables.covered_keys) == len(tables.cell_keys),
        ),
    )


def target_scopes(plan: PlanColumns, outcomes: OutcomeColumns, calls: CallColumns) -> list[Scope]:
    """What each target's figures in a report are made from, in plan order; arguments as of `make_report`."""
    tables = _sorted(plan, outcomes, calls.where(calls.end != CallEnd.NOT_ACCEPTED), None)
    return [tables.scope(plan, target, None) for target in range(len(plan.target_ids))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """Rows sorted by target and benchmark, so that every scope is a slice; keys are `target * benchmarks + benchmark`."""

    benchmark_names: tuple[str, ...]
    cell_keys: Ints
    covered_keys: Ints
    outcomes: OutcomeColumns
    subject_latency_s: Floats
    outcome_keys: Ints
    calls: CallColumns
    call_keys: Ints
    switches: CellSwitches
    switch_keys: Ints
    routings: RoutingColumns | None
    routing_keys: Ints

    def benchmark_scopes(self, plan: PlanColumns, target: int) -> list[Scope]:
        scopes = [self.scope(plan, target, code) for code in range(len(self.benchmark_names))]
        return [scope for scope in scopes if scope.planned]

    def scope(self, plan: PlanColumns, target: int, benchmark: int | None) -> Scope:
        count = len(self.benchmark_names)
        first = target * count + (benchmark or 0)
        last = first + (count if benchmark is None else 1)

        def rows(keys: Ints) -> slice:
            return slice(int(np.searchsorted(keys, first)), int(np.searchsorted(keys, last)))

        planned, covered, outcomes = rows(self.cell_keys), rows(self.covered_keys), rows(self.outcome_keys)
        return Scope(
            target_id=plan.target_ids[target],
            benchmark=None if benchmark is None else self.benchmark_names[benchmark],
            planned=planned.stop - planned.start,
            covered=covered.stop - covered.start,
            outcomes=self.outcomes.take(outcomes),
            subject_latency_s=self.subject_latency_s[outcomes],
            calls=self.calls.take(rows(self.call_keys)),
            switches=self.switches.take(rows(self.switch_keys)),
            routings=None if self.routings is None else self.routings.take(rows(self.routing_keys)),
        )


def _sorted(plan: PlanColumns, outcomes: OutcomeColumns, calls: CallColumns, routings: RoutingColumns | None) -> _Tables:
    bench, case_count = plan.case_benchmark, len(plan.case_ids)
    names, codes = _alphabetical(bench)

    def keys(target: Ints, case: Ints) -> Ints:
        return target * max(len(names), 1) + codes[case]

    outcome_keys, call_keys = keys(outcomes.target, outcomes.case), keys(calls.target, calls.case)
    outcome_order, call_order = np.argsort(outcome_keys, kind="stable"), np.argsort(call_keys, kind="stable")
    outcomes, calls = outcomes.take(outcome_order), calls.take(call_order)
    subject = calls.where(calls.role == Role.SUBJECT)
    # Cells are numbered by target, benchmark and case, so that a scope's cells are neighbours, too.
    subject_cell = keys(subject.target, subject.case) * case_count + subject.case
    current = subject.current()
    current_cell = keys(current.target, current.case) * case_count + current.case
    outcome_cell = outcome_keys[outcome_order] * case_count + outcomes.case
    right = outcome_cell[(outcomes.end == CellEnd.DONE) & (outcomes.correct == 1)]
    switches = cell_switches(current, current_cell, right)
    routing_keys = np.empty(0, dtype=np.int64) if routings is None else keys(routings.target, routings.case)
    routing_order = np.argsort(routing_keys, kind="stable")
    return _Tables(
        benchmark_names=names,
        cell_keys=np.sort(keys(plan.cell_target, plan.cell_case)),
        covered_keys=distinct(subject_cell) // max(case_count, 1),
        outcomes=outcomes,
        subject_latency_s=_subject_latency(outcomes, outcome_cell, current, current_cell),
        outcome_keys=outcome_keys[outcome_order],
        calls=calls,
        call_keys=call_keys[call_order],
        switches=switches,
        switch_keys=switches.cell // max(case_count, 1),
        routings=None if routings is None else routings.take(routing_order),
        routing_keys=routing_keys[routing_order],
    )


def _alphabetical(labels: Labels) -> tuple[tuple[str, ...], Ints]:
    """The vocabulary in alphabetical order and the codes that go with it."""
    names = tuple(sorted(labels.vocabulary))
    moved = np.array([names.index(name) for name in labels.vocabulary], dtype=np.int64)
    return names, moved[labels.codes]


def _subject_latency(outcomes: OutcomeColumns, outcome_cell: Ints, subject: CallColumns, subject_cell: Ints) -> Floats:
    """For each outcome the sum of its subject calls' known times; its own time when there are none."""
    timed = ~np.isnan(subject.latency_s)
    cells, rows = np.unique(subject_cell[timed], return_inverse=True)
    sums = np.bincount(rows, weights=subject.latency_s[timed], minlength=len(cells))
    if not len(cells):
        return outcomes.latency_s
    at = np.minimum(np.searchsorted(cells, outcome_cell), len(cells) - 1)
    return np.where(cells[at] == outcome_cell, sums[at], outcomes.latency_s)


def _with_score(whole: Metrics, rows: list[Metrics], facts: RunFacts, weights: Mapping[str, float | str]) -> Metrics:
    present = {row.benchmark for row in rows if row.benchmark is not None}
    macro = weighted_accuracy({row.benchmark or "": (row.correct or 0, row.total) for row in rows}, weights)
    score = float(macro) if macro is not None else None
    full = present == FULL_SUITE
    return replace(
        whole,
        macro_accuracy=score,
        sr_bench_score=score if full and whole.complete and not facts.is_recovery else None,
        score_scope=_score_scope(present, facts),
    )


def weighted_accuracy(counts: Mapping[str, tuple[int, int]], weights: Mapping[str, float | str]) -> Fraction | None:
    """`Σ wᵦ·(correctᵦ/totalᵦ) / Σ wᵦ` over the benchmarks present, exactly; `None` when their weights are all zero.

    Args:
        counts: (right, planned) by benchmark; planned is above zero.
        weights: by benchmark; the decimal text of each is taken at its word. A benchmark without one weighs 1.
    """
    exact = {name: Fraction(str(weights.get(name, 1))) for name in counts}
    total = sum(exact.values())
    if not total:
        return None
    return sum((exact[name] * Fraction(*counts[name]) for name in counts), Fraction(0)) / total


def _score_scope(present: set[str], facts: RunFacts) -> str:
    if present == FULL_SUITE:
        scope = "all nine benchmarks"
    elif present - FULL_SUITE:
        scope = "diagnostic with benchmarks outside the suite, weights renormalised"
    else:
        scope = f"{len(present)} of nine benchmarks, weights renormalised"
    return f"{scope}; profile={facts.profile}" + ("; custom subset" if facts.custom_subset else "")


def _in_mode(metrics: Metrics, mode: str) -> Metrics:
    if mode == "preview":
        return as_preview(metrics)
    return as_replay(metrics) if mode == "replay" else metrics


def _summary(facts: RunFacts, targets: list[Metrics], calls: CallColumns) -> Summary:
    replayed = facts.mode == "replay"
    totals = [row.total_spend_picodollars for row in targets]
    known = [total for total in totals if total is not None]
    return Summary(
        targets=tuple(targets),
        wall_time_s=facts.updated_s - facts.created_s,
        total_spend_picodollars=sum(known) if len(known) == len(totals) else None,
        known_spend_picodollars=0 if replayed else known_sum(calls.cost),
        spend_upper_picodollars=0 if replayed else spend_upper(calls),
    )


def _failure(facts: RunFacts, plan: PlanColumns, outcomes: OutcomeColumns) -> Failure | None:
    """The failed cell that ended first, by case and target where times tie or are unknown; else the run's own reason."""
    rows = np.flatnonzero((outcomes.end == CellEnd.FAILED) | (outcomes.end == CellEnd.INTERRUPTED))
    if len(rows):
        first = min(rows.tolist(), key=lambda row: _failure_order(plan, outcomes, row))
        code = int(outcomes.reason.codes[first])
        return Failure(
            case_id=plan.case_ids[int(outcomes.case[first])],
            target_id=plan.target_ids[int(outcomes.target[first])],
            reason=outcomes.reason.vocabulary[code] if code >= 0 else "",
            inferred_from_saved_results=True,
        )
    if facts.status in ("failed", "interrupted"):
        return Failure(case_id="", target_id="", reason=facts.reason, inferred_from_saved_results=False)
    return None


def _failure_order(plan: PlanColumns, outcomes: OutcomeColumns, row: int) -> tuple[float, str, str]:
    finish = float(outcomes.finish_s[row])
    case, target = plan.case_ids[int(outcomes.case[row])], plan.target_ids[int(outcomes.target[row])]
    return (np.inf if np.isnan(finish) else finish, case, target)
