"""A baseline against any number of candidate runs: the figures of each, corrected for their number, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from srbench_kit.errors import InvalidInput

from srbench_accounting.band import Band, band
from srbench_accounting.cell_costs import CaseCosts, case_costs
from srbench_accounting.claims import claim_about
from srbench_accounting.columns import UNKNOWN, CallColumns, Floats, Ints, Labels, Role
from srbench_accounting.compare import Comparison, ComparisonReport, Layout, RunFigures, compare, right_of
from srbench_accounting.paired import holm
from srbench_accounting.routers import NullRouters, Pool, RegretParts, Routed, null_routers, regret
from srbench_accounting.saving_interval import SavingInterval, saving_intervals
from srbench_accounting.savings import BASELINE_UNPRICED, CANDIDATE_UNPRICED
from srbench_accounting.verdicts import Sizes, Verdict, verdict

MAX_CANDIDATES = 32
ALPHA = 0.05
_UNPRICED = frozenset({BASELINE_UNPRICED, CANDIDATE_UNPRICED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One candidate target: its figures and what follows from them.

    Attributes:
        subject_saving, total_saving: `None` where no cost can be compared.
        routers, regret: for routers alone; (over all, by decision).
    """

    candidate_run_id: str
    figures: Comparison
    band: Band
    verdict: Verdict
    subject_saving: SavingInterval | None
    total_saving: SavingInterval | None
    routers: NullRouters | None = None
    regret: tuple[RegretParts, tuple[RegretParts, ...]] | None = None


@dataclass(frozen=True, slots=True)
class ComparisonSet:
    """All candidates. `reports` has one entry a candidate run, `compared` one a candidate target, in the same order."""

    reports: tuple[ComparisonReport, ...]
    compared: tuple[Compared, ...]
    margin: float | None


def check_request(baseline: str, candidates: Sequence[str], margin: float | None) -> None:
    """Raises: `InvalidInput` (`MISSING_FIELD`, `TOO_MANY_RUNS`, `REPEATED_RUN`, `SAME_RUN`, `BAD_MARGIN`)."""
    if not baseline:
        raise InvalidInput("MISSING_FIELD", "baseline_run_id is missing", field="baseline_run_id")
    if not candidates or not all(candidates):
        raise InvalidInput("MISSING_FIELD", "candidate_run_id is missing; name at least one run", field="candidate_run_id")
    if len(candidates) > MAX_CANDIDATES:
        sentence = f"{len(candidates)} candidates were named; expected at most {MAX_CANDIDATES}"
        raise InvalidInput("TOO_MANY_RUNS", sentence, field="candidate_run_ids")
    for index, run in enumerate(candidates):
        if run == baseline:
            raise InvalidInput("SAME_RUN", f"run {run} cannot be compared with itself; name two runs", run=run)
        if run in candidates[:index]:
            raise InvalidInput("REPEATED_RUN", f"run {run} was named more than once", run=run)
    if margin is not None and not 0 < margin < 1:
        raise InvalidInput(
            "BAD_MARGIN", f"margin is {margin:g}; expected a part of one above 0 and below 1", field="margin"
        )


def compare_all(
    baseline: RunFigures, candidates: Sequence[RunFigures], margin: float | None = None, *, figures_only: bool = False
) -> ComparisonSet:
    """Every target of every candidate against the baseline's strongest single model.

    Holm's correction counts all of them, the error level of the band every single model for each. Raises: as `compare`.
    """
    reports = [compare(baseline, candidate) for candidate in candidates]
    figures = [one for report in reports for one in report.comparisons]
    adjusted = iter(holm([one.mcnemar_p for one in figures]))
    reports = [
        replace(report, comparisons=tuple(replace(one, mcnemar_p_holm=next(adjusted)) for one in report.comparisons))
        for report in reports
    ]
    layout = Layout.of(baseline.plan)
    alpha = ALPHA / (len(figures) * len(single_names(baseline)))
    compared = [
        one
        for report, candidate in zip(reports, candidates, strict=True)
        for one in _compared(baseline, candidate, report, layout, alpha, margin, figures_only=figures_only)
    ]
    return ComparisonSet(tuple(reports), tuple(compared), margin)


def _compared(
    baseline: RunFigures,
    candidate: RunFigures,
    report: ComparisonReport,
    layout: Layout,
    alpha: float,
    margin: float | None,
    *,
    figures_only: bool,
) -> list[Compared]:
    places = layout.places(candidate.plan, baseline.plan)
    made = report.comparisons
    priced = report.baseline_cost_comparison_reason not in _UNPRICED
    subject = _savings(baseline, candidate, report, layout, places, subject_only=True) if priced else [None] * len(made)
    total = subject
    if priced and (_evaluated(baseline) or _evaluated(candidate)):
        total = _savings(baseline, candidate, report, layout, places, subject_only=False)
    sizes = Sizes(sizes=layout.sizes, weights=layout.weights)
    claims = (*baseline.claims, *candidate.claims)
    bands = [_band(baseline, candidate, one.candidate_target_id, layout, places, alpha) for one in made]
    rows = [
        Compared(
            candidate_run_id=report.candidate_run_id,
            figures=one,
            band=own,
            verdict=verdict(one, own, sizes, margin, claim_about(one.candidate_target_id, claims)),
            subject_saving=subject_saving,
            total_saving=total_saving,
        )
        for one, own, subject_saving, total_saving in zip(made, bands, subject, total, strict=True)
    ]
    if figures_only or candidate.calls is None or baseline.calls is None:
        return rows
    pool = _pool(baseline, layout)
    return [
        row
        if row.figures.candidate_target_id in candidate.singles
        else _with_routers(row, baseline, candidate, pool, places)
        for row in rows
    ]


