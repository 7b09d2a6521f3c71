"""A comparison as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from srbench.v1 import comparison_pb2 as pb
from srbench_kit import figures

from srbench_gateway.paper import rows
from srbench_gateway.paper.markup import Column, Html, document, facts, section, sentences, table, tag, text

_KINDS = {"better": "verdict better", "worse": "verdict worse"}


def page(report: pb.ComparisonReport, names: Mapping[str, str]) -> str:
    """The page of a comparison; `names` are the runs' names by id."""
    baseline = names.get(report.baseline_run_id) or report.baseline_run_id
    return document(
        f"Held against {baseline}",
        tag("header", (tag("h1", text(f"Held against {baseline}")), tag("p", text(_lead(report)), "soft"))),
        section("Verdicts", *(_verdict(one, names) for one in report.comparisons)),
        section("Quality", _quality(report.comparisons)),
        section("Cost saved", _savings(report.comparisons)),
        section("The reference run", rows.targets(report.baseline_targets)),
        section("The candidates", rows.targets(report.candidate_targets)),
        section("How to read this", sentences(_rules(report))),
        section("What was compared", _identity(report, names)),
    )


def _lead(report: pb.ComparisonReport) -> str:
    return (
        f"Against {report.baseline_selected_target_id}, {report.baseline_selection}. "
        f"{report.baseline_selection_qualification}"
    )


def _verdict(one: pb.Comparison, names: Mapping[str, str]) -> Html:
    more = [claim.sentence for claim in one.claims]
    if one.HasField("non_inferiority"):
        more.append(one.non_inferiority.sentence)
    said = (tag("p", text(sentence)) for sentence in (one.verdict_sentence, *more))
    head = f"{names.get(one.candidate_run_id) or one.candidate_run_id}: {one.candidate_target_id}, {one.verdict}"
    return tag("div", (tag("strong", text(head)), *said), _KINDS.get(one.verdict, "verdict"))


def _quality(found: Iterable[pb.Comparison]) -> Html:
    heads = [
        *(Column("Candidate"), Column("Difference, points", True), Column("95 % interval"), Column("Verdict's interval")),
        *(Column("Wins", True), Column("Losses", True), Column("Ties", True), Column("McNemar p (Holm)", True)),
    ]
    return table(heads, (_quality_row(one) for one in found))


def _quality_row(one: pb.Comparison) -> list[Html]:
    own = next((row.interval for row in one.band.singles if row.target_id == one.baseline_target_id), ())
    p = "<0.0001" if one.mcnemar_p_holm < 0.0001 else f"{one.mcnemar_p_holm:.4f}"
    words = (
        one.candidate_target_id,
        f"{100 * one.quality_delta:+.1f}",
        _points(one.quality_delta_adaptive_ci95),
        _points(own),
        *(one.wins, one.losses, one.ties, p),
    )
    return [text(word) for word in words]


def _points(ends: Sequence[float]) -> str:
    return f"[{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]" if len(ends) == 2 else figures.UNKNOWN


def _savings(found: Iterable[pb.Comparison]) -> Html:
    heads = [Column(title) for title in ("Candidate", "Own calls", "95 % interval", "All calls", "95 % interval")]
    return table(heads, (_saving_row(one) for one in found))


def _saving_row(one: pb.Comparison) -> list[Html]:
    parts = [one.candidate_target_id]
    for name in ("subject_cost_saving", "total_cost_saving"):
        made: pb.SavingInterval | None = getattr(one, name) if one.HasField(name) else None
        parts += [_saving(made, one.total_cost_comparison_reason), _percents(made)]
    return [text(part) for part in parts]


def _saving(made: pb.SavingInterval | None, reason: str) -> str:
    if made is None:
        return f"{figures.UNKNOWN}: {reason}" if reason else figures.UNKNOWN
    if made.unknown_cost_calls:
        return f"{made.low_percent:.1f} to {made.high_percent:.1f} %"
    return f"{made.low_percent:.1f} %"


def _percents(made: pb.SavingInterval | None) -> str:
    ends = list(made.ci95_percent) if made is not None else []
    return f"[{ends[0]:.1f}, {ends[1]:.1f}]" if len(ends) == 2 else figures.UNKNOWN


def _rules(report: pb.ComparisonReport) -> Iterable[str]:
    qualification = next((one.quality_delta_ci95_qualification for one in report.comparisons), "")
    said = (report.verdict_rule, report.quality_denominator, qualification, report.margin_qualification)
    return (f"{sentence[0].upper()}{sentence[1:]}" for sentence in said if sentence)


def _identity(report: pb.ComparisonReport, names: Mapping[str, str]) -> Html:
    candidates = [one.run_id for one in report.candidates]
    named = ", ".join(f"{run} ({names[run]})" if names.get(run) else run for run in candidates)
    return facts(
        [
            ("Reference run", report.baseline_run_id),
            ("Candidates", named),
            ("The same figures", f"sr-bench compare {report.baseline_run_id} {' '.join(candidates)}"),
        ]
    )
