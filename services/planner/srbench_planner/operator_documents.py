"""Where the operator's documents lie: files on one machine, rows beside the plans where planners share a database."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.db import GroupWriter, Reader, storage_error
from srbench_kit.durable import write_whole
from srbench_kit.errors import Conflict

from srbench_planner import store
from srbench_planner.journal import now_us

TARGETS, OPTIONS = "targets.json", "benchmark-options.json"
_documents = store.operator_documents


class Documents(Protocol):
    """Whole documents by name."""

    def read(self, name: str) -> bytes | None:
        """The document; `None` when there is none. Raises: `Unreachable` (`STORAGE_UNAVAILABLE`)."""
        ...

    async def write(self, name: str, data: bytes, expected: str = "") -> None:
        """Replaces the document durably, or changes nothing; only that of the revision `expected`, unless it is empty.

        Raises: `Conflict` (`REGISTRY_CHANGED`), `Exhausted` (`STORAGE_FULL`), `Unreachable` (`STORAGE_UNAVAILABLE`,
        `QUEUE_LOST`).
        """
        ...

    async def begin(self) -> None:
        """Called once this planner has the queue."""
        ...


def revision_of(data: bytes | None) -> str:
    """Names a document by its content, so that it means the same for files, which an operator may also edit, and rows."""
    return hashlib.sha256(data or b"").hexdigest()[:16]


def check_revision(name: str, data: bytes | None, expected: str) -> None:
    """Raises: `Conflict` (`REGISTRY_CHANGED`) unless `data` is the document of the revision `expected`."""
    found = revision_of(data)
    if expected and found != expected:
        raise Conflict(
            "REGISTRY_CHANGED",
            f"{name} is at revision {found}, not at the expected {expected[:64]!r}: somebody changed it meanwhile, and "
            "nothing was replaced; list it again, make the change there, and register that",
            revision=found,
        )


class Folder:
    """Documents as files, which an operator may also edit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # One writer at a time, so that nobody replaces what another has just been told is in force.
        self._writing = asyncio.Lock()

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    async def write(self, name: str, data: bytes, expected: str = "") -> None:
        async with self._writing:
            check_revision(name, await asyncio.to_thread(self.read, name), expected)
            try:
                await asyncio.to_thread(write_whole, self._folder / name, data)
            except OSError as error:
                raise storage_error(error) or error from error

    async def begin(self) -> None:
        """Nothing: files need no owner."""


class Table:
    """Documents as rows. The writer's guard lets only the owner of the queue replace them, so none overwrites unseen what
    another planner took in."""

    def __init__(self, writer: GroupWriter, reader: Reader, files: Folder) -> None:
        """`files`: the folder of this planner, whose documents are taken in where there are no rows yet."""
        self._writer, self._reader, self._files = writer, reader, files

    def read(self, name: str) -> bytes | None:
        query = sa.select(_documents.c.document).where(_documents.c.name == name)
        found: str | None = self._reader.run_now(lambda connection: connection.execute(query).scalar())
        return None if found is None else found.encode()

    async def write(self, name: str, data: bytes, expected: str = "") -> None:
        await self._writer.run(lambda connection: _replace(connection, name, data.decode(), expected))

    async def begin(self) -> None:
        """Takes in the files of a planner that kept its documents there before it shared a database."""
        for name in (TARGETS, OPTIONS):
            data = await asyncio.to_thread(self._files.read, name)
            if data is not None and await asyncio.to_thread(self.read, name) is None:
                await self.write(name, data)


def _replace(connection: Connection, name: str, text: str, expected: str) -> None:
    """The writer is the only one in this database, so that nobody comes between the look and the change."""
    if expected:
        found: str | None = connection.execute(sa.select(_documents.c.document).where(_documents.c.name == name)).scalar()
        check_revision(name, None if found is None else found.encode(), expected)
    new = {"document": text, "update_us": now_us()}
    changed = _documents.update().where(_documents.c.name == name).values(**new, revision=_documents.c.revision + 1)
    if connection.execute(changed).rowcount == 0:
        connection.execute(_documents.insert().values(name=name, revision=1, **new))
