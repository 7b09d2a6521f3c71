"""Facts as executors tell them: built with growing sequences, and written over one stream."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import zstandard
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import work_queue_service_pb2 as queue_pb

RUN = "run-0123456789abcdef0123"
DIGEST = hashlib.sha256(b"request").hexdigest()


def stamp(micros: int) -> Timestamp:
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def packed_evidence(body: bytes, headers: Sequence[tuple[str, str]] = (("content-type", "text/event-stream"),)) -> bytes:
    message = pb.Evidence(http_status=200, body=body, clean_end=True)
    for name, value in headers:
        message.headers.add(name=name, value=value)
    return zstandard.compress(message.SerializeToString())


def answer(text: str) -> bytes:
    """A whole streamed answer."""
    first = json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]})
    last = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return f"data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n".encode()


@dataclass
class Facts:
    """Builds facts with growing sequences."""

    run_id: str = RUN
    sequence: int = 0

    def _next(self) -> int:
        self.sequence += 1
        return self.sequence

    def key(self, cell: int, ordinal: int = 0, offer: int = 0) -> pb.CallKey:
        return pb.CallKey(run_id=self.run_id, cell=cell, ordinal=ordinal, offer=offer)

    def dispatch(self, cell: int, ordinal: int = 0, offer: int = 0, **changes: Any) -> pb.Fact:
        values: dict[str, Any] = {
            "token": 1,
            "case_index": cell // 2,
            "target_index": cell % 2,
            "role": pb.CALL_ROLE_SUBJECT,
            "request_sha256": DIGEST,
            "request_byte_count": 100,
            "message_count": 1,
            "max_output_tokens": 100,
            "dispatch_time": stamp(1_700_000_000_000_000 + cell),
            "executor_id": "e1",
        }
        values |= changes
        return pb.Fact(sequence=self._next(), dispatch=pb.Dispatch(key=self.key(cell, ordinal, offer), **values))

    def receipt(self, cost: int | None = 60, **changes: Any) -> pb.Receipt:
        values: dict[str, Any] = {
            "status": pb.CALL_STATUS_COMPLETED,
            "http_status": 200,
            "finish_reason": "stop",
            "output_complete": True,
            "response_model": "m",
            "usage_final": True,
            "latency_ns": 600_000_000,
            "ttft_ns": 200_000_000,
            "first_token_clock": "kernel",
            "start_time": stamp(1_700_000_000_000_500),
            "finish_time": stamp(1_700_000_000_600_500),
        }
        if cost is not None:
            values["usage_json"] = json.dumps({"in": 3, "out": 4, "cost": cost}).encode()
        return pb.Receipt(**(values | changes))

    def settle(
        self, cell: int, ordinal: int = 0, offer: int = 0, *, evidence: bytes = b"", **changes: Any
    ) -> list[pb.Fact]:
        key = self.key(cell, ordinal, offer)
        parts = self.parts(key, evidence)
        settle = pb.Settle(key=key, receipt=self.receipt(**changes))
        if evidence:
            settle.evidence_sha256 = hashlib.sha256(evidence).hexdigest()
            settle.evidence_byte_count = len(evidence)
        return [*parts, pb.Fact(sequence=self._next(), settle=settle)]

    def parts(self, key: pb.CallKey, evidence: bytes, size: int = 1 << 20) -> list[pb.Fact]:
        return [
            pb.Fact(sequence=self._next(), evidence=pb.EvidenceChunk(key=key, offset=at, data=evidence[at : at + size]))
            for at in range(0, len(evidence), size)
        ]

    def outcome(self, cell: int, **changes: Any) -> pb.Fact:
        values: dict[str, Any] = {
            "token": 1,
            "case_index": cell // 2,
            "target_index": cell % 2,
            "state": queue_pb.CELL_STATE_DONE,
            "correct": True,
            "score": 1.0,
            "answer_status": "parsed",
            "grader_version": "choice-1",
            "start_time": stamp(1_700_000_000_000_000),
            "finish_time": stamp(1_700_000_001_500_000),
        }
        outcome = pb.CellOutcome(run_id=self.run_id, cell=cell, **(values | changes))
        return pb.Fact(sequence=self._next(), outcome=outcome)


@dataclass
class FactWriter:
    """One open `RecordFacts` stream."""

    stub: rpc.AccountingServiceStub
    _waiting: dict[int, asyncio.Future[pb.FactAck]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._call = self.stub.RecordFacts()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for response in self._call:
            for ack in response.acks:
                self._waiting.pop(ack.sequence).set_result(ack)

    def send_later(self, *facts: pb.Fact | list[pb.Fact]) -> asyncio.Task[list[pb.FactAck]]:
        """Sends without waiting for the acknowledgements."""
        return asyncio.ensure_future(self.send(*facts))

    async def send(self, *facts: pb.Fact | list[pb.Fact]) -> list[pb.FactAck]:
        """Sends facts in one message and waits for the acknowledgements of those that get one."""
        flat = [fact for group in facts for fact in (group if isinstance(group, list) else [group])]
        acked = [fact for fact in flat if fact.WhichOneof("fact") not in ("evidence", "activity")]
        futures = [self._waiting.setdefault(fact.sequence, asyncio.get_running_loop().create_future()) for fact in acked]
        await self._call.write(pb.RecordFactsRequest(facts=flat))
        return [await future for future in futures]

    async def reasons(self, *facts: pb.Fact | list[pb.Fact]) -> list[str]:
        return [ack.reason for ack in await self.send(*facts)]

    async def close(self) -> None:
        await self._call.done_writing()
        await self._reading
