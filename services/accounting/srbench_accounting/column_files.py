"""Columns of large runs on disk, beside the database that they are read from: a file a column, mapped into memory, so that
the first look at a run after a start costs no more than a later one.

Nothing here is a fact. What is missing, damaged or of another ledger is read from the tables again. A column is compared
with its checksum when a process first looks at it, for a look at a list needs few of them.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from srbench_kit.durable import sync_folder, write_whole
from srbench_kit.metrics import Counter

Ints: TypeAlias = NDArray[np.int64]
# What the ledger itself says of a row of a run, by its place from 1; kept to tell whether files and ledger belong together.
Witness: TypeAlias = Callable[[int], Sequence[int]]
# Which rows of some columns may still change by themselves.
MayChange: TypeAlias = Callable[[Sequence[Ints]], NDArray[np.bool_]]
T = TypeVar("T")
_FORMAT = 2
# Without checksums.
_OLD_FORMAT = 1
_MANIFEST, _LOCK = "manifest.json", "lock"
_PIECE = 1 << 20
_DAMAGED = Counter("srbench_damaged_columns", "Files of saved columns that were damaged and made again.", "kind")
_log = logging.getLogger(__name__)


class UnsoundColumns(Exception):
    """Saved columns that somebody looks at are damaged, or not there any more. `until_sound` asks again without them."""


def until_sound(work: Callable[[], T]) -> T:
    """What `work` gives that looks at kept columns: again from the start when saved ones were unsound."""
    while True:
        try:
            return work()
        except UnsoundColumns:
            # The next `KeptColumns.load` forgets them.
            continue


class SavedColumns(Sequence[Ints]):
    """Mapped columns, each compared with its checksum before it is handed out for the first time."""

    def __init__(self, mapped: Sequence[Ints], check: Callable[[int], None]) -> None:
        """`check` raises `UnsoundColumns` for a column that must not be used."""
        self.unchecked = tuple(mapped)
        self.sound = True
        self._check = check
        self._checked: set[int] = set()

    @overload
    def __getitem__(self, line: int) -> Ints: ...
    @overload
    def __getitem__(self, line: slice) -> tuple[Ints, ...]: ...
    def __getitem__(self, line: int | slice) -> Ints | tuple[Ints, ...]:
        """A column, or some. Raises: `UnsoundColumns`."""
        if isinstance(line, slice):
            return tuple(self[one] for one in range(*line.indices(len(self))))
        if line not in self._checked:
            try:
                self._check(line)
            except UnsoundColumns:
                self.sound = False
                raise
            self._checked.add(line)
        return self.unchecked[line]

    def __len__(self) -> int:
        return len(self.unchecked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The first rows of a run as they were at one moment; a line a column.

    Attributes:
        open_places, open_values: the rows that could still change then, copied. Another process may write over them while
            the files are mapped.
    """

    rows: int
    moment: tuple[int, ...]
    columns: SavedColumns
    open_places: Ints
    open_values: Ints


