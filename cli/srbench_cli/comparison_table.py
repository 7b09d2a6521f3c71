"""Comparisons for people: one row a candidate, and what each says in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import power_pb2
from srbench_kit import figures

from srbench_cli.tables import cell, pairs, state, table, when

_STYLES = {"better": "green", "worse": "red", "not established": "yellow"}
_PERCENT_UNKNOWN = figures.UNKNOWN
MOST_ROWS = 25


def comparison(found: pb.ComparisonReport) -> RenderableType:
    """The whole comparison, narrow enough for a terminal of 80 columns."""
    best = found.baseline_selected_target_id
    tied = [name for name in found.baseline_tied_best_target_ids if name != best]
    parts: list[RenderableType] = [
        pairs([("baseline", found.baseline_run_id), ("strongest", best + (f" (tied: {', '.join(tied)})" if tied else ""))]),
        Text(),
        table(
            ("candidate", "Δ quality", "95 % adaptive", "Hoeffding", "won", "lost", "tied", "p"),
            [_quality_row(one) for one in found.comparisons],
            right=("Δ quality", "won", "lost", "tied", "p"),
        ),
        cell(_about_quality(found)),
        Text(),
        table(
            ("candidate", "saving", "95 % interval", "total saving", "total interval"),
            [_saving_row(one) for one in found.comparisons],
            right=("saving", "total saving"),
        ),
        cell(f"Of {best}'s cost; total with judges and simulators; interval: 95 %, paired bootstrap over the cases."),
        Text(),
    ]
    for one in found.comparisons:
        parts.append(cell(one.verdict_sentence, _STYLES.get(one.verdict, "")))
        parts += [cell(sentence) for sentence in _sentences(one)]
    if found.margin_qualification:
        parts.append(cell(f"Of the margin: {found.margin_qualification}.", "yellow"))
    parts += [cell(f"No saving: {reason}.", "yellow") for reason in _reasons(found)]
    return Group(*parts)


def _about_quality(found: pb.ComparisonReport) -> str:
    """Units, number of cases and test of the table of qualities."""
    cases = " to ".join(str(count) for count in sorted({one.paired_cases for one in found.comparisons}))
    count = len(found.comparisons)
    holm = f" with Holm's correction for {count} candidates" if count > 1 else ""
    return f"In points of weighted quality over {cases} cases; p: McNemar's exact test{holm}."


def _quality_row(one: pb.Comparison) -> tuple[object, ...]:
    p = one.mcnemar_p_holm
    shown = "<0.001" if p < 0.001 else f"{p:.3f}"
    delta = f"{100 * one.quality_delta:+.1f}"
    narrow, wide = (_ends_in_points(ends) for ends in (one.quality_delta_adaptive_ci95, one.quality_delta_ci95))
    return one.candidate_target_id, delta, narrow, wide, one.wins, one.losses, one.ties, shown


def _saving_row(one: pb.Comparison) -> tuple[object, ...]:
    subject = one.subject_cost_saving if one.HasField("subject_cost_saving") else None
    total = one.total_cost_saving if one.HasField("total_cost_saving") else None
    return one.candidate_target_id, _saving(subject), _ends(subject), _saving(total), _ends(total)


def _saving(made: pb.SavingInterval | None) -> str:
    if made is None:
        return _PERCENT_UNKNOWN
    if made.unknown_cost_calls:
        return f"{made.low_percent:.1f} to {made.high_percent:.1f} %"
    return f"{made.low_percent:.1f} %"


def _ends(made: pb.SavingInterval | None) -> str:
    if made is None or len(made.ci95_percent) != 2:
        return ""
    return f"[{made.ci95_percent[0]:.1f}, {made.ci95_percent[1]:.1f}]"


def _reasons(found: pb.ComparisonReport) -> Iterable[str]:
    said = [one.total_cost_comparison_reason for one in found.comparisons if one.total_cost_comparison_reason]
    return dict.fromkeys(said)


def _ends_in_points(ends: Iterable[float]) -> str:
    return f"[{', '.join(f'{100 * end:+.1f}' for end in ends)}]"


def _sentences(one: pb.Comparison) -> Iterable[str]:
    if len(one.band.singles) > 1:
        yield (
            f"Against all {len(one.band.singles)} single models at once: "
            + ", ".join(f"{row.target_id} {_ends_in_points(row.interval)}" for row in one.band.singles)
            + f"; against the truly best of them {_ends_in_points(one.band.best_single_delta_interval)}."
        )
    yield from (claim.sentence for claim in one.claims)
    if one.HasField("non_inferiority"):
        yield one.non_inferiority.sentence
    if one.HasField("null_routers"):
        yield from _null_sentences(one.null_routers)
    if one.HasField("regret"):
        yield _regret_sentence(one.regret.total)


def _null_sentences(made: pb.NullRouters) -> Iterable[str]:
    if made.HasField("static_mix"):
        mix = made.static_mix
        shares = ", ".join(f"{100 * share:.0f} % {name}" for name, share in sorted(mix.shares.items()))
        yield (
            f"The best mix without looking at the question ({shares}) would get {figures.percent(mix.quality)} at that "
            f"spend; the router got {figures.percent(made.router.quality)}, "
            f"an oracle {figures.percent(made.oracle.quality)}."
        )
    else:
        yield f"There is no mix to compare with: {made.static_mix_reason}."
    if made.HasField("split"):
        split = made.split
        yield (
            f"Its own choices dealt out at random would get {figures.percent(split.shuffled_quality)}, as chosen "
            f"{figures.percent(split.observed_quality)} (p = {split.permutation_p:.3f}, {split.known_choices} choices, "
            f"{split.permutations} random deals)."
        )


def _regret_sentence(parts: pb.RegretParts) -> str:
    causes = (
        ("no model knew", parts.pool_limit),
        ("the wrong model was chosen", parts.selection_error),
        ("the chosen model failed behind the router", parts.execution_failure),
        ("not attributed", parts.unattributed),
    )
    said = ", ".join(f"{what} {figures.percent(share)}" for what, share in causes if share)
    return f"Where its wrong answers come from: {said}." if said else "It gave no wrong answer."


def pair_page(found: pb.ComparePairsResponse) -> RenderableType:
    """Questions with both answers."""
    rows = [
        (pair.case_id, pair.benchmark, pair.outcome, _answer(pair.baseline), _answer(pair.candidate), pair.candidate.model)
        for pair in found.pairs
    ]
    counts = ", ".join(
        f"{found.counts[name]} {name.replace('_', ' ')}" for name in ("win", "loss", "both_right", "both_wrong")
    )
    columns = ("case", "benchmark", "outcome", found.baseline_target_id, found.candidate_target_id, "model")
    return Group(table(columns, rows), cell(f"{found.total} questions fit; over all outcomes: {counts}."))


def _answer(side: pb.PairSide) -> str:
    if side.status != "completed":
        return side.reason or side.status or "none"
    return "right" if side.correct else "wrong"


def options(found: pb.ListComparisonOptionsResponse) -> RenderableType:
    """Runs that can be compared, then those that cannot, with their reasons."""
    fits = [*found.baselines, *found.options]
    parts: list[RenderableType] = [table(("run", "status", "created", "name", "targets"), [_run_row(run) for run in fits])]
    for run in [*([found.baseline] if found.baseline.reasons else []), *found.incompatible]:
        parts.append(cell(f"{run.id} {run.name} cannot take part:"))
        parts += [cell(f"  {one.reason}: {one.message}", "yellow") for one in run.reasons]
    if found.scan_limited:
        parts.append(cell(f"{found.unverified_pairs} runs were not checked; ask for a smaller page.", "yellow"))
    if found.empty_reason:
        parts.append(cell(found.empty_reason))
    return Group(*parts)


def _run_row(run: pb.ComparisonRun) -> tuple[object, ...]:
    return run.id, state(run.status), when(run.create_time), run.name, ", ".join(target.id for target in run.targets)


def regrading(found: pb.Regrading) -> RenderableType:
    """What changed; the file has everything."""
    changed = [one for one in found.results if one.changed]
    rows = [(one.case_id, one.target_id, _grade(one, "source_correct"), _grade(one, "correct")) for one in changed]
    parts: list[RenderableType] = [
        pairs([("run", found.source_run_id), ("grader", found.grader_version), ("answers", len(found.results))]),
        table(("case", "target", "then", "now"), rows[:MOST_ROWS]),
    ]
    if len(rows) > MOST_ROWS:
        parts.append(cell(f"and {len(rows) - MOST_ROWS} more; the file has them all"))
    gained, lost = found.gained_count, found.lost_count
    parts.append(
        cell(f"{found.changed_count} grades would change: {gained} to right, {lost} to wrong. The run stays as it is.")
    )
    return Group(*parts)


def _grade(one: pb.RegradedResult, name: str) -> str:
    if not one.HasField("correct" if name == "correct" else "source_correct"):
        return "no grade"
    return "right" if getattr(one, name) else "wrong"


def correction(found: pb.AccountingCorrection) -> RenderableType:
    """What a reconciliation found."""
    reasons: dict[str, int] = {}
    for call in found.calls:
        if call.reason:
            reasons[call.reason] = reasons.get(call.reason, 0) + 1
    return pairs(
        [
            ("correction", found.id),
            ("evidence", found.evidence_sha256),
            ("verified", f"{found.verified_call_count} calls, {found.corrected_call_count} of them corrected"),
            ("unverified", ", ".join(f"{name} {count}" for name, count in sorted(reasons.items())) or "none"),
            ("known before", figures.usd(found.original_known_spend_picodollars)),
            ("known now", figures.usd(found.corrected_known_spend_picodollars)),
        ]
    )


def power(found: power_pb2.PowerEstimate) -> RenderableType:
    """What each profile could show and would cost."""
    columns = ("cases of", "cases", "McNemar", "verdict", "± verdict", "± bootstrap", "expected", "worst case")
    return Group(
        table(columns, [_power_row(row) for row in found.profiles], right=columns[1:]),
        Text(),
        cell("In points: the smallest difference that each establishes, and half the widths of the intervals."),
        *(cell(f"Assumed: {sentence}.") for sentence in found.assumptions),
        *(cell(f"Expected cost is unknown: {gap.message}.") for gap in found.expected_gaps),
        *(cell(f"Worst case is unknown: {gap.message}.") for gap in found.worst_case_gaps),
        cell("No model was called."),
    )


def _power_row(row: power_pb2.ProfilePower) -> tuple[object, ...]:
    detectable = [
        f"{100 * getattr(row, name):.1f}" if row.HasField(name) else "none"
        for name in ("detectable_difference", "verdict_detectable_difference")
    ]
    expected = row.expected_cost_picodollars if row.HasField("expected_cost_picodollars") else None
    worst = row.worst_case_cost_picodollars if row.HasField("worst_case_cost_picodollars") else None
    widths = f"{100 * row.verdict_half_width:.1f}", f"{100 * row.expected_half_width:.1f}"
    return row.profile, row.case_count, *detectable, *widths, figures.usd(expected), figures.usd(worst)
