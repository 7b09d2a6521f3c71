"""What the planner asks of the grader: whether its machine has what benchmarks need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grpc import aio
from srbench.v1 import grader_service_pb2_grpc as rpc
from srbench.v1 import setup_pb2 as pb
from srbench_kit import auth, wire
from srbench_kit.values import Json, fill_value

TIMEOUT_S = 60.0


class GraderClient:
    """The grader at `address`; an empty address stands for a grader that nobody named."""

    def __init__(self, address: str) -> None:
        self._channel: aio.Channel | None = wire.channel(address, auth.service_metadata("planner")) if address else None

    async def inspect(self, benchmarks: Sequence[str], options: Mapping[str, Json]) -> list[pb.SetupItem]:
        """What the graders of `benchmarks` need. A grader that cannot be asked is itself what is missing."""
        if not benchmarks:
            return []
        if self._channel is None:
            return _missing(benchmarks, "the planner knows no grader", "set SR_BENCH_GRADER_ADDRESS for the planner")
        stub: rpc.GraderServiceAsyncStub = rpc.GraderServiceStub(self._channel)
        request = pb.InspectSetupRequest(benchmarks=benchmarks)
        fill_value(request.options, dict(options))
        try:
            return list((await stub.InspectSetup(request, timeout=TIMEOUT_S)).items)
        except aio.AioRpcError as error:
            return _missing(benchmarks, wire.to_error(error).message, "start the grader")

    async def close(self) -> None:
        """Closes the channel."""
        if self._channel is not None:
            await self._channel.close()


def _missing(benchmarks: Sequence[str], detail: str, remedy: str) -> list[pb.SetupItem]:
    return [pb.SetupItem(benchmark=name, item="grader", detail=detail, remedy=remedy) for name in benchmarks]
