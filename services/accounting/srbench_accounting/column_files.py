"""Columns of large runs on disk, beside the database that they are read from: a file a column, mapped into memory, so that
the first look at a run after a start costs no more than a later one.

Nothing here is a fact. What is missing, damaged or of another ledger is read from the tables again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from srbench_kit.durable import write_whole

Ints: TypeAlias = NDArray[np.int64]
# What the ledger itself says of a row of a run, by its place from 1; kept to tell whether files and ledger belong together.
Witness: TypeAlias = Callable[[int], Sequence[int]]
# Which rows of some columns may still change by themselves.
MayChange: TypeAlias = Callable[[Sequence[Ints]], NDArray[np.bool_]]
_FORMAT = 1
_MANIFEST, _LOCK = "manifest.json", "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The first rows of a run as they were at one moment; a line a column.

    Attributes:
        open_places, open_values: the rows that could still change then, and those that a process was writing over when it
            died, copied. Another process may write over them, and over no other, while the files are mapped.
    """

    rows: int
    moment: tuple[int, ...]
    columns: tuple[Ints, ...]
    open_places: Ints
    open_values: Ints


class ColumnFiles:
    """The files of one kind of list. Several processes may share the folder: one of them writes at a time."""

    def __init__(self, folder: Path, kind: str, names: Sequence[str]) -> None:
        self._folder, self._kind, self._names = folder, kind, tuple(names)

    def read(self, run_no: int, witness: Witness, may_change: MayChange) -> Saved | None:
        """What is saved of a run; `None` when there is nothing, or nothing that the ledger's own rows agree with."""
        place = self._place(run_no)
        if not self._rows(place):
            return None
        with open(self._folder / _LOCK, "w") as lock:
            # Nobody writes meanwhile: all columns are of the manifest's moment.
            fcntl.flock(lock, fcntl.LOCK_SH)
            rows = self._rows(place)
            paths = [self._path(place, name) for name in self._names]
            if not rows or any(not path.exists() or path.stat().st_size < rows * 8 for path in paths):
                return None
            manifest = _manifest(place)
            if manifest["witness"] == list(witness(rows)):
                unsure = np.array(manifest.get("unsure", ()), dtype=np.int64)
                return _mapped(paths, rows, manifest["moment"], unsure, may_change)
        self._forget(place)
        return None

    def moment(self, run_no: int) -> tuple[int, ...] | None:
        """As of when a run is saved; `None` when nothing is."""
        place = self._place(run_no)
        return tuple(_manifest(place)["moment"]) if self._rows(place) else None

    def write(
        self,
        run_no: int,
        columns: Sequence[Ints],
        *,
        base: tuple[int, ...] | None,
        changed: Ints,
        moment: Sequence[int],
        witness: Sequence[int],
    ) -> bool:
        """Writes the rows after those saved as of `base`, and of these the ones that `changed` since, by place from 0;
        durable before they count.

        `False` when another process writes, or has written since `base`. Raises: `OSError`.
        """
        place = self._place(run_no)
        with self._alone() as alone:
            if not alone:
                return False
            have, rows = self._rows(place), len(columns[0])
            if self.moment(run_no) != base:
                return False
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            over = changed[changed < have]
            if len(over):
                # These are written over, one column after another: who dies in between leaves a row of which one column
                # says that it has ended, and the next not yet what it cost.
                unsure = {*_manifest(place).get("unsure", ()), *over.tolist()}
                write_whole(place / _MANIFEST, json.dumps(_manifest(place) | {"unsure": sorted(unsure)}).encode())
            for name, column in zip(self._names, columns, strict=True):
                _write(self._path(place, name), column, have, over)
            content = {"format": _FORMAT, "names": list(self._names), "rows": rows}
            write_whole(
                place / _MANIFEST, json.dumps(content | {"moment": list(moment), "witness": list(witness)}).encode()
            )
        return True

    def _forget(self, place: Path) -> None:
        """Deletes what another ledger left. Whoever has it mapped keeps what it has."""
        with self._alone() as alone:
            if alone:
                shutil.rmtree(place)

    def _rows(self, place: Path) -> int:
        """How many rows are saved in our form."""
        manifest = _manifest(place)
        return int(manifest["rows"]) if manifest.get("names") == list(self._names) else 0

    def _place(self, run_no: int) -> Path:
        return self._folder / f"{run_no}-{self._kind}"

    def _path(self, place: Path, name: str) -> Path:
        return place / f"{name}.i64"

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process may write now; it may until the block ends."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._folder / _LOCK, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def _mapped(paths: Sequence[Path], rows: int, moment: Sequence[int], unsure: Ints, may_change: MayChange) -> Saved:
    columns = tuple(np.asarray(np.memmap(path, dtype=np.int64, mode="r", shape=(rows,))) for path in paths)
    places = np.union1d(np.flatnonzero(may_change(columns)), unsure)
    values = np.array([column[places] for column in columns], dtype=np.int64)
    return Saved(rows=rows, moment=tuple(moment), columns=columns, open_places=places, open_values=values)


def _manifest(place: Path) -> dict[str, Any]:
    try:
        found = json.loads((place / _MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == _FORMAT else {}


def _write(path: Path, column: Ints, first: int, changed: Ints) -> None:
    """Makes a file hold the whole column, of which it holds the rows before `first` up to those that changed."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        for row in changed.tolist():
            file.seek(row * 8)
            file.write(column[row].tobytes())
        file.seek(first * 8)
        file.write(np.ascontiguousarray(column[first:]).data)
        # Whatever a process left behind that died before it counted. Nothing that somebody has mapped is ever cut off.
        file.truncate()
        file.flush()
        os.fdatasync(file.fileno())