class ColumnFiles:
    """The files of one kind of list. Several processes may share the folder: one of them writes at a time."""

    def __init__(self, folder: Path, kind: str, names: Sequence[str]) -> None:
        self._folder, self._kind, self._names = folder, kind, tuple(names)

    def read(self, run_no: int, witness: Witness, may_change: MayChange) -> Saved | None:
        """What is saved of a run; `None` when there is nothing, or nothing that is whole and that the ledger's own rows
        agree with."""
        place = self._place(run_no)
        if not place.exists():
            return None
        try:
            # Nobody writes meanwhile: all columns are of the manifest's moment.
            with self._locked(fcntl.LOCK_SH):
                manifest = _manifest(place)
                rows = self._rows(manifest)
                if not rows:
                    return None
                if manifest["witness"] == list(witness(rows)):
                    return self._mapped(place, manifest, may_change)
        except UnsoundColumns:
            self.forget_damaged(run_no)
            return None
        self._forget_foreign(place)
        return None

    def forget_damaged(self, run_no: int) -> None:
        """Deletes what is saved of a run if any of it is damaged. Raises: `OSError`."""
        place = self._place(run_no)
        with self._locked(fcntl.LOCK_EX):
            # Another process may have done it, and saved the run anew.
            damaged = self._damaged(place)
            if damaged:
                shutil.rmtree(place)
                _DAMAGED.add(self._kind, amount=len(damaged))
                names = ", ".join(map(str, damaged))
                _log.warning("saved columns are damaged and will be made again from the ledger: %s", names)

    def moment(self, run_no: int) -> tuple[int, ...] | None:
        """As of when a run is saved; `None` when nothing is."""
        manifest = _manifest_if_whole(self._place(run_no))
        return tuple(manifest["moment"]) if self._rows(manifest) else None

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
            if not alone or self.moment(run_no) != base:
                return False
            manifest = _manifest_if_whole(place)
            have, rows = self._rows(manifest), len(columns[0])
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            over = changed[changed < have]
            if len(over):
                # These are written over, one column after another: who dies in between leaves a row of which one column
                # says that it has ended, and the next not yet what it cost. Then nothing is saved.
                (place / _MANIFEST).unlink()
                sync_folder(place)
            digests = manifest["digests"] if have else [0] * len(columns)
            for line, (name, column) in enumerate(zip(self._names, columns, strict=True)):
                _write(self._path(place, name), column, have, over)
                # What was saved is not read for it again, so that what rotted since is not taken for good.
                digests[line] = _crc(column) if len(over) else _crc(column[have:], digests[line])
            content = {"format": _FORMAT, "names": list(self._names), "rows": rows, "digests": digests}
            write_whole(place / _MANIFEST, signed(content | {"moment": list(moment), "witness": list(witness)}))
        return True

    def _mapped(self, place: Path, manifest: dict[str, Any], may_change: MayChange) -> Saved:
        rows, paths = int(manifest["rows"]), [self._path(place, name) for name in self._names]
        mapped = [_map(path, rows) for path in paths]
        nodes = [path.stat().st_ino for path in paths]
        columns = SavedColumns(mapped, lambda line: self._check(place, line, nodes[line]))
        places = np.flatnonzero(may_change(columns))
        # Before they may be written over. Nobody uses them before the column that they lie in was compared.
        values = np.array([column[places] for column in columns.unchecked], dtype=np.int64)
        moment = tuple(manifest["moment"])
        return Saved(rows=rows, moment=moment, columns=columns, open_places=places, open_values=values)

    def _check(self, place: Path, line: int, node: int) -> None:
        """Whether a file that was mapped is what the manifest says now, when it may have been written on. `node` tells it
        from another of its name. Raises: `UnsoundColumns`."""
        with self._locked(fcntl.LOCK_SH):
            manifest, path = _manifest(place), self._path(place, self._names[line])
            if not self._rows(manifest) or not path.exists() or path.stat().st_ino != node:
                raise UnsoundColumns
            if _file_crc(path, manifest["rows"]) != manifest["digests"][line]:
                raise UnsoundColumns

    def _damaged(self, place: Path) -> list[Path]:
        """The files of a saved run that are not what they must be."""
        try:
            manifest = _manifest(place)
        except UnsoundColumns:
            return [place / _MANIFEST]
        rows = self._rows(manifest)
        checked = zip(self._names, manifest["digests"], strict=True) if rows else ()
        paths = [(self._path(place, name), digest) for name, digest in checked]
        return [path for path, digest in paths if _file_crc(path, rows) != digest]

    def _forget_foreign(self, place: Path) -> None:
        """Deletes what another ledger left. Whoever has it mapped keeps what it has."""
        with self._alone() as alone:
            if alone:
                shutil.rmtree(place)

    def _rows(self, manifest: dict[str, Any]) -> int:
        """How many rows are saved in our form."""
        return int(manifest["rows"]) if manifest.get("names") == list(self._names) else 0

    def _place(self, run_no: int) -> Path:
        return self._folder / f"{run_no}-{self._kind}"

    def _path(self, place: Path, name: str) -> Path:
        return place / f"{name}.i64"

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process may write now; it may until the block ends."""
        try:
            with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                yield True
        except BlockingIOError:
            yield False

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._folder / _LOCK, "w") as lock:
            fcntl.flock(lock, how)
            yield


def signed(content: dict[str, Any]) -> bytes:
    """A manifest with its own checksum."""
    return json.dumps(content | {"digest": zlib.crc32(json.dumps(content).encode())}).encode()


def _manifest(place: Path) -> dict[str, Any]:
    """The manifest of a saved run; nothing when there is none, or one of another form. Raises: `UnsoundColumns`."""
    try:
        content = (place / _MANIFEST).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError:
        raise UnsoundColumns from None
    try:
        found = json.loads(content)
    except ValueError:
        raise UnsoundColumns from None
    if not isinstance(found, dict):
        raise UnsoundColumns
    form, digest = found.get("format"), found.pop("digest", None)
    if form != _OLD_FORMAT and digest != zlib.crc32(json.dumps(found).encode()):
        raise UnsoundColumns
    return found if form == _FORMAT else {}


def _manifest_if_whole(place: Path) -> dict[str, Any]:
    """As `_manifest`; nothing for one that is damaged, which is written anew."""
    try:
        return _manifest(place)
    except UnsoundColumns:
        return {}


def _map(path: Path, rows: int) -> Ints:
    """The first rows of a file. Raises: `UnsoundColumns`."""
    try:
        return np.asarray(np.memmap(path, dtype=np.int64, mode="r", shape=(rows,)))
    except (OSError, ValueError):
        raise UnsoundColumns from None


def _crc(column: Ints, before: int = 0) -> int:
    return zlib.crc32(np.ascontiguousarray(column).data, before)


def _file_crc(path: Path, rows: int) -> int | None:
    """The checksum of the first rows of a file; `None` when they cannot be read. Read, not mapped: a place of the disk that
    is gone is then an error, and not the end of the process."""
    found, left = 0, rows * 8
    try:
        with open(path, "rb", buffering=0) as file:
            while left and (piece := file.read(min(left, _PIECE))):
                found, left = zlib.crc32(piece, found), left - len(piece)
    except OSError:
        return None
    return None if left else found


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
