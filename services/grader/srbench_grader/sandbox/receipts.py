"""Receipts of what setup made: written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from srbench_kit import durable
from srbench_kit.errors import Exhausted, Unreachable
from srbench_kit.values import Json

# Graders of other users read them.
PUBLIC = 0o644


def write(path: Path, receipt: Mapping[str, Json] | str) -> None:
    """Puts `receipt` at `path`. Raises: `Exhausted` (`NO_SPACE`), `Unreachable` (`NOT_WRITABLE`)."""
    text = receipt if isinstance(receipt, str) else json.dumps(receipt, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.write_whole(path, text.encode(), PUBLIC)
    except OSError as error:
        raise not_written(path, error) from error


def not_written(path: Path, error: OSError) -> Exhausted | Unreachable:
    """The error for a file that cannot be written."""
    if error.errno in (28, 122):
        return Exhausted("NO_SPACE", f"the disk is full while {path} is written; free some space and run setup again")
    return Unreachable("NOT_WRITABLE", f"{path} cannot be written: {error.strerror}; set SR_BENCH_HOME to another folder")
