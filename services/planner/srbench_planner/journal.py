"""Changes on their way to the tables. Memory changes first, one transaction saves, and only then is anything acknowledged.

When the transaction fails, everything in it stays pending and goes with the next one.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.crashpoints import crashpoint
from srbench_kit.db import GroupWriter
from srbench_kit.values import Json

from srbench_planner import store
from srbench_planner.cells import CellState
from srbench_planner.run_cells import RunCells

_COUNTED = {
    "done_count": CellState.DONE,
    "failed_count": CellState.FAILED,
    "cancelled_count": CellState.CANCELLED,
    "interrupted_count": CellState.INTERRUPTED,
}


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Journal:
    """Collects changed cells, events and run updates, and saves them together."""

    def __init__(self, writer: GroupWriter) -> None:
        self._writer = writer
        self._touched: dict[int, RunCells] = {}
        self._events: list[dict[str, Any]] = []
        self._updates: dict[int, dict[str, Any]] = {}
        self._ending: dict[int, RunCells] = {}
        self._under_way: set[asyncio.Future[list[RunCells]]] = set()

    def touch(self, run: RunCells) -> None:
        """Says that `run` has changed cells."""
        self._touched[run.number] = run

    def event(self, run: RunCells, kind: str, data: dict[str, Json]) -> None:
        """Adds an event of `run`."""
        self._events.append(event_row(run.number, kind, data))

    def update(self, run: RunCells, **values: str | int) -> None:
        """Changes columns of the run's row."""
        self._updates.setdefault(run.number, {}).update(values)

    def ending(self, run: RunCells) -> None:
        """Says that the next transaction ends the run."""
        self._ending[run.number] = run

    @property
    def idle(self) -> bool:
        """Whether all there was to save is durable."""
        return not (self._touched or self._events or self._updates or self._ending or self._under_way)

    async def flush(self) -> list[RunCells]:
        """Saves all that is pending, and waits for all that is being saved; returns the runs that ended durably.

        What the caller changed may be on its way with another caller's flush: it is not saved before that one is.
        Raises: `Exhausted` (`STORAGE_FULL`), `Unreachable` (`STORAGE_UNAVAILABLE`); then all stays pending.
        """
        under_way = list(self._under_way)
        own = asyncio.ensure_future(self._write())
        self._under_way.add(own)
        own.add_done_callback(self._under_way.discard)
        results = await asyncio.gather(own, *under_way, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return own.result()

    async def _write(self) -> list[RunCells]:
        touched = [(run, run.changed) for run in self._touched.values() if run.changed]
        events, updates, ending = self._events, self._updates, self._ending
        if not (touched or events or updates or ending):
            self._touched.clear()
            return []
        self._touched, self._events, self._updates, self._ending = {}, [], {}, {}
        rows: list[store.CellRow] = []
        for run, changed in touched:
            run.changed = set()
            rows.extend(_cell_row(run, cell) for cell in changed)
        try:
            crashpoint("planner.before_save")
            await self._writer.run(_save(rows, events, updates, list(ending)))
            crashpoint("planner.after_save")
        except BaseException:
            for run, changed in touched:
                run.changed |= changed
                self._touched[run.number] = run
            self._events = events + self._events
            for number, values in updates.items():
                self._updates[number] = values | self._updates.get(number, {})
            self._ending = ending | self._ending
            raise
        return list(ending.values())


def event_row(number: int, kind: str, data: dict[str, Json]) -> dict[str, Any]:
    """The row of an event that happens now."""
    return {"run": number, "type": kind, "create_us": now_us(), "data": json.dumps(data, ensure_ascii=False)}


def _cell_row(run: RunCells, cell: int) -> store.CellRow:
    state = run.states[cell]
    reason = run.reasons.get(cell) if state > CellState.LEASED else None
    return run.number, cell, state, run.tokens[cell], run.holders.get(cell), reason


def _save(
    rows: list[store.CellRow], events: list[dict[str, Any]], updates: dict[int, dict[str, Any]], ending: list[int]
) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        if rows:
            store.save_cells(connection, rows)
        if events:
            connection.execute(store.events.insert(), events)
        for number, values in updates.items():
            connection.execute(
                store.runs.update().where(store.runs.c.number == number).values(update_us=now_us(), **values)
            )
        for number in ending:
            connection.execute(store.runs.update().where(store.runs.c.number == number).values(_counts(number)))

    return work


def _counts(number: int) -> dict[str, Any]:
    def count(state: CellState) -> Any:
        found = store.cells.select().where(store.cells.c.run == number, store.cells.c.state == int(state)).subquery()
        return sa.select(sa.func.count()).select_from(found).scalar_subquery()

    return {column: count(state) for column, state in _COUNTED.items()}
