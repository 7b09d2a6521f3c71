"""The questions of a comparison as a file: CSV, JSON or Parquet, a row a question. Unknown is empty or null, never 0."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import BytesIO, StringIO

from srbench_kit.values import Json

FORMATS = ("csv", "json", "parquet")
MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
_SIDE = (
    *(("status", "text"), ("reason", "text"), ("correct", "flag"), ("answer", "json"), ("model", "text")),
    *(("decision", "text"), ("cost_usd", "number"), ("latency_s", "number"), ("call_id", "text")),
)
# A cell that begins so is taken for a formula by spreadsheets.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Row = dict[str, Json]


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


def encode(rows: Sequence[Row], chosen: str) -> bytes:
    """The file. `chosen` is one of `FORMATS`."""
    if chosen == "csv":
        return _csv(rows)
    if chosen == "json":
        return (json.dumps({"version": "sr-bench-1.0", "pairs": list(rows)}, ensure_ascii=False, indent=1) + "\n").encode()
    return _parquet(rows)


def _csv(rows: Sequence[Row]) -> bytes:
    kinds, text = columns(), StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(kinds)
    for item in rows:
        writer.writerow([_cell(item[name], kind) for name, kind in kinds.items()])
    # With the mark, spreadsheets read it as UTF-8.
    return b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Json, kind: str) -> str:
    if value is None:
        return ""
    if kind == "flag":
        return "true" if value else "false"
    if kind == "number":
        return repr(value)
    text = value if isinstance(value, str) else _text(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _parquet(rows: Sequence[Row]) -> bytes:
    # Only who asks for Parquet waits for the import.
    import pyarrow as pa
    from pyarrow import parquet

    types = {"text": pa.string(), "json": pa.string(), "flag": pa.bool_(), "number": pa.float64()}
    kinds = columns()
    arrays = [pa.array([_value(item[name], kind) for item in rows], type=types[kind]) for name, kind in kinds.items()]
    buffer = BytesIO()
    parquet.write_table(pa.table(arrays, names=list(kinds)), buffer, compression="zstd")
    return buffer.getvalue()


def _value(value: Json, kind: str) -> Json:
    if value is None:
        return None
    if kind == "number":
        return float(value) if isinstance(value, int | float) else None
    return _text(value) if kind == "json" else value


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
