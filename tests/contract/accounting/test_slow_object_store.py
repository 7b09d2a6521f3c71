"""An object store that takes requests and does not answer holds up those who want evidence, and nobody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import postgres

from tests.object_store import CREDENTIALS, ObjectStore, running_object_store

RUN = "run-0123456789abcdef0123"
# More than there are threads for reading, for evidence and connections to the database together.
READERS = postgres.POOL_SIZE + postgres.POOL_OVERFLOW + 40


@pytest.fixture(scope="module")
def s3() -> Iterator[ObjectStore]:
    os.environ.update(CREDENTIALS)
    with running_object_store() as server:
        yield server


async def test_the_ledger_goes_on_while_readers_of_evidence_wait_for_a_store_that_does_not_answer(
    restartable: Any, s3: ObjectStore, planner: Any, facts: Any, evidence_of: Any, tmp_path: Path
) -> None:
    async with restartable(ObjectStore(s3.door, prefix=tmp_path.name).url) as (slow, writer):
        try:
            await go_on(slow, writer, s3, planner, facts, evidence_of)
        finally:
            s3.door.flowing.set()


async def go_on(slow: Any, writer: Any, s3: ObjectStore, planner: Any, facts: Any, evidence_of: Any) -> None:
    planner.add_run(max_cost=10**9)
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("forty-two")), facts.outcome(0))
    await slow.store.writer.run(lambda _connection: slow.store.evidence.seal_old(0))
    depot = slow.store.evidence.depot
    assert depot is not None
    async with asyncio.timeout(60):
        while depot.waiting:  # noqa: ASYNC110 - it is carried by a thread
            await asyncio.sleep(0.02)
    (call,) = (await slow.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls

    s3.door.flowing.clear()
    asked = pb.GetCallRequest(run_id=RUN, call_id=call.id)
    waiting = [asyncio.ensure_future(slow.gateway.GetCall(asked)) for _ in range(READERS)]
    await asyncio.sleep(1)
    for cell in range(1, 5):
        sent = writer.send(facts.dispatch(cell), facts.settle(cell, evidence=evidence_of("x")), facts.outcome(cell))
        assert {ack.reason for ack in await asyncio.wait_for(sent, 60)} == {""}
    page = await asyncio.wait_for(slow.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, correct=True)), 60)
    assert page.total == 5
    assert not any(one.done() for one in waiting), "the store has not answered anybody"

    s3.door.flowing.set()
    assert {found.final for found in await asyncio.gather(*waiting)} == {"forty-two"}
