"""An export as a file: JSON case by case, or Parquet with a row a case and target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from srbench.v1 import comparison_pb2 as pb

from srbench_kit.jsonview import to_json
from srbench_kit.values import Json, from_value, object_of

FORMATS = ("json", "parquet")
MEDIA_TYPES = {"json": "application/json", "parquet": "application/vnd.apache.parquet"}
# Rows gathered before a row group is written.
_GROUP_ROWS = 5000
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


def json_chunks(parts: Iterable[pb.ExportPart]) -> Iterator[bytes]:
    """The export as one JSON document, in pieces. The parts come header first."""
    writer = JsonWriter()
    for part in parts:
        yield writer.add(part)
    yield writer.end()


class JsonWriter:
    """Makes the JSON document piece by piece, so that it is never whole in memory."""

    def __init__(self) -> None:
        self._case_count = 0

    def add(self, part: pb.ExportPart) -> bytes:
        """The next piece."""
        if part.HasField("header"):
            head = _text(to_json(part.header))
            return f'{head[:-1]}, "cases": ['.encode()
        self._case_count += 1
        case: dict[str, Json] = {
            **object_of(part.case.content),
            "targets": [to_json(target) for target in part.case.targets],
        }
        return (("" if self._case_count == 1 else ",") + "\n" + _text(case)).encode()

    def end(self) -> bytes:
        """The last piece."""
        return b"]}\n"


class ParquetWriter:
    """Makes the Parquet file. An unknown figure is null; cases and answers are JSON texts; the header is metadata."""

    def __init__(self) -> None:
        # Only who asks for Parquet waits for the import.
        import pyarrow as pa
        from pyarrow import parquet

        self._pa, self._parquet = pa, parquet
        self._buffer = BytesIO()
        self._rows: list[dict[str, Any]] = []
        self._writer: Any = None
        self._schema: Any = None

    def add(self, part: pb.ExportPart) -> None:
        """Takes the next part."""
        if part.HasField("header"):
            metadata = {"sr-bench": _text(to_json(part.header))}
            self._schema = self._pa.schema(_columns(self._pa), metadata=metadata)
            self._writer = self._parquet.ParquetWriter(self._buffer, self._schema, compression="zstd")
            return
        self._rows += _rows(part.case)
        if len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def end(self) -> bytes:
        """The whole file."""
        self._flush()
        self._writer.close()
        return self._buffer.getvalue()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def _columns(pa: Any) -> list[tuple[str, Any]]:
    text, whole, part = pa.string(), pa.int64(), pa.float64()
    return [
        *((name, text) for name in ("case_id", "benchmark", "stratum", "case", "target_id", "model", "kind")),
        *((name, text) for name in ("request_params", "answer", "final")),
        ("correct", pa.bool_()),
        ("score", part),
        *((name, whole) for name in _BUCKETS),
        ("cost_picodollars", whole),
        ("cost_usd", part),
        ("subject_latency_s", part),
    ]


def _rows(case: pb.ExportCase) -> Iterator[dict[str, Any]]:
    content = object_of(case.content)
    metadata = content.get("metadata")
    stratum = metadata.get("stratum") if isinstance(metadata, dict) else None
    whole = _text(content)
    for target in case.targets:
        usage = target.usage
        yield {
            "case_id": content.get("id"),
            "benchmark": content.get("benchmark"),
            "stratum": stratum if isinstance(stratum, str) else None,
            "case": whole,
            "target_id": target.id,
            "model": target.model,
            "kind": target.kind,
            "request_params": _text(from_value(target.request_params)),
            "answer": _text(from_value(target.answer)),
            "final": _optional(target, "final"),
            "correct": _optional(target, "correct"),
            "score": _optional(target, "score"),
            **{name: _optional(usage, name) for name in _BUCKETS},
            "cost_picodollars": _optional(target, "cost_picodollars"),
            "cost_usd": to_json(target)["cost_usd"],
            "subject_latency_s": _optional(target, "subject_latency_s"),
        }


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