def single_names(baseline: RunFigures) -> tuple[str, ...]:
    """The baseline's single models in plan order."""
    return tuple(target for target in baseline.plan.target_ids if target in baseline.singles)


def _band(baseline: RunFigures, candidate: RunFigures, target_id: str, layout: Layout, places: Ints, alpha: float) -> Band:
    names, own = single_names(baseline), right_of(candidate, target_id)[places]
    differences = np.stack([own - right_of(baseline, name)[layout.order] for name in names])
    deltas = [float(layout.quality(row)) for row in differences]
    return band(names, differences, deltas, layout.sizes, layout.weights, alpha)


def _savings(
    baseline: RunFigures,
    candidate: RunFigures,
    report: ComparisonReport,
    layout: Layout,
    places: Ints,
    *,
    subject_only: bool,
) -> list[SavingInterval | None]:
    if baseline.calls is None or candidate.calls is None:
        return [None] * len(report.comparisons)
    base = _costs(baseline, baseline.calls, report.baseline_selected_target_id, layout.order, subject_only=subject_only)
    own = [
        _costs(candidate, candidate.calls, one.candidate_target_id, places, subject_only=subject_only)
        for one in report.comparisons
    ]
    return saving_intervals(base, own, layout.sizes)


def _evaluated(side: RunFigures) -> bool:
    """Whether judges or simulators were asked, so that the whole cost is another than the subjects'."""
    return side.calls is not None and bool((side.calls.role != Role.SUBJECT).any())


def _costs(side: RunFigures, calls: CallColumns, target_id: str, cases: Ints, *, subject_only: bool) -> CaseCosts:
    target = list(side.plan.target_ids).index(target_id)
    return case_costs(calls, target, cases, len(side.plan.case_ids), subject_only=subject_only)


def _pool(baseline: RunFigures, layout: Layout) -> Pool:
    assert baseline.calls is not None
    names = single_names(baseline)
    costs = [_costs(baseline, baseline.calls, name, layout.order, subject_only=True) for name in names]
    return Pool(
        names=names,
        right=np.stack([right_of(baseline, name)[layout.order] for name in names]),
        cost=np.stack([_exact(one) for one in costs]),
        weight=layout.case_weights(),
    )


def _exact(costs: CaseCosts) -> Floats:
    """The cost by case, NaN where it is not known; a model that was not asked everywhere has no known cost."""
    return np.where((costs.low == costs.high) & costs.covered, costs.low, np.nan)


def _with_routers(row: Compared, baseline: RunFigures, candidate: RunFigures, pool: Pool, places: Ints) -> Compared:
    assert candidate.calls is not None
    target_id = row.figures.candidate_target_id
    costs = _costs(candidate, candidate.calls, target_id, places, subject_only=True)
    choice, decision = _choices(baseline, candidate, target_id, pool.names)
    routed = Routed(
        name=target_id,
        right=right_of(candidate, target_id)[places],
        cost=costs.total,
        choice=choice[places],
        decision=decision.take(places),
    )
    return replace(row, routers=null_routers(pool, routed), regret=regret(pool, routed))


def _choices(baseline: RunFigures, candidate: RunFigures, target_id: str, names: tuple[str, ...]) -> tuple[Ints, Labels]:
    """(position in the pool of the model that each case's last call was given to, the decision of that call)."""
    assert candidate.calls is not None
    calls, case_count = candidate.calls, len(candidate.plan.case_ids)
    target = list(candidate.plan.target_ids).index(target_id)
    own = calls.where((calls.target == target) & (calls.role == Role.SUBJECT))
    models = own.observed_model()
    pool = _pool_by_model(baseline, names)
    moved = np.array([pool.get(model, UNKNOWN) for model in models.vocabulary] + [UNKNOWN], dtype=np.int64)
    choice, decision = np.full(case_count, UNKNOWN), np.full(case_count, UNKNOWN)
    # Rows are in the order of dispatch: of several assignments to one place NumPy keeps the last.
    choice[own.case] = moved[models.codes]
    decision[own.case] = own.decision.codes
    return choice, Labels(decision, own.decision.vocabulary)


def _pool_by_model(baseline: RunFigures, names: tuple[str, ...]) -> dict[str, int]:
    """Position in the pool by target id and by model name; a name that several targets share means none of them."""
    by_model: dict[str, int] = {}
    for profile in baseline.report.facts.target_profiles:
        if profile.id in names:
            by_model[profile.model] = UNKNOWN if profile.model in by_model else names.index(profile.id)
    return by_model | {name: index for index, name in enumerate(names)}
