"""Which planner has the queue: one at a time over one database, by a term that every one of its transactions checks.

The owner keeps its runs in memory, as a lone planner does. Each of its transactions locks the owner's row against a change
of hands and reads the term there, so that a planner that was outrun can save nothing, neither a lease nor an end. On
PostgreSQL the owner renews its right, and another planner takes over when it runs out; in SQLite the newest process has it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench_kit.db import storage_error
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.ids import uuid7_hex

from srbench_planner import store
from srbench_planner.journal import now_us

DEFAULT_OWNER_S = 5.0
TRY_S = 0.25
_log = logging.getLogger(__name__)
_owners = store.queue_owner


def owner_lease_s() -> float:
    """How long a right to the queue lasts: `SR_BENCH_OWNER_LEASE_S`, else 5 s. Raises: `InvalidInput` (`BAD_LEASE`)."""
    text = os.environ.get("SR_BENCH_OWNER_LEASE_S", "")
    try:
        found = float(text) if text else DEFAULT_OWNER_S
    except ValueError:
        found = 0.0
    if not 0.5 <= found <= 600:
        name = "SR_BENCH_OWNER_LEASE_S"
        raise InvalidInput("BAD_LEASE", f"{name} is {text!r}; expected seconds from 0.5 to 600", field=name)
    return found


class Ownership:
    """This process's right to the queue of one database."""

    def __init__(self, engine: Engine, lease_s: float, place: str = "") -> None:
        """`place`: where this process listens and on which machine, which no other process can do while it lives."""
        self.term = 0
        self.lost = asyncio.Event()
        self._engine = engine
        self._lease_s = lease_s
        self._place = place
        self._address = ""
        self._shared = engine.dialect.name == "postgresql"
        self._closing = threading.Event()
        self._renewing: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def take(self) -> bool:
        """Takes the queue if nobody has it, and keeps it from then on; whether that went well.

        Raises: `Exhausted` (`STORAGE_FULL`), `Unreachable` (`STORAGE_UNAVAILABLE`).
        """
        self._loop = asyncio.get_running_loop()
        try:
            self.term = await asyncio.to_thread(self._take)
        except sa.exc.DBAPIError as error:
            raise storage_error(error) or error from error
        if self.term and self._shared:
            self._renewing = threading.Thread(target=self._renew, name="ownership", daemon=True)
            self._renewing.start()
        return bool(self.term)

    async def wait(self) -> None:
        """Waits until this process has the queue."""
        while not self.term:
            try:
                if await self.take():
                    return
            except Unreachable as error:
                _log.warning("the owner of the queue cannot be read: %s", error)
            await asyncio.sleep(TRY_S)

    def announce(self, address: str) -> None:
        """Says where this process listens, for those who pass calls on to the owner."""
        self._address = address

    def guard(self, connection: Connection) -> None:
        """Lets a transaction of the owner pass, and no hand-over before it ends. Raises: `Unreachable` (`QUEUE_LOST`)."""
        row = sa.select(_owners.c.term).with_for_update(key_share=True, read=True)
        if connection.execute(row).scalar() != self.term:
            self._lose()
            raise Unreachable("QUEUE_LOST", "another planner has taken over the queue; nothing was recorded")

    async def until_lost(self) -> None:
        """Waits. Raises: `Unreachable` (`QUEUE_LOST`) once another planner has the queue."""
        await self.lost.wait()
        raise Unreachable("QUEUE_LOST", "another planner has taken over the queue; this process ends")

    async def owner(self) -> str:
        """Where the owner listens; empty when there is none. Raises: what SQLAlchemy raises."""
        return await asyncio.to_thread(self._owner)

    def release(self) -> None:
        """Lets another planner take over at once."""
        self._closing.set()
        if self._renewing is not None:
            self._renewing.join()
        if self.term and not self.lost.is_set():
            try:
                self._extend(0)
            except sa.exc.DBAPIError as error:
                _log.warning("the queue was not handed on; it falls free by itself: %s", _first_line(error))

    def _take(self) -> int:
        with self._engine.connect() as opened:
            row, now = _read(opened)
        if row is not None and self._held(row, now):
            return 0
        with self._engine.connect() as opened:
            connection = opened.execution_options(srbench_write=True)
            with connection.begin():
                if self._shared:
                    # The owner before may be in the middle of a transaction: what it saves then still counts.
                    connection.exec_driver_sql("SET LOCAL lock_timeout = '2s'")
                    connection.exec_driver_sql("INSERT INTO queue_owner VALUES (1, 0, '', '', 0) ON CONFLICT DO NOTHING")
                elif row is None:
                    connection.execute(_owners.insert().values(id=1, term=0, planner="", address="", expires_us=0))
                row, now = _read(connection, lock=True)
                if self._held(row, now):
                    return 0
                values = {"term": row.term + 1, "planner": f"{self._place} {uuid7_hex()}", "address": self._address}
                connection.execute(_owners.update().values(**values, expires_us=now + self._lease_us))
                return int(row.term) + 1

    def _held(self, row: Any, now: int) -> bool:
        """Whether another process has the queue. In SQLite none does, nor does a former process of the same place."""
        gone = bool(self._place) and row.planner.rpartition(" ")[0] == self._place
        return self._shared and row.expires_us > now and not gone

    @property
    def _lease_us(self) -> int:
        return int(self._lease_s * 1e6)

    def _renew(self) -> None:
        while not self._closing.wait(self._lease_s / 4):
            try:
                if not self._extend(self._lease_us):
                    self._lose()
                    return
            except sa.exc.DBAPIError as error:
                _log.warning("the right to the queue cannot be renewed yet: %s", _first_line(error))

    def _extend(self, duration_us: int) -> bool:
        """Renews the right, also one that ran out, as long as nobody else took it."""
        with self._engine.begin() as connection:
            until = _now_us(connection) + duration_us
            mine = _owners.update().where(_owners.c.term == self.term)
            done = connection.execute(mine.values(expires_us=until, address=self._address))
            return done.rowcount == 1

    def _lose(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.lost.set)

    def _owner(self) -> str:
        with self._engine.connect() as connection:
            row, now = _read(connection)
        return "" if row is None or row.expires_us <= now else str(row.address)


def _read(connection: Connection, *, lock: bool = False) -> tuple[Any, int]:
    query = sa.select(_owners)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return row, _now_us(connection)


def _now_us(connection: Connection) -> int:
    """Now, by the clock that all planners share."""
    if connection.dialect.name != "postgresql":
        return now_us()
    return int(connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").scalar_one())


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
