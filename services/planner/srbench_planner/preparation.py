"""Preparation jobs: asked for once, carried out by a process each, and still known after a restart."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from srbench_kit.db import storage_error
from srbench_kit.errors import Conflict, NotFound, SrBenchError
from srbench_kit.ids import prefixed

from srbench_planner.catalog import Catalog
from srbench_planner.datasets import DatasetStore
from srbench_planner.preparation_records import Job, RecordFiles, Records, Status
from srbench_planner.prepare import PreparationRequest

MAX_AT_ONCE = 2
FOLDER = "dataset-preparations"
TIMEOUT_S = 6 * 3600.0
ACTIVE: tuple[Status, ...] = ("queued", "running")
_log = logging.getLogger(__name__)


class PreparationJobs:
    """The jobs of one store. `create` answers at once; the work goes on in the background until `close`.

    Jobs that a former process left unfinished are failed (`INTERRUPTED`) by `begin`; what they downloaded is kept where
    that process ran, so asking again there goes on from it.
    """

    def __init__(
        self,
        store: Path,
        catalog: Catalog,
        datasets: DatasetStore,
        records: Records | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`records`: where jobs are kept; by default a file each in `<store>/dataset-preparations`."""
        self._store, self._catalog, self._datasets, self._clock = store, catalog, datasets, clock
        self._records = records or RecordFiles(store / FOLDER)
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._closing = False

    async def begin(self) -> None:
        """Takes in what was recorded, once nobody else carries jobs out. Raises: `Unreachable`."""
        for job in await self._records.load():
            self._jobs[job.id] = job
            if job.status in ACTIVE:
                await self._fail(job.id, "INTERRUPTED", "the planner that had this in hand is gone; ask again to go on")

    async def create(self, request: PreparationRequest) -> Job:
        """Starts a job, or gives the one that is doing the same, or has done it while its dataset exists.

        `request` comes from `prepare.check_request`. A job over a file given by hand is repeated once it has ended: the
        file may have changed. Raises: `Exhausted` (`STORAGE_FULL`), `Conflict` (`STOPPING`).
        """
        if self._closing:
            raise Conflict("STOPPING", "the planner is stopping; ask again when it is back")
        for job in self.list():
            if job.request == request and (job.status in ACTIVE or self._still_good(job)):
                return job
        now = self._clock()
        job = Job(id=prefixed("prep"), request=request, create_time_s=now, update_time_s=now)
        try:
            await self._keep(job)
        except OSError as error:
            raise storage_error(error) or error from error
        self._tasks[job.id] = asyncio.create_task(self._carry_out(job.id))
        return job

    def get(self, job_id: str) -> Job:
        """The job named `job_id`. Raises `NotFound` (`NO_SUCH_PREPARATION`)."""
        if job_id not in self._jobs:
            raise NotFound("NO_SUCH_PREPARATION", f"there is no preparation {job_id!r}", value=job_id)
        return self._jobs[job_id]

    def list(self) -> list[Job]:
        """All jobs, newest first."""
        return sorted(self._jobs.values(), key=lambda job: (job.create_time_s, job.id), reverse=True)

    async def wait(self, job_id: str) -> Job:
        """The job once it has ended."""
        task = self._tasks.get(job_id)
        if task is not None:
            await asyncio.wait([task])
        return self.get(job_id)

    async def close(self) -> None:
        """Stops the work in hand; its jobs are failed (`INTERRUPTED`)."""
        self._closing = True
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _still_good(self, job: Job) -> bool:
        if job.status != "completed" or job.request.source_path:
            return False
        try:
            self._datasets.get(job.dataset_id)
        except SrBenchError as error:
            _log.info("preparation %s is not used again: %s", job.id, error)
            return False
        return True

    async def _keep(self, job: Job) -> None:
        """Writes the job durably, then shows it."""
        await self._records.keep(job)
        self._jobs[job.id] = job

    async def _change(self, job_id: str, **changes: Any) -> None:
        """Keeps a step. Where it cannot be written it is shown all the same; after a restart the job is `INTERRUPTED`."""
        job = replace(self._jobs[job_id], update_time_s=self._clock(), **changes)
        try:
            await self._keep(job)
        except (OSError, SrBenchError) as error:
            _log.error("preparation %s could not be written: %s", job_id, error)
            self._jobs[job_id] = job

    async def _advance(self, job_id: str, said: dict[str, Any]) -> None:
        """Takes in a step: a new phase durably, more bytes of the same one in memory."""
        job = self._jobs[job_id]
        if (said["phase"], said["benchmark"]) != (job.phase, job.benchmark):
            await self._change(job_id, **said)
        else:
            self._jobs[job_id] = replace(job, byte_count=said["byte_count"], update_time_s=self._clock())

    async def _fail(self, job_id: str, reason: str, error: str) -> None:
        await self._change(job_id, status="failed", reason=reason, error=error)
        _log.warning("preparation %s failed: %s: %s", job_id, reason, error)

    async def _carry_out(self, job_id: str) -> None:
        try:
            async with self._slots:
                await self._change(job_id, status="running")
                async with asyncio.timeout(TIMEOUT_S):
                    await self._run_worker(job_id)
        except asyncio.CancelledError:
            await self._fail(job_id, "INTERRUPTED", "the planner stopped while this was in hand; ask again to go on")
            raise
        except TimeoutError:
            await self._fail(job_id, "TIMED_OUT", f"it took longer than {TIMEOUT_S:.0f} s; ask again to go on from there")
        except OSError as error:
            await self._fail(job_id, "WORKER_FAILED", f"the preparing process could not be run: {error.strerror}")
        finally:
            if self._jobs[job_id].status in ACTIVE:
                # An error nobody foresaw: it is logged with its traceback, and the job does not hang.
                await self._fail(
                    job_id, "WORKER_FAILED", "the preparing process could not be followed; the log has the details"
                )
            self._tasks.pop(job_id, None)

    async def _run_worker(self, job_id: str) -> None:
        # Not asyncio's subprocess: uvloop's forks, and its pipe to a worker was seen closed before the first write.
        asked = {"store": str(self._store), "request": self._jobs[job_id].request.to_json()}
        worker = subprocess.Popen(  # noqa: ASYNC220 - starting takes a millisecond, and pipes are read in threads
            [sys.executable, "-m", "srbench_planner.prepare_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert worker.stdin is not None, "a pipe was asked for"
        try:
            # A line is shorter than a pipe's buffer; the open pipe tells the worker that we live.
            worker.stdin.write(json.dumps(asked).encode() + b"\n")
            worker.stdin.flush()
            await self._follow(job_id, worker)
        finally:
            _end(worker)
            await asyncio.to_thread(worker.communicate)

    async def _follow(self, job_id: str, worker: subprocess.Popen[bytes]) -> None:
        assert worker.stdout is not None, "a pipe was asked for"
        while line := await asyncio.to_thread(worker.stdout.readline):
            said = json.loads(line)
            if "dataset_id" in said:
                total = self._jobs[job_id].total_count
                await self._change(
                    job_id,
                    status="completed",
                    phase="done",
                    benchmark="",
                    done_count=total,
                    dataset_id=said["dataset_id"],
                )
            elif "reason" in said:
                await self._fail(job_id, said["reason"], said["error"])
            else:
                await self._advance(job_id, said)
        if self._jobs[job_id].status in ACTIVE:
            code = await asyncio.to_thread(worker.wait)
            await self._fail(job_id, "WORKER_FAILED", f"the preparing process ended with {code} and said nothing more")


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Ends the worker and what it started."""
    if worker.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
