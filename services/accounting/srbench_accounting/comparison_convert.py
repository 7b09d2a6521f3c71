"""A comparison as a `srbench.v1.ComparisonReport`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from srbench.v1 import comparison_pb2 as pb

from srbench_accounting import verdicts
from srbench_accounting.band import BAND_METHOD, Band
from srbench_accounting.compare import ComparisonReport
from srbench_accounting.comparing import Compared, ComparisonSet
from srbench_accounting.filling import fill
from srbench_accounting.report import VERSION
from srbench_accounting.report_convert import metrics
from srbench_accounting.routers import NOTES, NullRouters, Policy, RegretParts
from srbench_accounting.saving_interval import SavingInterval
from srbench_accounting.saying_convert import messages

if TYPE_CHECKING:
    pass


def comparison(made: ComparisonSet) -> pb.ComparisonReport:
    """The message. Its fields about one candidate run are those of the released service; with several they are absent."""
    first, reports = made.reports[0], made.reports
    single = first if len(reports) == 1 else None
    eligible = [report for report in reports if report.baseline_cost_comparison_eligible]
    reasons = [report.baseline_cost_comparison_reason for report in reports if report.baseline_cost_comparison_reason]
    return pb.ComparisonReport(
        version=VERSION,
        baseline_run_id=first.baseline_run_id,
        candidate_run_id=single.candidate_run_id if single else None,
        baseline_status=first.baseline_status,
        candidate_status=single.candidate_status if single else None,
        baseline_quality_complete=first.baseline_quality_complete,
        candidate_quality_complete=all(report.candidate_quality_complete for report in reports),
        baseline_targets=[metrics(row) for row in first.baseline_targets],
        candidate_targets=[metrics(row) for report in reports for row in report.candidate_targets],
        quality_denominator=first.quality_denominator,
        baseline_selection=first.baseline_selection,
        baseline_selection_qualification=first.baseline_selection_qualification,
        baseline_selected_target_id=first.baseline_selected_target_id,
        baseline_tied_best_target_ids=first.baseline_tied_best_target_ids,
        baseline_tie_policy=first.baseline_tie_policy,
        baseline_cost_comparison_eligible=len(eligible) == len(reports),
        baseline_cost_comparison_reason=reasons[0] if reasons else None,
        comparisons=[_comparison(one) for one in made.compared],
        candidates=[_candidate(report) for report in reports],
        margin=made.margin,
        margin_qualification=None if made.margin is None else verdicts.MARGIN_QUALIFICATION,
        verdict_rule=verdicts.RULE,
        sayings=messages(_sentences(made)),
    )


def _sentences(made: ComparisonSet) -> Iterator[str | None]:
    first = made.reports[0]
    yield from (first.quality_denominator, first.baseline_selection, first.baseline_selection_qualification)
    yield from (first.baseline_tie_policy, verdicts.RULE, verdicts.MARGIN_QUALIFICATION)
    for report in made.reports:
        yield report.baseline_cost_comparison_reason
    for one in made.compared:
        figures = one.figures
        yield from (figures.quality_delta_ci95_qualification, figures.quality_delta_adaptive_ci95_qualification)
        yield from (figures.quality_metric, figures.cache_neutral_cost_basis, figures.subject_cost_comparison_reason)
        yield from (figures.total_cost_comparison_reason, figures.cache_neutral_cost_comparison_reason)
        if one.routers is not None:
            yield from (one.routers.static_mix_reason, *NOTES)


def _candidate(report: ComparisonReport) -> pb.CandidateRun:
    return pb.CandidateRun(
        run_id=report.candidate_run_id,
        status=report.candidate_status,
        quality_complete=report.candidate_quality_complete,
        target_ids=[row.id for row in report.candidate_targets],
        cost_comparison_eligible=report.baseline_cost_comparison_eligible,
        cost_comparison_reason=report.baseline_cost_comparison_reason,
    )


def _comparison(made: Compared) -> pb.Comparison:
    judged = made.verdict
    message = pb.Comparison(
        candidate_run_id=made.candidate_run_id,
        verdict=judged.word,
        verdict_sentence=judged.sentence,
        subject_cost_saving=_saving(made.subject_saving),
        total_cost_saving=_saving(made.total_saving),
        null_routers=None if made.routers is None else _null_routers(made.routers),
        regret=None if made.regret is None else _regret(*made.regret),
        band=_band(made.band),
        claims=[pb.NonInferiority() for _ in judged.claims],
    )
    for row, one in zip(message.claims, judged.claims, strict=True):
        fill(row, one)
    fill(message, made.figures)
    if judged.non_inferiority is not None:
        fill(message.non_inferiority, judged.non_inferiority)
    return message


def _band(made: Band) -> pb.SimultaneousBand:
    message = pb.SimultaneousBand(
        singles=[pb.SingleDifference() for _ in made.singles],
        best_single_delta_interval=made.best_single,
        alpha=made.alpha,
        method=BAND_METHOD,
    )
    for row, one in zip(message.singles, made.singles, strict=True):
        fill(row, one)
    return message


def _saving(made: SavingInterval | None) -> pb.SavingInterval | None:
    if made is None:
        return None
    return pb.SavingInterval(
        low_percent=made.low,
        high_percent=made.high,
        ci95_percent=made.ci95,
        unknown_cost_calls=made.unknown_calls,
    )


def _null_routers(made: NullRouters) -> pb.NullRouters:
    message = pb.NullRouters(
        router=_policy(made.router),
        always=[_policy(one) for one in made.always],
        static_mix=None if made.static_mix is None else _policy(made.static_mix),
        static_mix_reason=made.static_mix_reason,
        oracle=_policy(made.oracle),
        notes=NOTES,
    )
    if made.split is not None:
        fill(message.split, made.split, skip=frozenset({"shares"}))
        message.split.shares.update(dict(made.split.shares))
    return message


def _policy(made: Policy) -> pb.PolicyFigures:
    return pb.PolicyFigures(name=made.name, quality=made.quality, cost_picodollars=made.cost, shares=dict(made.shares))


def _regret(total: RegretParts, decisions: Iterable[RegretParts]) -> pb.Regret:
    message = pb.Regret(decisions=[pb.RegretParts() for _ in decisions])
    fill(message.total, total)
    for row, parts in zip(message.decisions, decisions, strict=True):
        fill(row, parts)
    return message
