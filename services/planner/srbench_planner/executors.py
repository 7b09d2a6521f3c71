"""The processes that lease cells: an executor keeps its id over restarts, each process has an incarnation."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.db import GroupWriter, Reader

from srbench_planner import store
from srbench_planner.journal import now_us


class Executors:
    """Numbers processes, and knows which one is an executor's newest."""

    def __init__(self, writer: GroupWriter, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader
        self._numbers: dict[tuple[str, str], int] = {}
        self._newest: dict[str, int] = {}
        self._registering = asyncio.Lock()

    async def load(self) -> None:
        """Reads the processes seen before."""
        for row in await self._reader.run(_all):
            self._note(row.executor_id, row.incarnation, row.number)

    def number(self, executor_id: str, incarnation: str) -> int | None:
        """The number of a process; `None` when it is not known, or not the executor's newest."""
        number = self._numbers.get((executor_id, incarnation))
        return number if number is not None and self._newest.get(executor_id) == number else None

    def known(self, executor_id: str, incarnation: str) -> bool:
        """Whether the process was seen before, newest or not."""
        return (executor_id, incarnation) in self._numbers

    async def register(self, executor_id: str, incarnation: str) -> tuple[int, frozenset[int]]:
        """Numbers a new process durably; returns its number and those of the executor's former processes."""
        async with self._registering:
            former = frozenset(number for (name, _), number in self._numbers.items() if name == executor_id)
            found = self._numbers.get((executor_id, incarnation))
            if found is not None:
                return found, former - {found}
            number = await self._writer.run(lambda connection: _insert(connection, executor_id, incarnation))
            self._note(executor_id, incarnation, number)
            return number, former

    def _note(self, executor_id: str, incarnation: str, number: int) -> None:
        self._numbers[executor_id, incarnation] = number
        self._newest[executor_id] = max(number, self._newest.get(executor_id, 0))


def _all(connection: Connection) -> list[Any]:
    return list(connection.execute(sa.select(store.executors).order_by(store.executors.c.number)).all())


def _insert(connection: Connection, executor_id: str, incarnation: str) -> int:
    mine = store.executors.c.executor_id == executor_id, store.executors.c.incarnation == incarnation
    number = sa.select(store.executors.c.number).where(*mine)
    # It is there when this transaction is run again because the answer to its commit was lost.
    if connection.execute(number).scalar() is None:
        values = {"executor_id": executor_id, "incarnation": incarnation, "create_us": now_us()}
        connection.execute(store.executors.insert(), values)
    return int(connection.execute(number).scalar_one())
