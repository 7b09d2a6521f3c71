"""Objects that nothing refers to: listed, checked again where no writer can be at work, and only then deleted.

What protects what is referred to, whoever writes at the same time: an object is there before a row names it; a deletion
happens while nobody else can commit such a row; and only objects of a certain age are looked at, so that one on its way to
its row is not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench.v1 import operations_service_pb2 as pb

from srbench_kit.errors import InvalidInput
from srbench_kit.objects import ObjectInfo, Objects
from srbench_kit.times import fill_time

DEFAULT_AGE_S = 24 * 3600.0
LEAST_AGE_S = 3600.0
MAX_LISTED = 1000
# Objects deleted in one transaction, which holds up other writers for as long as the object store takes.
BATCH = 16


def min_age_s(request: pb.CollectGarbageRequest) -> float:
    """The age that `request` asks for, in seconds. Raises: `InvalidInput` (`BAD_AGE`)."""
    if not request.HasField("min_age"):
        return DEFAULT_AGE_S
    found = request.min_age.seconds + request.min_age.nanos / 1e9
    if found < LEAST_AGE_S:
        raise InvalidInput("BAD_AGE", f"min_age is {found:g} s; expected {LEAST_AGE_S:g} s or more", field="min_age")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The objects of one kind and what refers to them.

    Attributes:
        objects, prefix: where they lie.
        name_of: the name that rows hold, by the object's path; `None` for an object of no such kind, which is left alone.
        referenced: which of some names rows refer to; asked in the transaction of each deletion.
        table: the table of those rows, which nobody else writes during a deletion.
    """

    objects: Objects
    prefix: str
    name_of: Callable[[str], str | None]
    referenced: Callable[[Connection, Sequence[str]], set[str]]
    table: sa.Table


@dataclass(slots=True)
class Found:
    """What a collection found."""

    garbage: list[ObjectInfo] = field(default_factory=list)
    kept_count: int = 0

    def message(self, *, deleted: bool) -> pb.CollectGarbageResponse:
        """As the answer that callers get."""
        answer = pb.CollectGarbageResponse(
            object_count=len(self.garbage),
            byte_count=sum(item.byte_count for item in self.garbage),
            kept_count=self.kept_count,
            deleted=deleted,
        )
        for item in sorted(self.garbage, key=lambda item: item.path)[:MAX_LISTED]:
            shown = answer.objects.add(path=item.path, byte_count=item.byte_count)
            fill_time(shown.write_time, int(item.write_time_s * 1e9))
        return answer


class GarbageCollector:
    """Collects the garbage of one kind of objects."""

    def __init__(self, kept: Callable[[], Kept], engine: Engine) -> None:
        """`kept` is called in a thread at each collection: connecting to an object store takes a while."""
        self._kept = kept
        self._engine = engine

    async def collect(self, *, delete: bool, min_age_s: float) -> Found:
        """What nothing refers to, deleted when `delete` says so.

        Raises: `Unreachable` (`OBJECT_STORE_UNAVAILABLE`); what was deleted before stays deleted.
        """
        kept, old, young_count = await asyncio.to_thread(self._list, min_age_s)
        found = Found(kept_count=young_count)
        for start in range(0, len(old), BATCH):
            batch = old[start : start + BATCH]
            taken = await asyncio.to_thread(self._batch, kept, batch, min_age_s, delete)
            found.garbage += taken
            found.kept_count += len(batch) - len(taken)
        return found

    def _list(self, min_age_s: float) -> tuple[Kept, list[tuple[str, ObjectInfo]], int]:
        kept = self._kept()
        old: list[tuple[str, ObjectInfo]] = []
        young = 0
        for info in kept.objects.list(kept.prefix):
            name = kept.name_of(info.path)
            if name is None or not _is_old(info, min_age_s):
                young += 1
            else:
                old.append((name, info))
        return kept, sorted(old, key=lambda item: item[1].path), young

    def _batch(
        self, kept: Kept, batch: Sequence[tuple[str, ObjectInfo]], min_age_s: float, delete: bool
    ) -> list[ObjectInfo]:
        with self._engine.connect() as opened:
            # A transaction that writes has SQLite's whole database to itself.
            connection = opened.execution_options(srbench_write=delete)
            with connection.begin():
                return _take(kept, connection, batch, min_age_s, delete)


def _is_old(info: ObjectInfo, min_age_s: float) -> bool:
    return time.time() - info.write_time_s >= min_age_s


def _take(
    kept: Kept, connection: Connection, batch: Sequence[tuple[str, ObjectInfo]], min_age_s: float, delete: bool
) -> list[ObjectInfo]:
    """The objects of `batch` that nothing refers to now, deleted when asked to."""
    if delete and connection.dialect.name == "postgresql":
        table = connection.dialect.identifier_preparer.format_table(kept.table)
        connection.exec_driver_sql(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
    referenced = kept.referenced(connection, [name for name, _ in batch])
    taken: list[ObjectInfo] = []
    for name, info in batch:
        if name in referenced:
            continue
        if delete:
            now = kept.objects.info(info.path)
            if now is not None and not _is_old(now, min_age_s):
                # Somebody has just stored it again.
                continue
            kept.objects.delete(info.path)
        taken.append(info)
    return taken
