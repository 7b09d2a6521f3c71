"""Files that are whole or not there, whatever dies while they are written."""

from __future__ import annotations

import os
from pathlib import Path

from srbench_kit.ids import uuid7_hex

PRIVATE = 0o600


def write_whole(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Makes or replaces the file at `path`: readers see the old or the new bytes, and a crash leaves one of the two.

    Durable on return, with `mode` whatever the process's umask. Missing folders are made, for their owner
    alone. Raises: `OSError`; no part stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{uuid7_hex()}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
