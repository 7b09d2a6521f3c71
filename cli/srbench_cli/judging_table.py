"""How well judges judge, for people: corrected accuracies beside those as judged, and the agreement of two judges."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import judging_pb2 as pb
from srbench_kit import figures

from srbench_cli.tables import cell, table

_CORRECTED = ("target", "benchmark", "as judged", "corrected", "95 % interval", "labels", "agree")
_NUMBERS = ("as judged", "corrected", "labels", "agree")
_AGREEMENT = ("benchmark", "judged twice", "unpaired", "agree", "Cohen's kappa")
_QUALITY = ("target", "benchmark", "sensitivity", "specificity", "Rogan-Gladen")
_METHODS = {"prediction_powered_difference": "prediction-powered difference estimator"}


def judging(found: pb.Judging) -> RenderableType:
    """All that is known of a run's judges."""
    shown = list(parts(found))
    if found.audited:
        shown += [Text(), table(_QUALITY, [_quality_row(row) for row in found.audited], right=_QUALITY[2:])]
    return Group(*shown)


def parts(found: pb.Judging) -> Iterable[RenderableType]:
    """Corrected accuracies, how they came about, the agreement of two judges."""
    if found.audited:
        yield table(_CORRECTED, _rows(found), right=_NUMBERS)
        yield cell(sentence(found))
    if found.audited and found.agreements:
        yield Text()
    if found.agreements:
        yield table(_AGREEMENT, [_agreement_row(each) for each in found.agreements], right=_AGREEMENT[1:])


def sentence(found: pb.Judging) -> str:
    """Who labelled how much, by what method it corrects, and what it leaves as it is."""
    audited, graded = (sum(getattr(row, name) for row in found.headlines) for name in ("audited_count", "graded_count"))
    method = next((row.method for row in found.headlines), "")
    unknown = [row.target_id for row in found.headlines if not row.HasField("corrected_accuracy")]
    few = f" {', '.join(unknown)}: unknown, a judged benchmark has fewer than two labels." if unknown else ""
    return (
        f"Corrected by {found.auditor}'s labels of {audited} of {graded} judged answers, with the "
        f"{_METHODS.get(method, method)}. Every other figure stands as judged.{few}"
    )


def _rows(found: pb.Judging) -> list[tuple[object, ...]]:
    """Rows of a target for all benchmarks and their weighted mean, where it has several, then one for each judged one."""
    rows: list[tuple[object, ...]] = []
    for whole in found.headlines:
        own = _of(found, whole.target_id)
        if [one.planned_count for one in own] != [whole.planned_count]:
            rows.append((whole.target_id, "all", *_figures(whole, whole.accuracy)))
            rows.append((whole.target_id, "macro", *_macro(whole)))
        rows += [(one.target_id, one.benchmark, *_figures(one, one.judged_accuracy)) for one in own]
    return rows


def _of(found: pb.Judging, target_id: str) -> list[pb.AuditedAccuracy]:
    return [one for one in found.audited if one.target_id == target_id]


def _figures(row: pb.AuditedAccuracy | pb.AuditedHeadline, judged: float) -> tuple[object, ...]:
    corrected = row.corrected_accuracy if row.HasField("corrected_accuracy") else None
    bounds = (row.lower, row.upper) if row.HasField("lower") else ()
    labels = f"{row.audited_count}/{row.graded_count}"
    return figures.percent(judged), figures.percent(corrected), figures.interval(bounds), labels, row.agreed_count


def _macro(row: pb.AuditedHeadline) -> tuple[object, ...]:
    judged = row.macro_accuracy if row.HasField("macro_accuracy") else None
    corrected = row.corrected_macro_accuracy if row.HasField("corrected_macro_accuracy") else None
    bounds = (row.macro_lower, row.macro_upper) if row.HasField("macro_lower") else ()
    return figures.percent(judged), figures.percent(corrected), figures.interval(bounds), "", ""


def _agreement_row(each: pb.JudgeAgreement) -> tuple[object, ...]:
    observed = figures.percent(each.observed if each.HasField("observed") else None)
    kappa = f"{each.kappa:.3f}" if each.HasField("kappa") else figures.UNKNOWN
    return each.benchmark, each.pair_count, each.unpaired_count, observed, kappa


def _quality_row(row: pb.AuditedAccuracy) -> tuple[object, ...]:
    sensitivity = figures.percent(row.sensitivity if row.HasField("sensitivity") else None)
    specificity = figures.percent(row.specificity if row.HasField("specificity") else None)
    rogan_gladen = figures.percent(row.rogan_gladen_accuracy if row.HasField("rogan_gladen_accuracy") else None)
    return row.target_id, row.benchmark, sensitivity, specificity, rogan_gladen
