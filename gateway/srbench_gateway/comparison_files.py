"""Comparisons as rows of a file, a row a candidate target. Each interval says in its name which one it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from srbench_kit.values import Json

from srbench_gateway.table_files import Row

_INTERVALS = {
    "adaptive_ci95": "quality_delta_adaptive_ci95",
    "hoeffding_ci95": "quality_delta_ci95",
    "bootstrap_ci95": "quality_delta_bootstrap_ci95",
}
# The interval that verdicts go by: adaptive, at an error level that pays for every single model and candidate.
_BAND = "verdict_interval"
_PLAIN = {
    **dict.fromkeys(("wins", "losses", "ties"), "number"),
    **dict.fromkeys(("mcnemar_p", "mcnemar_p_holm"), "number"),
    **dict.fromkeys(
        (
            *("baseline_subject_cost_usd", "candidate_subject_cost_usd", "subject_cost_saving_percent"),
            *("baseline_evaluation_cost_usd", "candidate_evaluation_cost_usd"),
            *("baseline_total_cost_usd", "candidate_total_cost_usd", "total_cost_saving_percent"),
        ),
        "number",
    ),
    "total_cost_comparison_reason": "text",
    "cache_neutral_cost_saving_percent": "number",
}
_NAMES = ("baseline_run_id", "baseline_target_id", "candidate_run_id", "candidate_target_id")


def columns() -> dict[str, str]:
    """Kind by name of column, in order."""
    ends = {f"quality_delta_{name}_{end}": "number" for name in (*_INTERVALS, _BAND) for end in ("low", "high")}
    names = dict.fromkeys(_NAMES, "text") | {"paired_cases": "number", "verdict": "text", "quality_delta": "number"}
    return names | ends | _PLAIN


def rows(report: Mapping[str, Json]) -> Iterator[Row]:
    """The rows of a comparison as the API shows it."""
    found = report["comparisons"]
    assert isinstance(found, list)
    for one in found:
        assert isinstance(one, dict)
        made: Row = {"baseline_run_id": report["baseline_run_id"]}
        for name, field in _INTERVALS.items():
            made |= _ends(name, one[field])
        made |= _ends(_BAND, _band(one))
        yield made | {name: one[name] for name in columns() if name not in made}


def _band(one: Mapping[str, Json]) -> Json:
    band = one["band"]
    singles = band["singles"] if isinstance(band, dict) else []
    assert isinstance(singles, list)
    own = (single for single in singles if isinstance(single, dict) and single["target_id"] == one["baseline_target_id"])
    return next((single["interval"] for single in own), None)


def _ends(name: str, interval: Json) -> Row:
    low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
    return {f"quality_delta_{name}_low": low, f"quality_delta_{name}_high": high}
