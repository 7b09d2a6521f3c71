"""The questions of a comparison as rows of a file, a row a question."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit.values import Json

from srbench_gateway.table_files import Row

_SIDE = (
    *(("status", "text"), ("reason", "text"), ("correct", "flag"), ("answer", "json"), ("model", "text")),
    *(("decision", "text"), ("cost_usd", "number"), ("latency_s", "number"), ("call_id", "text")),
)


def columns() -> dict[str, str]:
    """Kind (`text`, `json`, `flag`, `number`) by name of column, in order."""
    sides = {f"{side}_{name}": kind for side in ("baseline", "candidate") for name, kind in _SIDE}
    texts = dict.fromkeys(
        ("baseline_run_id", "baseline_target_id", "candidate_run_id", "candidate_target_id"), "text"
    ) | dict.fromkeys(("case_id", "benchmark", "stratum", "outcome"), "text")
    return texts | sides | {"cost_delta_usd": "number", "latency_delta_s": "number"}


def row(pair: Mapping[str, Json], sides: Mapping[str, Json]) -> Row:
    """One pair, as the API shows it, as a row; `sides` are the run and target ids."""
    found: Row = dict(sides)
    found |= {name: pair[name] for name in ("case_id", "benchmark", "stratum", "outcome")}
    for side in ("baseline", "candidate"):
        shown = pair[side]
        assert isinstance(shown, dict)
        found |= {f"{side}_{name}": shown[name] for name, _ in _SIDE}
    return found | {name: pair[name] for name in ("cost_delta_usd", "latency_delta_s")}
