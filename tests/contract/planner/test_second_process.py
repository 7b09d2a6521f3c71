"""A second planner over the same SQLite store, by mistake: the newest has the queue, the older one saves nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from planner_doubles import case, manifest
from srbench_kit.errors import Unreachable
from srbench_planner import store

pytestmark = pytest.mark.sqlite_only


async def test_the_older_process_is_fenced_and_the_newer_goes_on(start: Any) -> None:
    first = await start()
    run = await first.run(manifest(cases=[case("q1"), case("q2")]))
    (lease,) = await first.lease(most=1)
    second = await start()
    with pytest.raises(Unreachable) as caught:
        await first.service.writer.run(lambda connection: connection.execute(sa.delete(store.cells)))
    assert caught.value.reason == "QUEUE_LOST"
    (ended,) = await asyncio.wait_for(asyncio.gather(first.ticking, return_exceptions=True), 60)
    assert isinstance(ended, Unreachable)
    await second.complete([lease])
    await second.complete(await second.lease())
    assert (await second.ended(run.id)).status == "completed"
