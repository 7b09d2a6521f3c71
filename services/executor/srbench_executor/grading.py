"""Has answers graded: one stream to the grader, in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from srbench.v1 import grader_service_pb2 as pb
from srbench.v1.grader_service_pb2_grpc import GraderServiceStub

from srbench_executor.batching import BatchStream


class _Answers:
    name = "the grader"

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def open(self) -> Any:
        return self._stub.Grade()

    def number(self, item: pb.Answer, sequence: int) -> None:
        item.sequence = sequence

    def byte_size(self, item: pb.Answer) -> int:
        return 4 * len(item.text) + 256

    def message(self, items: Sequence[pb.Answer]) -> pb.GradeRequest:
        return pb.GradeRequest(answers=items)

    def replies(self, message: pb.GradeResponse) -> Iterable[tuple[int, pb.Grade]]:
        return [(grade.sequence, grade) for grade in message.grades]


class GradeStream:
    """The grader, as this process talks to it."""

    def __init__(self, stub: GraderServiceStub) -> None:
        self._stream: BatchStream[pb.Answer, pb.Grade] = BatchStream(_Answers(stub))

    def grade(self, answer: pb.Answer) -> asyncio.Future[pb.Grade]:
        """Has `answer` judged."""
        return self._stream.submit([answer])

    async def run(self) -> None:
        """Keeps the stream open until cancelled."""
        await self._stream.run()
