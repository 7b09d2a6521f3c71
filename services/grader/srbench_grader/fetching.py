"""Fetches one large file over HTTP: goes on where it stopped, and nothing has its name before its SHA-256 is right."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import httpx
from srbench_kit.errors import DataLoss, Unreachable

from srbench_grader.sandbox.receipts import not_written

ATTEMPTS = 5
TIMEOUT_S = 30.0


def fetch(url: str, path: Path, sha256: str, mend: str, pause_s: float = 1.0) -> None:
    """Puts the file at `url` at `path`. `mend` is what messages tell the user to do instead.

    Raises: `Unreachable` (`SOURCE_UNREACHABLE`, `NOT_WRITABLE`), `DataLoss` (`BAD_TEST_DATA`), `Exhausted` (`NO_SPACE`).
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _with_retries(url, part, mend, pause_s)
        with part.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            part.unlink()
            raise DataLoss("BAD_TEST_DATA", f"{url} has the SHA-256 {found}; expected {sha256}; {mend}")
        os.replace(part, path)
    except OSError as error:
        raise not_written(path, error) from error


def _with_retries(url: str, part: Path, mend: str, pause_s: float) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(url, part)
            return
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            problem = f"status {status}"
            if status < 500 and status != 429:
                break
        except httpx.HTTPError as error:
            problem = type(error).__name__
        if attempt < ATTEMPTS:
            time.sleep(pause_s * 2 ** (attempt - 1))
    raise Unreachable("SOURCE_UNREACHABLE", f"{url} could not be fetched: {problem}; {mend}")


def _append(url: str, part: Path) -> None:
    """Fetches what `part` does not hold yet. Raises: `httpx.HTTPError`, `OSError`."""
    held = part.stat().st_size if part.exists() else 0
    headers = {"accept-encoding": "identity"} | ({"range": f"bytes={held}-"} if held else {})
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=TIMEOUT_S) as response:
        if response.status_code == 416:
            # All of it is there already; its digest will tell.
            return
        response.raise_for_status()
        with part.open("ab" if response.status_code == 206 else "wb") as file:
            for piece in response.iter_raw():
                file.write(piece)
