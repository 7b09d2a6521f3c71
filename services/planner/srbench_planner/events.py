"""What happened to runs, oldest first."""

from __future__ import annotations

import json

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import pages
from srbench_kit.db import Reader
from srbench_kit.values import fill_value

from srbench_planner import convert, store

MAX_PAGE = 1000


async def list_events(
    reader: Reader, run_id: str, number: int, request: pb.ListRunEventsRequest
) -> pb.ListRunEventsResponse:
    """The page of events after `request.after`. Raises: `InvalidInput` (`BAD_PAGE_SIZE`)."""
    size = pages.page_size(request.page_size, MAX_PAGE, MAX_PAGE)
    query = sa.select(store.events).where(store.events.c.run == number, store.events.c.seq > request.after)
    if request.type:
        query = query.where(store.events.c.type.in_(request.type.split(",")))
    query = query.order_by(store.events.c.seq).limit(size + 1)

    def work(connection: Connection) -> pb.ListRunEventsResponse:
        rows = connection.execute(query).all()
        response = pb.ListRunEventsResponse(has_more=len(rows) > size)
        for row in rows[:size]:
            event = response.events.add(seq=row.seq, run_id=run_id, type=row.type)
            event.create_time.CopyFrom(convert.timestamp(row.create_us))
            fill_value(event.data, json.loads(row.data))
        return response

    return await reader.run(work)
