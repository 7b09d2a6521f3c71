"""References of case sets: fetched from the planner once, kept in memory, never on disk."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from grpc import aio
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_kit import wire
from srbench_kit.errors import Conflict, DataLoss, NotFound, Unreachable

from srbench_grader import convert
from srbench_grader.grading import Case

CaseSet: TypeAlias = Mapping[int, Case]
Fetch: TypeAlias = Callable[[str], Awaitable[CaseSet]]
FETCH_TIMEOUT_S = 120.0
KEPT_SETS = 32
FETCH_ATTEMPTS = 6


class ReferenceCache:
    """Case sets by digest. Concurrent askers share one fetch; the set that was not used longest goes first."""

    def __init__(self, fetch: Fetch, kept_sets: int = KEPT_SETS) -> None:
        self._fetch = fetch
        self._kept_sets = kept_sets
        self._sets: OrderedDict[str, asyncio.Task[CaseSet]] = OrderedDict()

    async def case_set(self, case_sha256: str) -> CaseSet:
        """The cases whose digest is `case_sha256`. What could not be fetched is not kept.

        Raises: `NotFound` (`NO_SUCH_PLAN`), `Unreachable` and what else the planner answers.
        """
        task = self._sets.get(case_sha256)
        if task is None:
            task = asyncio.ensure_future(self._fetch(case_sha256))
            self._sets[case_sha256] = task
            task.add_done_callback(lambda done: self._settle(case_sha256, done))
        elif task.done():
            self._sets.move_to_end(case_sha256)
        # One asker that goes away must not take the fetch from the others.
        return await asyncio.shield(task)

    def _settle(self, case_sha256: str, task: asyncio.Task[CaseSet]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._sets.pop(case_sha256, None)
        while len(self._sets) > self._kept_sets:
            self._sets.popitem(last=False)


def hidden_fetch(channel: aio.Channel) -> Callable[[str], Awaitable[bytes]]:
    """A fetch of hidden tests by their SHA-256 from the planner at `channel`; verified, never kept on disk."""
    stub = planner_rpc.PlannerServiceStub(channel)

    async def fetch(sha256: str) -> bytes:
        for attempt in range(1, FETCH_ATTEMPTS + 1):
            try:
                return await once(sha256)
            except Unreachable:
                # A planner that is being started again is no reason to lose a paid answer.
                if attempt == FETCH_ATTEMPTS:
                    raise
                await asyncio.sleep(attempt)
        raise AssertionError("the loop returns or raises")

    async def once(sha256: str) -> bytes:
        found = bytearray()
        try:
            request = planner_pb.StreamHiddenTestsRequest(sha256=sha256)
            async for response in stub.StreamHiddenTests(request, timeout=FETCH_TIMEOUT_S):
                found += response.data
        except aio.AioRpcError as error:
            raise wire.to_error(error) from error
        if hashlib.sha256(found).hexdigest() != sha256:
            raise DataLoss("BLOB_DAMAGED", f"the hidden tests {sha256[:12]} do not match their name")
        return bytes(found)

    return fetch


def planner_fetch(channel: aio.Channel) -> Fetch:
    """A fetch of whole case sets from the planner at `channel`."""
    stub = planner_rpc.PlannerServiceStub(channel)

    async def fetch(case_sha256: str) -> CaseSet:
        found: dict[int, Case] = {}
        try:
            request = planner_pb.StreamReferencesRequest(case_sha256=case_sha256)
            async for response in stub.StreamReferences(request, timeout=FETCH_TIMEOUT_S):
                for reference in response.references:
                    if reference.case_index in found:
                        raise Conflict("DUPLICATE_REFERENCE", f"the planner gave case {reference.case_index} twice")
                    found[reference.case_index] = convert.case(reference)
        except aio.AioRpcError as error:
            raise wire.to_error(error) from error
        if not found:
            raise NotFound("NO_REFERENCES", f"the planner has no references for the case set {case_sha256[:12]}")
        return found

    return fetch
