"""Files from outside: opened without following links, bounded, hashed, and seen to stay as they were."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from srbench_kit.errors import DataLoss, InvalidInput, NotFound, SrBenchError

MAX_FILE_BYTES = 2 * 1024**3
MAX_ROW_BYTES = 128 * 1024**2
MAX_ROWS = 50_000
_CHUNK = 1 << 20


@contextmanager
def open_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> Iterator[BinaryIO]:
    """`path` open for reading; the same bytes throughout, or an error at the end.

    Raises: `NotFound` (`NO_SUCH_FILE`), `InvalidInput` (`NOT_A_FILE`, `FILE_TOO_LARGE`), `DataLoss` (`FILE_CHANGED`).
    """
    try:
        # O_NONBLOCK: a pipe must not hang us before it is refused.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound("NO_SUCH_FILE", f"there is no file {path}", path=path) from None
    except OSError as error:
        raise _refused(path, error) from None
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        # Before Python makes a file of it, which a folder cannot be.
        os.close(descriptor)
        raise InvalidInput("NOT_A_FILE", f"{path} is not a regular file", path=path)
    with open(descriptor, "rb") as file:
        if before.st_size > max_bytes:
            raise InvalidInput(
                "FILE_TOO_LARGE", f"{path} has {before.st_size} bytes; expected at most {max_bytes}", path=path
            )
        yield file
        if stamp(before) != stamp(os.fstat(descriptor)):
            raise DataLoss("FILE_CHANGED", f"{path} changed while it was read", path=path)


def _refused(path: Path, error: OSError) -> SrBenchError:
    if os.path.islink(path):  # which, unlike the path's own method, takes a name that is too long
        return InvalidInput("SYMLINK", f"{path} is a symbolic link; expected the file itself", path=path)
    return InvalidInput("NOT_READABLE", f"{path} cannot be read: {os.strerror(error.errno or 0)}", path=path)


def stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    """What tells one state of a file from another: device, inode, size, time of change."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def sha256_of(path: Path) -> str:
    """SHA-256 of a regular file."""
    total = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def lines_of(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines of `file`, parted by LF alone: U+2028 and its like belong to the text.

    Raises: `InvalidInput` (`ROW_TOO_LARGE`, `TOO_MANY_ROWS`).
    """
    count = 0
    while line := file.readline(MAX_ROW_BYTES + 1):
        count += 1
        if len(line) > MAX_ROW_BYTES:
            raise InvalidInput("ROW_TOO_LARGE", f"line {count} of {name} is longer than {MAX_ROW_BYTES} bytes", row=count)
        if count > MAX_ROWS:
            raise too_many_rows(name)
        yield line


def too_many_rows(name: str) -> InvalidInput:
    """The error for a source with more rows than are read."""
    return InvalidInput("TOO_MANY_ROWS", f"{name} has more than {MAX_ROWS} rows", name=name)


def make_private(path: Path) -> None:
    """Makes a directory that only its owner may enter; missing ones above it are made, too."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def write_private(path: Path, data: bytes) -> None:
    """Writes a new file that only its owner may read; durable on return, gone when that fails."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink()
            raise
