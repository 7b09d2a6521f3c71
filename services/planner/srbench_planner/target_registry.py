"""The operator's targets: `targets.json` in the store, replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from srbench_kit import documents
from srbench_kit.errors import InvalidInput
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json

from srbench_planner import checks, targets


def parse(document: Json) -> list[dict[str, Json]]:
    """The canonical targets of a registry document: a list, or an object with `targets`.

    Raises: `InvalidInput` (`BAD_TARGET`, `UNKNOWN_FIELD`, `DUPLICATE_TARGET` and those of `targets.freeze_target`).
    """
    if isinstance(document, dict):
        checks.known_keys(document, ("targets",), "")
        document = document.get("targets")
    if not isinstance(document, list):
        raise InvalidInput("BAD_TARGET", "the document is no list of targets; expected a list or an object with targets")
    parsed = [targets.freeze_target(item, f"targets[{index}]") for index, item in enumerate(document)]
    targets.unique_ids(parsed, "targets")
    return parsed


class TargetRegistry:
    """Reads and replaces the registry and reads the operator's benchmark options beside it."""

    def __init__(self, store: Path) -> None:
        self._path = store / "targets.json"
        self._options_path = store / "benchmark-options.json"

    def load(self) -> list[dict[str, Json]]:
        """The registered targets in order; none when nothing was registered. Raises: `InvalidInput`."""
        document = _read(self._path)
        return [] if document is None else parse(document)

    def replace(self, document: Json) -> list[dict[str, Json]]:
        """Makes `document` the registry. Nothing changes when any target is invalid."""
        parsed = parse(document)
        text = json.dumps({"targets": parsed}, ensure_ascii=False, indent=2) + "\n"
        write_whole(self._path, text.encode())
        return parsed

    def benchmark_options(self) -> dict[str, Json]:
        """The operator's benchmark options by benchmark; none when the file is absent."""
        document = _read(self._options_path)
        return {} if document is None else checks.obj(document, self._options_path.name)


def _read(path: Path) -> Json:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return documents.load_json(data, path.name)


def write_whole(path: Path, data: bytes) -> None:
    """Replaces the file at `path` so that readers see the old or the new bytes, and a crash leaves one of the two."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{uuid7_hex()}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
