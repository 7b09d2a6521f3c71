"""The columns that lists are narrowed and ordered by: read once, kept by run, brought up to date by what came since.

Rows are only ever added, so it is enough to read those after the last, and the few again that may still change. Columns of
large runs are saved beside the database (`column_files`), where the next process finds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Protocol, TypeAlias

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import func

from srbench_accounting import schema
from srbench_accounting.column_files import ColumnFiles, Ints, Saved
from srbench_accounting.row_tables import Table
from srbench_accounting.statements import Statement

MAX_RUNS = 64
# Rows in memory of all runs together; the run that was asked for last is kept whatever its size. What is mapped is none.
MAX_ROWS = 500_000
# The run's counters, and the number of the last receipt that came apart: what moves whenever a row changes.
Moment = tuple[int, ...]
_COUNTERS = ("outcome_count", "call_count", "open_call_count", "unknown_cost_count", "spent", "held_reserved")
_ONLY_GROW = (0, 1, len(_COUNTERS))
Mask: TypeAlias = NDArray[np.bool_]
_NOWHERE: Ints = np.empty(0, dtype=np.int64)


class View:
    """The columns of one run at one moment. What it hands out is never written to."""

    def __init__(self, names: Sequence[str], saved: Saved | None, added: Table, places: Ints, values: Table) -> None:
        """`saved` holds the first rows, `added` those after them, a line a column; at `places`, from 0 and in order, are
        `values` instead."""
        self.names = tuple(names)
        self._saved: Sequence[Ints] = saved.columns if saved is not None else ()
        self._added, self._places, self._values = added, places, values
        self.saved_rows = saved.rows if saved is not None else 0
        self.rows = self.saved_rows + added.shape[1]
        self._whole: dict[str, Ints] = {}

    def column(self, name: str) -> Ints:
        """A whole column."""
        found = self._whole.get(name)
        if found is None:
            line = self.names.index(name)
            parts = [part for part in (*self._saved[line : line + 1], self._added[line]) if len(part)]
            found = parts[0] if len(parts) == 1 else np.concatenate([*parts, _NOWHERE])
            if len(self._places):
                found = found.copy() if len(parts) == 1 else found
                found[self._places] = self._values[line]
            self._whole[name] = found
        return found

    def take(self, name: str, places: Ints) -> Ints:
        """A column at `places`; for a few of them, without making the whole of it."""
        if name in self._whole or len(places) * 8 > self.rows:
            return self.column(name)[places]
        line, early = self.names.index(name), places < self.saved_rows
        taken = np.empty(len(places), dtype=np.int64)
        if early.any():
            taken[early] = self._saved[line][places[early]]
        taken[~early] = self._added[line][places[~early] - self.saved_rows]
        at = np.searchsorted(self._places, places)
        patched = at < len(self._places)
        patched[patched] = self._places[at[patched]] == places[patched]
        taken[patched] = self._values[line][at[patched]]
        return taken

    def with_values(self, name: str, values: Ints) -> Ints:
        """The places where a column that never changes holds one of `values`."""
        line = self.names.index(name)
        found = [np.flatnonzero(np.isin(self._saved[line], values))] if self._saved else []
        return np.concatenate([*found, np.flatnonzero(np.isin(self._added[line], values)) + self.saved_rows])

    def table(self) -> list[Ints]:
        """All columns."""
        return [self.column(name) for name in self.names]


class Rows(Protocol):
    """What is kept of a kind of rows, and how it is read. Places are counted from 0."""

    @property
    def names(self) -> Sequence[str]:
        """The columns; the first is the cell."""
        ...

    @property
    def counter(self) -> int:
        """Which of the run's counters counts the rows."""
        ...

    def read(self, connection: Connection, run_no: int, first: int, end: int) -> Table:
        """The rows from place `first` to before `end`."""
        ...

    def may_change(self, table: Sequence[Ints]) -> Mask:
        """Which rows of some columns may still change by themselves."""
        ...

    def again(self, connection: Connection, run_no: int, view: View, open_places: Ints) -> tuple[Ints, Table]:
        """What is true now of the rows that may have changed: places in order, and the columns there."""
        ...

    def witness(self, connection: Connection, run_no: int, place: int) -> Sequence[int]:
        """What the ledger says of one row that no other ledger would say."""
        ...


class _Kept:
    """One run: what is saved, what came since, what changed."""

    def __init__(self, names: int) -> None:
        """Of so many columns nothing is known yet."""
        self.lock = Lock()
        self.empty(names)

    def empty(self, names: int) -> None:
        """Forgets everything, so that it is read again."""
        self.saved: Saved | None = None
        self.added: Table = np.empty((names, 0), dtype=np.int64)
        self.values: Table = self.added
        self.places = self.open_places = _NOWHERE
        self.moment: Moment | None = None
        self.view: View | None = None


