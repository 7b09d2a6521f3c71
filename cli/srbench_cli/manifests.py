"""Reading the documents that people write: manifests, target files, dataset manifests."""

from __future__ import annotations

import sys
from pathlib import Path

from srbench_kit.documents import decode_utf8, load_json, load_yaml
from srbench_kit.errors import InvalidInput
from srbench_kit.given_files import read_given
from srbench_kit.values import Json

MAX_BYTES = 48 * 1024 * 1024
SUFFIXES = (".json", ".yaml", ".yml", ".jsonl")


def read_document(name: str) -> Json:
    """The document in the file `name`, or on stdin for `-`. JSON Lines of more than one line are a list.

    Raises: `InvalidInput` (`NO_SUCH_FILE`, `NOT_A_FILE`, `BAD_SUFFIX`, `TOO_LARGE`, and those of `srbench_kit.documents`).
    """
    if name == "-":
        return _parse_stdin(_limited(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin"))
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            "BAD_SUFFIX", f"{name} ends in {suffix or 'nothing'!r}; expected {', '.join(SUFFIXES)}", value=name
        )
    data = _limited(read_given(path, MAX_BYTES), name)
    if suffix == ".jsonl":
        return _parse_lines(data, name)
    return load_json(data, name) if suffix == ".json" else load_yaml(data, name)


def _limited(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise InvalidInput("TOO_LARGE", f"{name} is larger than {MAX_BYTES} bytes; bind a dataset by its path instead")
    return data


def _parse_stdin(data: bytes) -> Json:
    text = decode_utf8(data, "stdin")
    return load_json(text, "stdin") if text.lstrip()[:1] in ("{", "[", "") else load_yaml(text, "stdin")


def _parse_lines(data: bytes, name: str) -> Json:
    lines = decode_utf8(data, name).split("\n")
    rows: list[Json] = [load_json(line, f"{name}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    return rows[0] if len(rows) == 1 else rows


def read_manifest(name: str, directory: Path) -> dict[str, Json]:
    """A manifest, its `dataset.path` made absolute against the manifest's own folder (`directory` for stdin).

    Raises: `InvalidInput` (`BAD_MANIFEST`, and those of `read_document`).
    """
    document = read_document(name)
    if not isinstance(document, dict):
        found = "a list" if isinstance(document, list) else type(document).__name__
        raise InvalidInput("BAD_MANIFEST", f"the manifest {name} is {found}; expected an object")
    # What `plan` prints holds the frozen manifest; it can be given back as it is.
    inner = document.get("manifest")
    if isinstance(inner, dict) and "plan_sha256" in document:
        document = inner
    folder = directory if name == "-" else (directory / name).parent
    dataset = document.get("dataset")
    if isinstance(dataset, dict) and isinstance(dataset.get("path"), str) and dataset["path"]:
        path = str((folder / Path(str(dataset["path"])).expanduser()).absolute())
        document = document | {"dataset": dataset | {"path": path}}
    return document
