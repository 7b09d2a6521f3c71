"""Files that somebody named on a command line."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from srbench_kit.errors import InvalidInput


def open_given(path: Path) -> BinaryIO:
    """The regular file `path`, open for reading; links are followed.

    Raises: `InvalidInput` (`NO_SUCH_FILE`, `NOT_A_FILE`).
    """
    try:
        # Without it a pipe that nobody writes into would hang us before it is refused.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(path, error) from None
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return open(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise _unreadable(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    raise InvalidInput("NOT_A_FILE", f"{path} is a pipe or a device; expected a regular file", value=path)


def read_given(path: Path, most: int | None = None) -> bytes:
    """The content of `path`, and no more than one byte beyond `most`. Raises: as `open_given`."""
    with open_given(path) as file:
        try:
            return file.read() if most is None else file.read(most + 1)
        except OSError as error:
            raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput("NO_SUCH_FILE", f"{path} cannot be read: {error.strerror}", value=path)