class KeptColumns:
    """The columns of one kind of rows, by run. Safe in any thread."""

    def __init__(self, rows: Rows, files: ColumnFiles, dialect: Dialect) -> None:
        self._rows, self._files = rows, files
        runs, apart = schema.runs, schema.receipts_apart
        self._counters = Statement(
            sa.select(*[runs.c[name] for name in _COUNTERS]).where(runs.c.run_no == sa.bindparam("run_no_")), dialect
        )
        self._apart = Statement(sa.select(func.coalesce(func.max(apart.c.apart_id), sa.literal_column("0"))), dialect)
        self._runs: OrderedDict[int, _Kept] = OrderedDict()
        self._lock = Lock()

    def load(self, connection: Connection, run_no: int) -> tuple[View, int]:
        """The columns of a run, and how many of the rows the connection's transaction sees; another may have seen more.

        Whoever looks at them does so in `until_sound`: a look may find out that what is saved is damaged.
        """
        kept = self._kept(run_no)
        with kept.lock:
            if kept.saved is not None and not kept.saved.columns.sound:
                self._files.forget_damaged(run_no)
                kept.empty(len(self._rows.names))
            view, moment = self._load(connection, run_no, kept)
        self._forget()
        return view, min(moment[self._rows.counter], view.rows)

    def save(self, connection: Connection, run_no: int) -> bool:
        """Writes what is not saved yet; whether there was anything and it was written. Raises: `OSError`."""
        kept = self._kept(run_no)
        with kept.lock:
            self._load(connection, run_no, kept)
            if self._files.moment(run_no) != (kept.saved.moment if kept.saved is not None else None):
                self._take_saved(connection, run_no, kept)
            view, moment, places, saved = kept.view, kept.moment, kept.places, kept.saved
        # What somebody deleted is written anew from what is mapped.
        base = saved.moment if saved is not None and self.is_saved(run_no) else None
        if view is None or not view.rows or moment is None or moment == base:
            return False
        witness = self._rows.witness(connection, run_no, view.rows - 1)
        columns = view.table()
        if not self._files.write(run_no, columns, base=base, changed=places, moment=moment, witness=witness):
            return False
        with kept.lock:
            self._take_saved(connection, run_no, kept, written=view)
        return True

    def is_saved(self, run_no: int) -> bool:
        """Whether anything is saved, by whatever process."""
        return self._files.moment(run_no) is not None

    def saved_rows(self, run_no: int) -> int:
        """How many rows this process knows to be saved."""
        kept = self._kept(run_no)
        return kept.saved.rows if kept.saved is not None else 0

    def _load(self, connection: Connection, run_no: int, kept: _Kept) -> tuple[View, Moment]:
        rows = self._rows
        moment: Moment = (*self._counters.rows(connection, run_no)[0], *self._apart.rows(connection)[0])
        if kept.view is None:
            self._open(connection, run_no, kept, moment)
        if kept.view is None or (kept.moment != moment and not _earlier(moment, kept.moment)):
            view = kept.view or self._view(kept)
            _patch(kept, *rows.again(connection, run_no, view, kept.open_places))
            if moment[rows.counter] > view.rows:
                added = rows.read(connection, run_no, view.rows, moment[rows.counter])
                kept.added = np.concatenate([kept.added, added], axis=1)
            kept.moment, kept.view = moment, self._view(kept)
            self._find_open(kept, view.rows)
        return kept.view, moment

    def _open(self, connection: Connection, run_no: int, kept: _Kept, moment: Moment) -> None:
        """Takes what is saved, unless the ledger does not know it."""
        saved = self._read(connection, run_no)
        if saved is not None and not _earlier(moment, saved.moment):
            kept.saved, kept.moment, kept.open_places = saved, saved.moment, saved.open_places
            kept.places, kept.values = saved.open_places, saved.open_values
            kept.view = self._view(kept)

    def _read(self, connection: Connection, run_no: int) -> Saved | None:
        rows = self._rows
        return self._files.read(run_no, lambda count: rows.witness(connection, run_no, count - 1), rows.may_change)

    def _take_saved(self, connection: Connection, run_no: int, kept: _Kept, written: View | None = None) -> None:
        """Maps what is saved, by this process as it was `written` or by another, in place of the same rows in memory. What
        this process knows of rows that were open then stays over it."""
        saved, view = self._read(connection, run_no), kept.view
        if saved is None or view is None or not view.saved_rows <= saved.rows <= view.rows:
            return
        if _earlier(kept.moment or (), saved.moment):
            return
        known = [view.take(name, saved.open_places) for name in view.names]
        kept.added = kept.added[:, saved.rows - view.saved_rows :].copy()
        if view is written:
            kept.places, kept.values = _NOWHERE, kept.values[:, :0]
        _patch(kept, saved.open_places, np.array(known, dtype=np.int64))
        kept.saved = saved
        kept.view = self._view(kept)

    def _find_open(self, kept: _Kept, before: int) -> None:
        """Which rows may change from now on, of those that might before and of those that came."""
        view, rows = kept.view, self._rows
        assert view is not None
        places = np.concatenate([kept.open_places, np.arange(before, view.rows, dtype=np.int64)])
        table = [view.take(name, places) for name in view.names]
        kept.open_places = places[rows.may_change(table)]

    def _view(self, kept: _Kept) -> View:
        return View(self._rows.names, kept.saved, kept.added, kept.places, kept.values)

    def _kept(self, run_no: int) -> _Kept:
        with self._lock:
            kept = self._runs.get(run_no)
            if kept is None:
                kept = self._runs[run_no] = _Kept(len(self._rows.names))
            self._runs.move_to_end(run_no)
            return kept

    def _forget(self) -> None:
        with self._lock:
            rows = sum(kept.added.shape[1] for kept in self._runs.values())
            while len(self._runs) > 1 and (rows > MAX_ROWS or len(self._runs) > MAX_RUNS):
                rows -= self._runs.popitem(last=False)[1].added.shape[1]


def _earlier(moment: Moment, kept: Moment | None) -> bool:
    """Whether one reader's view of the ledger is older than what another has read: something was added in between."""
    return kept is not None and any(moment[place] < kept[place] for place in _ONLY_GROW)


def _patch(kept: _Kept, places: Ints, values: Table) -> None:
    """Lays what is true now over what was read before. Both lists of places are in order."""
    stay = ~np.isin(kept.places, places)
    all_places = np.concatenate([kept.places[stay], places])
    order = np.argsort(all_places, kind="stable")
    kept.places = all_places[order]
    kept.values = np.concatenate([kept.values[:, stay], values], axis=1)[:, order]
