"""Rows as a file: CSV, JSON or Parquet. Unknown is empty or null, never 0."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import BytesIO, StringIO

from srbench_kit.spreadsheets import plain
from srbench_kit.values import Json

FORMATS = ("csv", "json", "parquet")
MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
Row = dict[str, Json]
# Kind (`text`, `json`, `flag`, `number`) by name of column, in order.
Kinds = Mapping[str, str]


def encode(rows: Sequence[Row], kinds: Kinds, chosen: str, document: Mapping[str, Json]) -> bytes:
    """The file. `chosen` is one of `FORMATS`; `document` is what a file of kind JSON holds."""
    if chosen == "json":
        return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
    return _csv(rows, kinds) if chosen == "csv" else _parquet(rows, kinds)


def _csv(rows: Sequence[Row], kinds: Kinds) -> bytes:
    text = StringIO()
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
    return plain(text)


def _parquet(rows: Sequence[Row], kinds: Kinds) -> bytes:
    # Only who asks for Parquet waits for the import.
    import pyarrow as pa
    from pyarrow import parquet

    types = {"text": pa.string(), "json": pa.string(), "flag": pa.bool_(), "number": pa.float64()}
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
