"""Files of finished cases: read once from end to end against their SHA-256, then page by page by offset."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson
from srbench_kit.documents import load_json
from srbench_kit.errors import DataLoss

from srbench_planner.dataset import Case
from srbench_planner.files import lines_of, open_regular, stamp
from srbench_planner.freezing import stratum_of


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one case lies in its file, and what pages filter by."""

    id: str
    benchmark: str
    category: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class CaseIndex:
    """What one full scan of a case file found.

    Attributes:
        digests: by benchmark, a digest of its lines whatever their order: equal for equal cases.
        state: device, inode, size and time of the file that was scanned.
    """

    entries: tuple[Entry, ...]
    counts: dict[str, int]
    digests: dict[str, str]
    state: tuple[int, int, int, int]


def parse_case(line: bytes, where: str) -> Case:
    """The case on one line. Raises `DataLoss` (`BAD_CASES`)."""
    try:
        case = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Integers beyond 64 bits are JSON that orjson refuses; the strict reader decides.
        case = load_json(line, where)
    if not isinstance(case, dict) or not isinstance(case.get("id"), str) or not isinstance(case.get("benchmark"), str):
        raise DataLoss("BAD_CASES", f"{where} is no case with id and benchmark")
    return cast("Case", case)


def scan(path: Path, sha256: str) -> Iterator[tuple[int, bytes, Case]]:
    """(offset, line, case) of every case in order; blank lines are passed over.

    Raises: `DataLoss` (`DATASET_DAMAGED`) after the last case when the bytes do not match `sha256`; `NotFound`
    (`NO_SUCH_FILE`); `InvalidInput` for links and sizes.
    """
    total = hashlib.sha256()
    offset = 0
    with open_regular(path) as file:
        for number, line in enumerate(lines_of(file, path.name), start=1):
            total.update(line)
            if line.strip():
                yield offset, line, parse_case(line, f"line {number} of {path}")
            offset += len(line)
    if total.hexdigest() != sha256:
        raise DataLoss("DATASET_DAMAGED", f"{path} does not match its SHA-256 {sha256}", path=path)


def read_cases(path: Path, sha256: str) -> list[Case]:
    """All cases of a file, in order, verified. Raises as `scan`, and `DataLoss` (`BAD_CASES`) for a repeated id."""
    cases = [case for _, _, case in scan(path, sha256)]
    if len({case["id"] for case in cases if isinstance(case["id"], str)}) != len(cases):
        raise DataLoss("BAD_CASES", f"{path} holds the same case id twice", path=path)
    return cases


def build_index(path: Path, sha256: str) -> CaseIndex:
    """The index of a case file. Raises as `scan`."""
    state = stamp(path.stat())
    entries: list[Entry] = []
    hashes: dict[str, list[bytes]] = {}
    for offset, line, case in scan(path, sha256):
        benchmark = str(case["benchmark"])
        entries.append(Entry(str(case["id"]), benchmark, stratum_of(case), offset, len(line)))
        hashes.setdefault(benchmark, []).append(hashlib.sha256(line.strip()).digest())
    return CaseIndex(
        entries=tuple(entries),
        counts={benchmark: len(found) for benchmark, found in sorted(hashes.items())},
        digests={name: hashlib.sha256(b"".join(sorted(found))).hexdigest() for name, found in hashes.items()},
        state=state,
    )


def read_at(path: Path, entries: list[Entry]) -> Iterator[Case]:
    """The cases of `entries`, in their order."""
    with open_regular(path) as file:
        for entry in entries:
            file.seek(entry.offset)
            yield parse_case(file.read(entry.length), entry.id)
