"""A router run against the strongest single model of a baseline run, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from srbench_kit.adaptive import METHOD as ADAPTIVE_METHOD
from srbench_kit.adaptive import Counts, adaptive_intervals
from srbench_kit.errors import InvalidInput
from srbench_kit.saying import Saying

from srbench_accounting.bootstrap import Strata, released_interval
from srbench_accounting.claims import Claim
from srbench_accounting.columns import CallColumns, CellEnd, Floats, Ints, OutcomeColumns, PlanColumns
from srbench_accounting.comparable import OUTPUT_LIMIT, Contender, Endings, Rules, check_pair
from srbench_accounting.intervals import clipped, hoeffding_radius
from srbench_accounting.metrics import CACHE_NEUTRAL_BASIS, Metrics
from srbench_accounting.paired import holm, mcnemar_exact, mcnemar_mid_p
from srbench_accounting.report import VERSION, Report, weighted_accuracy
from srbench_accounting.savings import ineligible_reason, saving_percent, unknown_reason

CI_METHOD = "weighted-paired-hoeffding"
QUALITY_METRIC = Saying("QUALITY_METRIC", "weighted mean over the benchmarks of the share of planned cases answered right")
QUALITY_DENOMINATOR = Saying(
    "QUALITY_DENOMINATOR", "every planned case; one that failed counts as not right on either side"
)
CI_QUALIFICATION = Saying(
    "INTERVALS",
    "Hoeffding's interval holds for any number of cases and is wide; the bootstrap interval and McNemar's test are "
    "narrower and cover the choice of cases alone. An interval that spans zero shows no difference.",
)
ADAPTIVE_QUALIFICATION = Saying(
    "ADAPTIVE_INTERVAL",
    "It holds for any number of cases like Hoeffding's and assumes as much: that the cases are independent; they need not "
    "be alike. It is narrow where the two sides seldom disagree, and covers the choice of cases alone.",
)
SELECTION = Saying("BASELINE_SELECTION", "the single model with the highest quality observed in the baseline run")
SELECTION_QUALIFICATION = Saying(
    "BASELINE_SELECTION_BIAS",
    "It was chosen by the same answers that it is compared on, which favours the baseline a little: the difference is "
    "conservative for the candidate.",
)
TIE_POLICY = Saying(
    "BASELINE_TIES",
    "among single models of equal quality the one with the lowest known total spend, then by id; when the spend of any of "
    "them is unknown, no saving is given",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """One side of a comparison.

    Attributes:
        singles: ids of the targets that are one model.
        rules: what another run must share with it.
        calls: for the intervals of savings and the null routers; `None` leaves them out.
        claims: what the plan claims.
    """

    plan: PlanColumns
    outcomes: OutcomeColumns
    report: Report
    singles: frozenset[str]
    rules: Rules = field(default_factory=Rules)
    calls: CallColumns | None = None
    claims: tuple[Claim, ...] = ()

    def contender(self) -> Contender:
        """The side as far as it decides whether there can be a comparison."""
        facts = self.report.facts
        return Contender(
            run_id=facts.run_id,
            status=facts.status,
            mode=facts.mode,
            rules=self.rules,
            endings=endings(self.plan, self.outcomes),
            cases=same_cases(self.plan),
            case_sha256=facts.case_sha256,
            has_single=any(target in self.singles for target in self.plan.target_ids),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One candidate against the baseline; differences are candidate less baseline, money is in picodollars.

    Attributes:
        quality_delta: difference of weighted quality.
        micro_quality_delta: mean difference over the cases, each weighing the same.
        quality_delta_ci95: Hoeffding's interval of `quality_delta`.
        quality_delta_adaptive_ci95: the variance-adaptive interval, see `adaptive`.
        quality_delta_bootstrap_ci95: the stratified paired bootstrap's, with the draws of sr-bench 1.0.
        mcnemar_p: two-sided exact p-value over all cases, whatever their benchmark.
        mcnemar_mid_p: its mid-p form.
        mcnemar_p_holm: the exact p-value adjusted for all candidates of the comparison.
        total_cost_comparison_reason: why `total_cost_saving_percent` is unknown; `None` when it is known.
    """

    baseline_target_id: str
    candidate_target_id: str
    paired_cases: int
    quality_delta: float
    micro_quality_delta: float
    quality_delta_ci95: tuple[float, float]
    quality_delta_adaptive_ci95: tuple[float, float]
    quality_delta_bootstrap_ci95: tuple[float, float]
    wins: int
    losses: int
    ties: int
    mcnemar_p: float
    mcnemar_mid_p: float
    mcnemar_p_holm: float
    baseline_subject_cost_picodollars: int | None
    candidate_subject_cost_picodollars: int | None
    subject_cost_saving_percent: float | None
    subject_cost_comparison_reason: str | None
    baseline_total_cost_picodollars: int | None
    candidate_total_cost_picodollars: int | None
    total_cost_saving_percent: float | None
    total_cost_comparison_reason: str | None
    baseline_evaluation_cost_picodollars: int | None
    candidate_evaluation_cost_picodollars: int | None
    cache_neutral_baseline_cost_picodollars: int | None
    cache_neutral_candidate_cost_picodollars: int | None
    cache_neutral_cost_saving_percent: float | None
    cache_neutral_cost_comparison_reason: str | None
    quality_delta_ci95_method: str = CI_METHOD
    quality_delta_adaptive_ci95_method: str = ADAPTIVE_METHOD
    quality_delta_adaptive_ci95_qualification: str = ADAPTIVE_QUALIFICATION
    quality_metric: str = QUALITY_METRIC
    quality_delta_ci95_qualification: str = CI_QUALIFICATION
    cache_neutral_cost_basis: str = CACHE_NEUTRAL_BASIS


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport:
    """Every target of the candidate run against the strongest single model of the baseline run."""

    baseline_run_id: str
    candidate_run_id: str
    baseline_status: str
    candidate_status: str
    baseline_quality_complete: bool
    candidate_quality_complete: bool
    baseline_targets: tuple[Metrics, ...]
    candidate_targets: tuple[Metrics, ...]
    baseline_selected_target_id: str
    baseline_tied_best_target_ids: tuple[str, ...]
    baseline_cost_comparison_eligible: bool
    baseline_cost_comparison_reason: str | None
    comparisons: tuple[Comparison, ...]
    version: str = VERSION
    quality_denominator: str = QUALITY_DENOMINATOR
    baseline_selection: str = SELECTION
    baseline_selection_qualification: str = SELECTION_QUALIFICATION
    baseline_tie_policy: str = TIE_POLICY


