"""Files of rows: Parquet, CSV, JSON lines, JSON, and folders of JSON tasks. A row that cannot be read says why."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from srbench_kit.documents import load_json
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner.benchmark import Row
from srbench_planner.files import MAX_FILE_BYTES, MAX_ROW_BYTES, MAX_ROWS, lines_of, open_regular, too_many_rows

SUFFIXES = (".parquet", ".csv", ".jsonl", ".json")


def read_rows(path: Path, name: str) -> Iterator[Row]:
    """The rows of one file, by the ending of `name`.

    Raises: `InvalidInput` (`BAD_SOURCE`, `BAD_PARQUET`, `BAD_CSV`, `BAD_JSON`, the bounds of `files`).
    """
    suffix = Path(name).suffix.lower()
    readers = {".parquet": _parquet, ".csv": _csv, ".jsonl": _json_lines, ".json": _json_document}
    if suffix not in readers:
        raise InvalidInput(
            "BAD_SOURCE", f"{name} ends in {suffix or 'nothing'!r}; expected {', '.join(SUFFIXES)}", value=name
        )
    with open_regular(path) as file:
        _check_content(file, name)
        yield from readers[suffix](file, name)


def _check_content(file: BinaryIO, name: str) -> None:
    """Refuses what a transfer left in place of the file. Raises: `InvalidInput` (`BAD_SOURCE`)."""
    head = file.read(64).lstrip().lower()
    file.seek(0)
    if head.startswith(b"version https://git-lfs"):
        message = f"{name} is a pointer of Git LFS, not the file that it points to; git lfs pull fetches that"
    elif head.startswith((b"<!doctype html", b"<html")):
        message = f"{name} is a web page, perhaps an error of the server that it was fetched from; fetch the file again"
    else:
        return
    raise InvalidInput("BAD_SOURCE", message, value=name)


def read_task_files(files: Iterable[tuple[str, Path]]) -> Iterator[Row]:
    """One row a file, identified by the file's stem."""
    for position, (name, path) in enumerate(files):
        if position >= MAX_ROWS:
            raise too_many_rows("the folder")
        with open_regular(path, MAX_ROW_BYTES) as file:
            data = file.read()
        row = _parsed(position, name, data, name)
        yield replace(row, values={"id": Path(name).stem} | dict(row.values)) if not row.problem else row


def rows_by_id(tasks: Json, name: str) -> Iterator[Row]:
    """The rows of an object whose keys are their ids."""
    if not isinstance(tasks, dict):
        raise InvalidInput("BAD_SOURCE", f"{name} holds no object of tasks by id", value=name)
    for position, (key, values) in enumerate(tasks.items()):
        if not isinstance(values, dict):
            yield Row(position=position, where=f"entry {key!r}", problem="it is no JSON object")
            continue
        yield Row(position=position, where=f"entry {key!r}", values={"id": key} | values)


def _parsed(position: int, where: str, data: bytes, name: str) -> Row:
    try:
        return _object(position, where, load_json(data, name))
    except InvalidInput as error:
        return Row(position=position, where=where, problem=error.message)


def _object(position: int, where: str, values: Json) -> Row:
    if not isinstance(values, dict):
        return Row(position=position, where=where, problem="it is no JSON object")
    return Row(position=position, where=where, values=values)


def _json_lines(file: BinaryIO, name: str) -> Iterator[Row]:
    position = 0
    for number, line in enumerate(lines_of(file, name), start=1):
        if line.strip():
            yield _parsed(position, f"line {number}", line, "it")
            position += 1


def _json_document(file: BinaryIO, name: str) -> Iterator[Row]:
    document = load_json(file.read(), name)
    rows = document.get("cases", document) if isinstance(document, dict) else document
    if isinstance(rows, dict):
        yield from rows_by_id(rows, name)
        return
    if not isinstance(rows, list):
        raise InvalidInput("BAD_SOURCE", f"{name} holds no list of rows and no object with `cases`", value=name)
    if len(rows) > MAX_ROWS:
        raise too_many_rows(name)
    for position, values in enumerate(rows):
        yield _object(position, f"row {position + 1}", values)


def _csv(file: BinaryIO, name: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_ROW_BYTES)
    # Line ends inside quotes become LF, as published: identities hash the text.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline=None)
    reader = csv.reader(text, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise InvalidInput("BAD_CSV", f"{name} is empty; expected a header line", value=name)
        twice = sorted({column for column in header if header.count(column) > 1})
        if twice:
            raise InvalidInput("BAD_CSV", f"{name} has the column {twice[0]!r} twice", value=name)
        for position, cells in enumerate(row for row in reader if row):
            if position >= MAX_ROWS:
                raise too_many_rows(name)
            where = f"row {position + 1}"
            if len(cells) != len(header):
                problem = f"it has {len(cells)} cells; expected {len(header)}"
                yield Row(position=position, where=where, problem=problem)
                continue
            yield Row(position=position, where=where, values=dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise InvalidInput(
            "BAD_CSV", f"{name} is no CSV near line {reader.line_num}: {error}", line=reader.line_num
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput("BAD_ENCODING", f"{name} is not UTF-8: {error.reason}") from None
    finally:
        text.detach()


def _parquet(file: BinaryIO, name: str) -> Iterator[Row]:
    # pyarrow takes a quarter of a second to import; only preparations pay for it.
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
        unpacked = sum(opened.metadata.row_group(i).total_byte_size for i in range(opened.metadata.num_row_groups))
        if opened.metadata.num_rows > MAX_ROWS:
            raise too_many_rows(name)
        if unpacked > MAX_FILE_BYTES:
            raise InvalidInput("FILE_TOO_LARGE", f"{name} unpacks to {unpacked} bytes; expected at most {MAX_FILE_BYTES}")
        position = 0
        for batch in opened.iter_batches(batch_size=256):
            for values in batch.to_pylist():
                yield Row(position=position, where=f"row {position + 1}", values=values)
                position += 1
    except (pyarrow.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0][:200]
        raise InvalidInput("BAD_PARQUET", f"{name} cannot be read as Parquet: {first}", value=name) from None
