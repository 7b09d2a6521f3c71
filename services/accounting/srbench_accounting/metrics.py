"""The figures of one target, or of one target on one benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from srbench_kit.saying import Saying

from srbench_accounting.columns import (
    CallColumns,
    CallEnd,
    CellEnd,
    Floats,
    OutcomeColumns,
    Role,
    known_sum,
    sum_if_known,
)
from srbench_accounting.continuity import CellSwitches, Continuity, continuity
from srbench_accounting.diagnostics import NO_CACHE_READ, CacheRead, OutputDiagnostics, cache_read, output_diagnostics
from srbench_accounting.intervals import wilson
from srbench_accounting.percentiles import percentiles
from srbench_accounting.routing import RoutingColumns

ACCURACY_DENOMINATOR = Saying(
    "ACCURACY_DENOMINATOR", "every planned cell; one that failed or has no answer counts as not right"
)
CACHE_NEUTRAL_BASIS = Saying(
    "CACHE_NEUTRAL",
    "each subject call's prompt tokens, cached and cache-written ones included, at the fresh input price of the model that "
    "served it, plus its output tokens at the output price",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSums:
    """Sums of the four buckets."""

    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Fields as in `srbench.v1.Metrics`; money in picodollars, `None` is unknown."""

    id: str
    benchmark: str | None
    target_id: str | None
    total: int
    completed: int
    failed: int
    pending: int
    scored: int
    correct: int | None
    accuracy: float | None
    accuracy_ci95: tuple[float, float] | None
    complete: bool
    cost_picodollars: int | None
    known_cost_picodollars: int
    cost_complete: bool
    cache_neutral_cost_picodollars: int | None
    evaluation_cost_picodollars: int | None
    total_spend_picodollars: int | None
    spend_upper_picodollars: int | None
    tokens: TokenSums | None
    call_count: int | None
    request_count: int
    evaluation_call_count: int
    selected_models: dict[str, int]
    pending_selection_count: int
    decisions: dict[str, int]
    continuity: Continuity
    output_diagnostics: OutputDiagnostics
    cache_read: CacheRead
    queue_wait_p50_s: float | None
    queue_wait_p95_s: float | None
    case_wall_time_p50_s: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    request_time_sum_s: float
    first_token_lag_max_s: float | None
    failure_reasons: dict[str, int]
    macro_accuracy: float | None = None
    sr_bench_score: float | None = None
    score_scope: str = ""
    selection_statuses: dict[str, int] = field(default_factory=dict)
    selection_reasons: dict[str, int] = field(default_factory=dict)
    estimated_correct: int | None = None
    estimated_accuracy: float | None = None
    estimated_accuracy_ci95: tuple[float, float] | None = None
    estimated_macro_accuracy: float | None = None
    estimated_cost_picodollars: int | None = None
    estimated_cache_neutral_cost_picodollars: int | None = None
    estimated_evaluation_cost_picodollars: int | None = None
    estimated_tokens: TokenSums | None = None
    estimated_latency_p50_s: float | None = None
    estimated_latency_p95_s: float | None = None
    estimated_ttft_p50_s: float | None = None
    replayed_call_count: int | None = None
    accuracy_denominator: str = ACCURACY_DENOMINATOR
    cache_neutral_cost_basis: str = CACHE_NEUTRAL_BASIS


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The facts that one row of figures is made from.

    Attributes:
        planned: planned cells.
        subject_latency_s: for each outcome the sum of its subject calls' times, or its own time when it has none.
        covered: planned cells with at least one subject call.
        calls: calls that an endpoint accepted; offers that were provably not accepted are no calls.
        routings: answered previews; `None` unless the run is a preview.
    """

    target_id: str
    benchmark: str | None
    planned: int
    covered: int
    outcomes: OutcomeColumns
    subject_latency_s: Floats
    calls: CallColumns
    switches: CellSwitches
    routings: RoutingColumns | None = None


def measure(scope: Scope) -> Metrics:
    """Every figure of a live run's scope. Formulas: `docs/compatibility.md` and the fields of `srbench.v1.Metrics`."""
    outcomes = scope.outcomes
    is_subject = scope.calls.role == Role.SUBJECT
    subject = scope.calls.where(is_subject)
    current = subject.current()
    done = outcomes.end == CellEnd.DONE
    completed, scored = int(done.sum()), int((done & (outcomes.correct >= 0)).sum())
    correct = int((done & (outcomes.correct == 1)).sum())
    covered = scope.covered == scope.planned
    cost = sum_if_known(subject.cost) if covered else None
    wait = percentiles(outcomes.queue_wait_s, 0.5, 0.95)
    latency = percentiles(scope.subject_latency_s[done], 0.5, 0.95)
    ttft = percentiles(current.ttft_s, 0.5, 0.95)
    routings = scope.routings
    return Metrics(
        id=scope.target_id,
        benchmark=scope.benchmark,
        target_id=scope.target_id if scope.benchmark is not None else None,
        total=scope.planned,
        completed=completed,
        failed=len(outcomes) - completed,
        pending=scope.planned - len(outcomes),
        scored=scored,
        correct=correct,
        accuracy=correct / scope.planned if scope.planned else None,
        accuracy_ci95=wilson(correct, scope.planned),
        complete=completed == scored == scope.planned,
        cost_picodollars=cost,
        known_cost_picodollars=known_sum(subject.cost),
        cost_complete=cost is not None,
        cache_neutral_cost_picodollars=sum_if_known(subject.cache_neutral_cost) if covered else None,
        evaluation_cost_picodollars=sum_if_known(scope.calls.cost[~is_subject]),
        total_spend_picodollars=sum_if_known(scope.calls.cost) if covered else None,
        spend_upper_picodollars=spend_upper(scope.calls),
        tokens=_tokens(subject) if covered else None,
        call_count=sum_if_known(subject.inference_calls) if covered else None,
        request_count=len(subject),
        evaluation_call_count=len(scope.calls) - len(subject),
        selected_models=(subject.observed_model() if routings is None else routings.model).counts(),
        pending_selection_count=int(((subject.end == CallEnd.SENT) & (subject.selected_model.codes < 0)).sum()),
        decisions=(subject if routings is None else routings).decision.counts(),
        selection_statuses={} if routings is None else routings.status.counts(),
        selection_reasons={} if routings is None else routings.reason.counts(),
        continuity=continuity(scope.switches),
        output_diagnostics=output_diagnostics(scope.planned, outcomes, subject),
        cache_read=cache_read(subject),
        queue_wait_p50_s=wait[0],
        queue_wait_p95_s=wait[1],
        case_wall_time_p50_s=percentiles(outcomes.latency_s[done], 0.5)[0],
        latency_p50_s=latency[0],
        latency_p95_s=latency[1],
        ttft_p50_s=ttft[0],
        ttft_p95_s=ttft[1],
        request_time_sum_s=float(np.nansum(current.latency_s)),
        first_token_lag_max_s=_largest(current.first_token_lag_s),
        failure_reasons=outcomes.reason.take(np.flatnonzero(~done)).counts(),
    )