def compare(baseline: RunFigures, candidate: RunFigures) -> ComparisonReport:
    """The comparison. Cases are paired by id, whatever their order.

    Raises: `InvalidInput` (`NO_WEIGHT`) and what `comparable.check_pair` raises.
    """
    check_pair(baseline.contender(), candidate.contender())
    best, tied = strongest_single(baseline)
    ineligible = ineligible_reason(tied, baseline.report.facts.cost_policy, candidate.report.facts.cost_policy)
    layout = Layout.of(baseline.plan)
    first = right_of(baseline, best.id)[layout.order]
    targets = candidate.report.summary.targets
    places = layout.places(candidate.plan, baseline.plan)
    differences = np.stack([right_of(candidate, row.id)[places] - first for row in targets])
    strata = Strata(differences, layout.sizes, layout.weights)
    resampled = released_interval(strata)
    adaptive = adaptive_intervals(Counts.of(differences, layout.sizes), layout.sizes, layout.weights)
    radius = hoeffding_radius(layout.weights, layout.sizes)
    made = [
        _comparison(best, row, layout, difference, both, radius, ineligible)
        for row, difference, *both in zip(targets, differences, adaptive, resampled, strict=True)
    ]
    adjusted = holm([comparison.mcnemar_p for comparison in made])
    return ComparisonReport(
        baseline_run_id=baseline.report.facts.run_id,
        candidate_run_id=candidate.report.facts.run_id,
        baseline_status=baseline.report.facts.status,
        candidate_status=candidate.report.facts.status,
        baseline_quality_complete=all(row.complete for row in baseline.report.summary.targets),
        candidate_quality_complete=all(row.complete for row in targets),
        baseline_targets=baseline.report.summary.targets,
        candidate_targets=targets,
        baseline_selected_target_id=best.id,
        baseline_tied_best_target_ids=tuple(sorted(row.id for row in tied)),
        baseline_cost_comparison_eligible=ineligible is None,
        baseline_cost_comparison_reason=ineligible,
        comparisons=tuple(replace(one, mcnemar_p_holm=p) for one, p in zip(made, adjusted, strict=True)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The baseline's cases, benchmark after benchmark in alphabetical order, each in plan order.

    Attributes:
        order: positions of the cases in the baseline's plan.
        weights: of the benchmarks, adding up to 1.
    """

    order: Ints
    sizes: tuple[int, ...]
    weights: tuple[float, ...]
    exact_weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, plan: PlanColumns) -> Layout:
        planned = np.unique(plan.cell_case)
        codes = plan.case_benchmark.codes[planned]
        names = sorted({plan.case_benchmark.vocabulary[code] for code in codes})
        parts = [planned[codes == plan.case_benchmark.vocabulary.index(name)] for name in names]
        raw = [Fraction(str(plan.weights.get(name, 1))) for name in names]
        total = sum(raw)
        if total <= 0:
            raise InvalidInput("NO_WEIGHT", "the weights of the benchmarks in the runs add up to 0; one must be above 0")
        exact = tuple(weight / total for weight in raw)
        return cls(
            order=np.concatenate(parts),
            sizes=tuple(len(part) for part in parts),
            weights=tuple(float(weight) for weight in exact),
            exact_weights=exact,
        )

    def places(self, own: PlanColumns, baseline: PlanColumns) -> Ints:
        """Where each case, in this order, stands in a plan of the same cases."""
        place = {case: index for index, case in enumerate(own.case_ids)}
        return np.array([place[baseline.case_ids[index]] for index in self.order.tolist()], dtype=np.int64)

    def case_weights(self) -> Floats:
        """What each case, in this order, weighs in the quality; they add up to 1."""
        return np.repeat(np.asarray(self.weights) / np.asarray(self.sizes), self.sizes)

    def quality(self, differences: Ints) -> Fraction:
        """The weighted mean difference, exactly."""
        ends = np.cumsum(self.sizes)
        sums = [int(differences[end - size : end].sum()) for end, size in zip(ends, self.sizes, strict=True)]
        shares = zip(self.exact_weights, sums, self.sizes, strict=True)
        return sum((weight * Fraction(total, size) for weight, total, size in shares), Fraction(0))


def right_of(side: RunFigures, target_id: str) -> Ints:
    """1 where the target has the case right, else 0, in the order of its own plan."""
    outcomes, target = side.outcomes, list(side.plan.target_ids).index(target_id)
    right = np.zeros(len(side.plan.case_ids), dtype=np.int64)
    right[outcomes.case[(outcomes.target == target) & (outcomes.end == CellEnd.DONE) & (outcomes.correct == 1)]] = 1
    return right


def _comparison(
    best: Metrics,
    row: Metrics,
    layout: Layout,
    differences: Ints,
    intervals: Sequence[tuple[float, float]],
    radius: float,
    ineligible: str | None,
) -> Comparison:
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    cases, delta = len(differences), float(layout.quality(differences))

    def saving(base: int | None, mine: int | None) -> float | None:
        return None if ineligible is not None else saving_percent(base, mine)

    subject = best.cost_picodollars, row.cost_picodollars
    total = best.total_spend_picodollars, row.total_spend_picodollars
    neutral = best.cache_neutral_cost_picodollars, row.cache_neutral_cost_picodollars
    p_value = mcnemar_exact(losses, wins)
    adaptive, resampled = intervals
    return Comparison(
        baseline_target_id=best.id,
        candidate_target_id=row.id,
        paired_cases=cases,
        quality_delta=delta,
        micro_quality_delta=(wins - losses) / cases,
        quality_delta_ci95=clipped(delta, radius),
        quality_delta_adaptive_ci95=adaptive,
        quality_delta_bootstrap_ci95=resampled,
        wins=wins,
        losses=losses,
        ties=cases - wins - losses,
        mcnemar_p=p_value,
        mcnemar_mid_p=mcnemar_mid_p(losses, wins),
        mcnemar_p_holm=p_value,
        baseline_subject_cost_picodollars=subject[0],
        candidate_subject_cost_picodollars=subject[1],
        subject_cost_saving_percent=saving(*subject),
        subject_cost_comparison_reason=unknown_reason(*subject, ineligible),
        baseline_total_cost_picodollars=total[0],
        candidate_total_cost_picodollars=total[1],
        total_cost_saving_percent=saving(*total),
        total_cost_comparison_reason=unknown_reason(*total, ineligible),
        baseline_evaluation_cost_picodollars=best.evaluation_cost_picodollars,
        candidate_evaluation_cost_picodollars=row.evaluation_cost_picodollars,
        cache_neutral_baseline_cost_picodollars=neutral[0],
        cache_neutral_candidate_cost_picodollars=neutral[1],
        cache_neutral_cost_saving_percent=saving(*neutral),
        cache_neutral_cost_comparison_reason=unknown_reason(*neutral, ineligible),
    )


def strongest_single(baseline: RunFigures) -> tuple[Metrics, list[Metrics]]:
    """(the baseline of comparisons, every single model with the highest weighted quality, compared as exact fractions)."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for row in baseline.report.benchmarks:
        counts.setdefault(row.id, {})[row.benchmark or ""] = (row.correct or 0, row.total)
    singles = [row for row in baseline.report.summary.targets if row.id in baseline.singles]
    quality = {row.id: _quality(counts[row.id], baseline.plan.weights) for row in singles}
    best = max(quality.values())
    tied = [row for row in singles if quality[row.id] == best]
    return min(tied, key=_by_known_spend), tied


def _quality(counts: Mapping[str, tuple[int, int]], weights: Mapping[str, float | str]) -> Fraction:
    return weighted_accuracy(counts, weights) or Fraction(0)


def _by_known_spend(row: Metrics) -> tuple[bool, int, str]:
    spend = row.total_spend_picodollars
    return spend is None, spend or 0, row.id


def endings(plan: PlanColumns, outcomes: OutcomeColumns) -> Endings:
    """How the run's cells ended."""
    stopped = (outcomes.end == CellEnd.CANCELLED) | (outcomes.end == CellEnd.INTERRUPTED)
    reasons = set(outcomes.reason.counts())
    if outcomes.output_limit.any():
        reasons.add(OUTPUT_LIMIT)
    return Endings(
        planned=len(plan.cell_case),
        ended=len(outcomes),
        unfinished=int(stopped.sum()),
        ungraded=int(((outcomes.end == CellEnd.DONE) & (outcomes.correct < 0)).sum()),
        reasons=frozenset(reasons),
    )


def same_cases(plan: PlanColumns) -> frozenset[str] | None:
    """The cases that every target of the run plans; `None` when they do not all plan the same."""
    seen = np.zeros((len(plan.target_ids), len(plan.case_ids)), dtype=bool)
    seen[plan.cell_target, plan.cell_case] = True
    planned = seen.any(axis=0)
    if not seen[:, planned].all():
        return None
    return frozenset(plan.case_ids[index] for index in np.flatnonzero(planned).tolist())
