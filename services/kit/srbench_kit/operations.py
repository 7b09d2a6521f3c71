"""`OperationsService` as every process serves it: what it says of itself, and for those who own objects, their garbage."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from grpc import aio
from srbench.v1 import operations_service_pb2 as pb
from srbench.v1 import operations_service_pb2_grpc as rpc

from srbench_kit.auth import require_role
from srbench_kit.errors import NotFound
from srbench_kit.ids import uuid7_hex
from srbench_kit.times import fill_time

if TYPE_CHECKING:
    from srbench_kit.garbage import GarbageCollector
    from srbench_kit.serving import Server

NAME = "srbench.v1.OperationsService"
# One look may wait for an object store or a sandbox; the others are shown all the same.
LOOK_S = 15.0
Context: TypeAlias = "aio.ServicerContext[Any, Any]"
# What a look finds; it runs in a thread when it is no coroutine.
Look: TypeAlias = (
    "Callable[[pb.InspectProcessRequest], Sequence[pb.InspectionCheck] | Awaitable[Sequence[pb.InspectionCheck]]]"
)
_log = logging.getLogger(__name__)


@cache
def version() -> str:
    """The installed version of sr-bench."""
    from importlib.metadata import version as installed

    return installed("sr-bench")


def ok(name: str, detail: str) -> pb.InspectionCheck:
    """All is well."""
    return pb.InspectionCheck(name=name, status=pb.INSPECTION_STATUS_OK, detail=detail)


def warning(name: str, detail: str, remedy: str) -> pb.InspectionCheck:
    """It works, but somebody should look at it."""
    return pb.InspectionCheck(name=name, status=pb.INSPECTION_STATUS_WARNING, detail=detail, remedy=remedy)


def failed(name: str, detail: str, remedy: str) -> pb.InspectionCheck:
    """Something will not work."""
    return pb.InspectionCheck(name=name, status=pb.INSPECTION_STATUS_FAILED, detail=detail, remedy=remedy)


FULL_BYTES, LOW_BYTES = 256 * 1024**2, 2 * 1024**3


def disk(folder: Path) -> tuple[str, Look]:
    """Whether `folder` can be written to and has room."""

    def look(_request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
        probe = folder / f".probe-{uuid7_hex()}"
        try:
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as error:
            why = f"{folder} cannot be written to: {os.strerror(error.errno or 0)}"
            return [failed("disk", why, "give the process's user write access, or make room")]
        free = shutil.disk_usage(folder).free
        found = f"{free / 1024**3:.1f} GiB free in {folder}"
        if free < FULL_BYTES:
            return [failed("disk", found, "make room; recording stops when the disk is full")]
        return [warning("disk", found, "make room soon") if free < LOW_BYTES else ok("disk", found)]

    return "disk", look


class Operations(rpc.OperationsServiceServicer):
    """What one process says of itself."""

    def __init__(self, service: str, looks: Sequence[tuple[str, Look]], garbage: GarbageCollector | None = None) -> None:
        """`looks` by the name of the check that says so when a look itself fails."""
        self._service = service
        self._looks = looks
        self._garbage = garbage

    def add_to(self, server: Server) -> None:
        """Serves this beside what the process serves."""
        server.add(self, rpc.add_OperationsServiceServicer_to_server, NAME)

    async def InspectProcess(self, request: pb.InspectProcessRequest, context: Context) -> pb.ProcessInspection:
        require_role(context, "gateway")
        answer = pb.ProcessInspection(service=self._service, version=version())
        fill_time(answer.time, time.time_ns())
        for checks in await asyncio.gather(*(_look(name, look, request) for name, look in self._looks)):
            answer.checks.extend(checks)
        return answer

    async def CollectGarbage(self, request: pb.CollectGarbageRequest, context: Context) -> pb.CollectGarbageResponse:
        from srbench_kit.garbage import min_age_s

        require_role(context, "gateway")
        if self._garbage is None:
            raise NotFound("NO_GARBAGE", f"the {self._service} keeps no objects")
        found = await self._garbage.collect(delete=request.delete, min_age_s=min_age_s(request))
        if request.delete and found.garbage:
            _log.info("garbage collection deleted %d objects", len(found.garbage))
        return found.message(deleted=request.delete)


async def _look(name: str, look: Look, request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
    try:
        async with asyncio.timeout(LOOK_S):
            if asyncio.iscoroutinefunction(look):
                found: Sequence[pb.InspectionCheck] = await look(request)
                return found
            return await asyncio.to_thread(look, request)  # type: ignore[arg-type]
    except TimeoutError:
        return [failed(name, f"no answer within {LOOK_S:g} s", "see the log of this process")]
