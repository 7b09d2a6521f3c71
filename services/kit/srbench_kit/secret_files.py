"""Secrets as files: what an orchestrator mounts, read into the process's environment before anything else looks there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from srbench_kit.errors import EXIT_CODES, InvalidInput

VARIABLE = "SR_BENCH_SECRETS_DIR"
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
MAX_BYTES = 64 * 1024


def read() -> None:
    """Sets a variable for each file in the folder that `SR_BENCH_SECRETS_DIR` names, unless it is set already.

    A file's name is the variable's; files whose names are no variables are left alone, such as keys of TLS. A line feed at
    the end does not belong to the value. Raises: `InvalidInput` (`BAD_SECRET`), which never shows a value.
    """
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        return
    try:
        paths = sorted(Path(folder).iterdir())
    except OSError as error:
        raise InvalidInput("BAD_SECRET", f"{VARIABLE} is {folder!r}: {error.strerror}", field=VARIABLE) from None
    for path in paths:
        if _NAME.match(path.name) and path.is_file():
            os.environ.setdefault(path.name, _value(path))


def read_or_exit(process: str) -> None:
    """As `read`, for the first line of a process: says what is wrong and ends it."""
    try:
        read()
    except InvalidInput as error:
        print(f"{process}: {error.message} ({error.reason})", file=sys.stderr)
        raise SystemExit(EXIT_CODES[error.kind]) from None


def _value(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInput("BAD_SECRET", f"the secret {path.name} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES or b"\0" in data:
        raise InvalidInput("BAD_SECRET", f"the secret {path.name} is no text of at most {MAX_BYTES} bytes")
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidInput("BAD_SECRET", f"the secret {path.name} is no UTF-8 text") from None
