"""Where the records of preparations lie: files on one machine, rows beside the plans where planners share a database."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.documents import load_json
from srbench_kit.errors import SrBenchError
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json

from srbench_planner import store
from srbench_planner.files import make_private, open_regular, write_private
from srbench_planner.journal import now_us
from srbench_planner.prepare import PreparationRequest

MAX_JOB_BYTES = 64 * 1024
Status: TypeAlias = Literal["queued", "running", "completed", "failed"]
_rows = store.dataset_preparations
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A preparation.

    Attributes:
        id: `prep-` and 32 hex digits; sorts by time.
        phase: `queued`, `downloading`, `reading`, `freezing` or `done`.
        benchmark: the one in hand.
        reason, error: stable code and sentence of a failure; empty otherwise.
        create_time_s, update_time_s: seconds since 1970.
    """

    id: str
    request: PreparationRequest
    status: Status = "queued"
    phase: str = "queued"
    benchmark: str = ""
    done_count: int = 0
    byte_count: int = 0
    dataset_id: str = ""
    reason: str = ""
    error: str = ""
    create_time_s: float
    update_time_s: float

    @property
    def total_count(self) -> int:
        """Benchmarks in all."""
        return len(self.request.benchmarks)


def job_from_json(found: Json) -> Job:
    """The job in a record. Raises `KeyError`, `TypeError` or `InvalidInput` for other documents."""
    if not isinstance(found, dict) or not isinstance(found.get("request"), dict):
        raise TypeError("no job")
    fields = cast("dict[str, Any]", found)
    asked = fields.pop("request")
    request = PreparationRequest(**(asked | {"benchmarks": tuple(asked["benchmarks"])}))
    return Job(request=request, **fields)


class Records(Protocol):
    """The records of all preparations."""

    async def load(self) -> list[Job]:
        """All jobs, once this planner may carry some out. Raises: `Unreachable`."""
        ...

    async def keep(self, job: Job) -> None:
        """Writes a job durably. Raises: `OSError`, `Exhausted` (`STORAGE_FULL`), `Unreachable`."""
        ...


class RecordFiles:
    """A file a job in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private(folder)

    async def load(self) -> list[Job]:
        return list(_jobs((path.name, self._read(path)) for path in sorted(self._folder.glob("prep-*.json"))))

    async def keep(self, job: Job) -> None:
        beside = self._folder / f".{uuid7_hex()}.tmp"
        write_private(beside, json.dumps(asdict(job), indent=2).encode() + b"\n")
        os.replace(beside, self._folder / f"{job.id}.json")

    def _read(self, path: Path) -> bytes | SrBenchError:
        try:
            with open_regular(path, MAX_JOB_BYTES) as file:
                return file.read()
        except SrBenchError as error:
            return error


class RecordTable:
    """A row a job. The writer's guard lets only the owner of the queue write, and only the owner prepares."""

    def __init__(self, writer: GroupWriter, reader: Reader, files: RecordFiles) -> None:
        """`files`: those of this planner, whose jobs are taken in where there is no row yet."""
        self._writer, self._reader, self._files = writer, reader, files

    async def load(self) -> list[Job]:
        query = sa.select(_rows.c.job_id, _rows.c.job).order_by(_rows.c.job_id)
        rows = await self._reader.run(lambda connection: connection.execute(query).all())
        jobs = list(_jobs((row.job_id, row.job.encode()) for row in rows))
        known = {row.job_id for row in rows}
        for job in await self._files.load():
            if job.id not in known:
                await self.keep(job)
                jobs.append(job)
        return jobs

    async def keep(self, job: Job) -> None:
        text = json.dumps(asdict(job))
        await self._writer.run(lambda connection: _replace(connection, job.id, text))


def _jobs(found: Iterable[tuple[str, bytes | SrBenchError]]) -> Iterable[Job]:
    """The jobs in some records; those of other versions stay where they are."""
    for name, data in found:
        try:
            if isinstance(data, SrBenchError):
                raise data
            yield job_from_json(load_json(data, name))
        except (SrBenchError, KeyError, TypeError) as error:
            _log.warning("%s is no preparation of this version and is left out: %s", name, error)


def _replace(connection: Connection, job_id: str, text: str) -> None:
    new = {"job": text, "update_us": now_us()}
    if connection.execute(_rows.update().where(_rows.c.job_id == job_id).values(new)).rowcount == 0:
        connection.execute(_rows.insert().values(job_id=job_id, **new))