def as_preview(metrics: Metrics) -> Metrics:
    """The figures of a preview: nothing was generated, so nothing is known of answers and their times, and nothing paid."""
    return replace(
        _without_answers(metrics), total_spend_picodollars=0, spend_upper_picodollars=0, evaluation_cost_picodollars=0
    )


def _without_answers(metrics: Metrics) -> Metrics:
    return replace(
        metrics,
        correct=None,
        accuracy=None,
        accuracy_ci95=None,
        macro_accuracy=None,
        sr_bench_score=None,
        case_wall_time_p50_s=None,
        latency_p50_s=None,
        latency_p95_s=None,
        ttft_p50_s=None,
        ttft_p95_s=None,
    )


def as_replay(metrics: Metrics) -> Metrics:
    """The figures of a replay: what another run measured is an estimate here and stands in no measured field."""
    return replace(
        _without_answers(metrics),
        estimated_correct=metrics.correct,
        estimated_accuracy=metrics.accuracy,
        estimated_accuracy_ci95=metrics.accuracy_ci95,
        estimated_macro_accuracy=metrics.macro_accuracy,
        estimated_cost_picodollars=metrics.cost_picodollars,
        estimated_cache_neutral_cost_picodollars=metrics.cache_neutral_cost_picodollars,
        estimated_evaluation_cost_picodollars=metrics.evaluation_cost_picodollars,
        estimated_tokens=metrics.tokens,
        estimated_latency_p50_s=metrics.latency_p50_s,
        estimated_latency_p95_s=metrics.latency_p95_s,
        estimated_ttft_p50_s=metrics.ttft_p50_s,
        replayed_call_count=metrics.request_count + metrics.evaluation_call_count,
        call_count=0,
        request_count=0,
        evaluation_call_count=0,
        evaluation_cost_picodollars=0,
        request_time_sum_s=0.0,
        cache_read=NO_CACHE_READ,
        cost_picodollars=None,
        known_cost_picodollars=0,
        cost_complete=False,
        cache_neutral_cost_picodollars=None,
        total_spend_picodollars=0,
        spend_upper_picodollars=0,
        tokens=None,
        first_token_lag_max_s=None,
    )


def spend_upper(calls: CallColumns) -> int | None:
    """Known cost plus what stays reserved for calls whose cost is unknown; `None` when one of those has no reservation."""
    reserved = sum_if_known(calls.reserved[calls.cost < 0])
    return None if reserved is None else known_sum(calls.cost) + reserved


def _tokens(subject: CallColumns) -> TokenSums | None:
    fresh, cached = sum_if_known(subject.input_tokens), sum_if_known(subject.cached_input_tokens)
    written, output = sum_if_known(subject.cache_write_tokens), sum_if_known(subject.output_tokens)
    if fresh is None or cached is None or written is None or output is None:
        return None
    return TokenSums(input_tokens=fresh, cached_input_tokens=cached, cache_write_tokens=written, output_tokens=output)


def _largest(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else None
