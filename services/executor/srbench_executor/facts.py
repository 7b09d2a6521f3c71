"""Reports facts to accounting: one stream, in batches, each fact acknowledged after a durable commit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub

from srbench_executor.batching import BatchStream


class _Facts:
    name = "accounting"

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def open(self) -> Any:
        return self._stub.RecordFacts()

    def number(self, item: pb.Fact, sequence: int) -> None:
        item.sequence = sequence

    def byte_size(self, item: pb.Fact) -> int:
        if item.HasField("evidence"):
            return len(item.evidence.data) + 512
        # A routing document is the one thing beside evidence that may be large.
        return item.ByteSize() + 512 if item.HasField("outcome") and item.outcome.HasField("details") else 512

    def message(self, items: Sequence[pb.Fact]) -> pb.RecordFactsRequest:
        return pb.RecordFactsRequest(facts=items)

    def replies(self, message: pb.RecordFactsResponse) -> Iterable[tuple[int, pb.FactAck]]:
        return [(ack.sequence, ack) for ack in message.acks]


class FactStream:
    """Accounting, as this process talks to it."""

    def __init__(self, stub: AccountingServiceStub) -> None:
        self._stream: BatchStream[pb.Fact, pb.FactAck] = BatchStream(_Facts(stub))

    def record(self, facts: list[pb.Fact]) -> asyncio.Future[pb.FactAck]:
        """Reports `facts` in order; the future holds the acknowledgement of the last."""
        return self._stream.submit(facts)

    def report_activity(self, report: pb.ActivityReport) -> None:
        """Says what calls are doing; lost when accounting is not there."""
        self._stream.post(pb.Fact(activity=report))

    async def run(self) -> None:
        """Keeps the stream open until cancelled."""
        await self._stream.run()
