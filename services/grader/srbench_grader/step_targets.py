"""The numeric targets of SciCode: one HDF5 file, known by its SHA-256. Read outside of every sandbox that runs answers."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from srbench_kit.errors import DataLoss, InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_grader.sandbox.selection import home

VARIABLE = "SR_BENCH_SCICODE_TEST_DATA"
OPTION = "test_data_sha256"
# Of upstream's own file; a plan that is graded by another one says so in its options.
SHA256 = "48b0272a88b17dbd29777c217e1b4fb2b019b92e11cc2add847409db9541b890"
REMEDY = f"set {VARIABLE} to the file test_data.h5, or run sr-bench setup --benchmark scicode --install"
# Digests of files that were read once, by all that changes when a file does.
_known: dict[tuple[str, int, int, int, int], str] = {}


def path() -> Path:
    """Where the file is looked for: `SR_BENCH_SCICODE_TEST_DATA`, else the cache."""
    named = os.environ.get(VARIABLE, "")
    return Path(named) if named else home() / "scicode" / "test_data.h5"


def verified(options: Mapping[str, Json]) -> Path:
    """The file, once its bytes are known to be those that the options (or else upstream) name. Blocking.

    Raises: `NotFound` (`NO_TEST_DATA`), `DataLoss` (`BAD_TEST_DATA`), `InvalidInput` (`BAD_OPTION`).
    """
    wanted = options.get(OPTION) or SHA256
    if not isinstance(wanted, str):
        raise InvalidInput("BAD_OPTION", f"{OPTION} is {wanted!r}; expected 64 hex digits")
    file = path()
    try:
        found = file_sha256(file)
    except OSError as error:
        raise NotFound("NO_TEST_DATA", f"the test data {file} cannot be read: {error.strerror}") from error
    if found != wanted:
        sentence = f"the test data {file} has the SHA-256 {found}; expected {wanted}"
        raise DataLoss("BAD_TEST_DATA", sentence)
    return file


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file; one that has not changed since it was read is not read again. Raises: `OSError`."""
    state = file.stat()
    key = (str(file), state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    if key not in _known:
        with file.open("rb") as data:
            _known[key] = hashlib.file_digest(data, "sha256").hexdigest()
    return _known[key]


def extracts(file: Path, steps: Iterable[str]) -> dict[str, bytes]:
    """For each of `steps` a small HDF5 file with its targets alone. Blocking.

    Raises: `DataLoss` (`BAD_TEST_DATA`) when a step has none.
    """
    import h5py

    found: dict[str, bytes] = {}
    with h5py.File(file, "r") as source:
        for step in steps:
            if step not in source:
                raise DataLoss("BAD_TEST_DATA", f"the test data {file} has no targets for step {step}")
            kept = io.BytesIO()
            with h5py.File(kept, "w") as target:
                source.copy(step, target, name=step)
            found[step] = kept.getvalue()
    return found
