"""Figures of the released service: the shared goldens, and two small ones worked out by hand-written slow code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from srbench_accounting.compare import RunFigures, compare

Figures = Callable[[dict[str, Any], str], RunFigures]
OWN = sorted((Path(__file__).parent / "goldens").glob("*.json"))


def goldens(shared: Path | None) -> list[dict[str, Any]]:
    paths = [*OWN, *(sorted((shared / "goldens").glob("*.json")) if shared else [])]
    assert len(OWN) >= 2
    return [json.loads(path.read_text()) for path in paths]


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


def same(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, dict):
        for name, item in theirs.items():
            if name.endswith("_reason_given"):
                # The goldens leave sentences out and say only whether there was one.
                given = ours[name.removesuffix("_given")]
                assert item is (given is not None), f"{where}.{name}: {given!r}"
            elif name in ours or item is not None:
                same(ours[name], item, f"{where}.{name}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for index, item in enumerate(theirs):
            same(ours[index], item, f"{where}[{index}]")
    elif isinstance(theirs, float) and ours is not None:
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9), f"{where}: {ours} is not {theirs}"
    else:
        assert ours == theirs, f"{where}: {ours} is not {theirs}"


def test_every_figure_of_a_report_is_that_of_the_released_service(figures: Figures, shared: Path | None) -> None:
    for golden in goldens(shared):
        for side in ("baseline", "candidate"):
            report, expected = figures(golden, side).report, golden[side]["report"]
            where = f"{golden['scenario']}.{side}"
            same([flat(row) for row in report.summary.targets], expected["summary"]["targets"], f"{where}.targets")
            same([flat(row) for row in report.benchmarks], expected["benchmarks"], f"{where}.benchmarks")
            same(
                flat(report.summary)["total_spend_usd"], expected["summary"]["total_spend_usd"], f"{where}.total_spend_usd"
            )
            same(asdict(report.failure) if report.failure else None, expected["failure"], f"{where}.failure")


def test_every_figure_of_a_comparison_is_that_of_the_released_service(figures: Figures, shared: Path | None) -> None:
    for golden in goldens(shared):
        made, expected = compare(figures(golden, "baseline"), figures(golden, "candidate")), golden["compare"]
        ours = flat(made)
        for side in ("baseline_targets", "candidate_targets"):
            ours[side] = [flat(row) for row in getattr(made, side)]
        ours["comparisons"] = [flat(row) for row in made.comparisons]
        same(ours, expected, f"{golden['scenario']}.compare")
