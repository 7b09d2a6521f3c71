"""Figures of the released service: the shared goldens, and two small ones worked out by hand-written slow code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from srbench_accounting.compare import RunFigures, compare

from tests.goldens import GOLDENS, read_golden, same

Figures = Callable[[dict[str, Any], str], RunFigures]


def flat(value: Any) -> dict[str, Any]:
    """Our figures in the names and units of the goldens: dollars, nested diagnostics."""
    row = {}
    for name, item in asdict(value).items():
        row[name.replace("_picodollars", "_usd")] = (
            item / 1e12 if name.endswith("_picodollars") and item is not None else item
        )
    if "output_diagnostics" in row:
        own = row["output_diagnostics"]
        row["output_diagnostics"] = {
            "output_limit_cases": own["output_limit_cases"],
            "planned_cases": own["planned_cases"],
            "result_cases": own["result_cases"],
            "strict_format": {
                name: own[f"format_{name}"] for name in ("checked_cases", "failed_cases", "unassessed_cases")
            },
            "subject_calls": {
                "finish_reasons": own["finish_reasons"],
                "total": own["subject_call_total"],
                "unknown_finish_reason": own["unknown_finish_reason"],
            },
        }
    return row


def test_every_figure_of_a_report_is_that_of_the_released_service(figures: Figures) -> None:
    for golden in map(read_golden, GOLDENS):
        for side in ("baseline", "candidate"):
            report, expected = figures(golden, side).report, golden[side]["report"]
            where = f"{golden['scenario']}.{side}"
            same([flat(row) for row in report.summary.targets], expected["summary"]["targets"], f"{where}.targets")
            same([flat(row) for row in report.benchmarks], expected["benchmarks"], f"{where}.benchmarks")
            same(
                flat(report.summary)["total_spend_usd"], expected["summary"]["total_spend_usd"], f"{where}.total_spend_usd"
            )
            same(asdict(report.failure) if report.failure else None, expected["failure"], f"{where}.failure")


def test_every_figure_of_a_comparison_is_that_of_the_released_service(figures: Figures) -> None:
    for golden in map(read_golden, GOLDENS):
        made, expected = compare(figures(golden, "baseline"), figures(golden, "candidate")), golden["compare"]
        ours = flat(made)
        for side in ("baseline_targets", "candidate_targets"):
            ours[side] = [flat(row) for row in getattr(made, side)]
        ours["comparisons"] = [flat(row) for row in made.comparisons]
        same(ours, expected, f"{golden['scenario']}.compare")
