"""Saves the columns of large runs, so that the first page after a start finds them: soon after a run has come to rest, and
now and then while it goes on. No list depends on it; without it the first page of a large run reads all its rows."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.errors import SrBenchError

from srbench_accounting import schema

if TYPE_CHECKING:
    from srbench_accounting.kept_columns import KeptColumns
    from srbench_accounting.run_facts import PlanCases
    from srbench_accounting.store import Store

# Not while everything starts at once: NumPy is imported by the first look.
START_S = 2.0
LOOK_S = 10.0
# A run with fewer calls is read as fast as it is mapped.
SMALL = 4096
# A run that goes on is saved when so many rows have come since.
MANY = 50_000
MAX_RUNS = 8
# The cases of a large plan take much memory, so only those that somebody is likely to look at are fetched beforehand.
MAX_PLANS = 2
Counters: TypeAlias = tuple[int, ...]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    """What a run's counters were when it was looked at last, and whether that is saved."""

    counters: Counters
    saved: bool = False


class ColumnKeeper:
    """Looks after the newest large runs of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[int, _Seen] = {}

    async def keep_for_ever(self) -> None:
        """Looks again and again. What cannot be saved or fetched is tried again later, for it is no fact."""
        said, pause_s = "", START_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = LOOK_S
            try:
                await self.look()
                said = ""
            except (SrBenchError, OSError) as error:
                if str(error) != said:
                    _log.warning("first pages of large runs will be slow, columns are not saved: %s", error)
                said = str(error)

    async def look(self) -> None:
        """Looks once. Raises: `OSError`, `SrBenchError`."""
        reader, registry = self._store.reader, self._store.registry
        large = await reader.run(_large)
        for run_no, _, counters in large:
            await reader.run(lambda connection, n=run_no, now=counters: self._attend(connection, n, now))  # type: ignore[misc]
        for _, run_id, _ in large[:MAX_PLANS]:
            cases = await registry.cases(await registry.run(run_id))
            await asyncio.to_thread(_index, cases)

    def _attend(self, connection: Connection, run_no: int, counters: Counters) -> None:
        # It imports NumPy.
        from srbench_accounting.column_files import until_sound

        before = self._seen.get(run_no)
        rests = before is not None and before.counters == counters
        kept = (self._store.ranks.calls.kept, self._store.ranks.outcomes.kept)
        # What was damaged is not there any more.
        if before is not None and before.saved and rests and all(columns.is_saved(run_no) for columns in kept):
            return
        now = self._seen[run_no] = _Seen(counters)
        for columns in kept:
            until_sound(lambda columns=columns: _save(columns, connection, run_no, rests))  # type: ignore[misc]
        now.saved = rests


def _large(connection: Connection) -> list[tuple[int, str, Counters]]:
    """(number, id, counters) of the newest large runs."""
    runs = schema.runs.c
    counters = (runs.call_count, runs.outcome_count, runs.open_call_count, runs.unknown_cost_count, runs.spent)
    rows = connection.execute(
        sa.select(runs.run_no, runs.run_id, *counters)
        .where(runs.call_count >= SMALL)
        .order_by(runs.run_no.desc())
        .limit(MAX_RUNS)
    )
    return [(row[0], row[1], tuple(row[2:])) for row in rows]


def _save(columns: KeptColumns, connection: Connection, run_no: int, rests: bool) -> None:
    """Saves what there is to save of a run that rests, or that has grown by much."""
    _, count = columns.load(connection, run_no)
    if rests or count - columns.saved_rows(run_no) >= MANY:
        columns.save(connection, run_no)


def _index(cases: PlanCases) -> None:
    """Makes what lists look up."""
    _ = cases.index_by_id, cases.indexes_by_benchmark, cases.lower_ids
