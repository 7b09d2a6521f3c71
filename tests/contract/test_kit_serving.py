"""A server of the kit: health without a token, refusals with a reason, errors with their facts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import executor_service_pb2 as pb
from srbench.v1 import executor_service_pb2_grpc as rpc
from srbench_kit import auth, wire
from srbench_kit.errors import Conflict, InvalidInput
from srbench_kit.serving import Server


class Refusing(rpc.ExecutorServiceServicer):
    async def GetExecutorStatus(self, request: pb.GetExecutorStatusRequest, context: Any) -> pb.ExecutorStatus:
        raise Conflict("NOT_NOW", "it is not the time, 3 was expected", wanted=3)

    async def DrainExecutor(self, request: pb.DrainExecutorRequest, context: Any) -> pb.ExecutorStatus:
        return pb.ExecutorStatus(executor_id=auth.actor(context).id)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    monkeypatch.setenv("SR_BENCH_INTERNAL_TOKEN", "s3cret-token")
    server = Server("127.0.0.1:0")
    server.add(Refusing(), rpc.add_ExecutorServiceServicer_to_server, "srbench.v1.ExecutorService")
    await server.start()
    yield server
    await server.drain(0)


async def test_errors_cross_the_wire_with_reason_and_facts(server: Server) -> None:
    async with wire.channel(f"127.0.0.1:{server.port}", auth.service_metadata("gateway")) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await rpc.ExecutorServiceStub(channel).GetExecutorStatus(pb.GetExecutorStatusRequest())
    error = wire.to_error(caught.value)
    assert isinstance(error, Conflict)
    assert (error.reason, error.facts) == ("NOT_NOW", {"wanted": "3"})


@pytest.mark.parametrize("filler", ["a", "é", "💩", "%", "\x1b", "\n"])
async def test_an_error_that_repeats_a_huge_value_keeps_its_reason_and_both_its_ends(filler: str) -> None:
    class Repeating(rpc.ExecutorServiceServicer):
        async def GetExecutorStatus(self, request: pb.GetExecutorStatusRequest, context: Any) -> pb.ExecutorStatus:
            huge = filler * 100_000
            raise InvalidInput("BAD_FIELD", f"name is {huge}; expected less", field="name", value=huge, last=huge)

    server = Server("127.0.0.1:0")
    server.add(Repeating(), rpc.add_ExecutorServiceServicer_to_server, "srbench.v1.ExecutorService")
    await server.start()
    # As anybody's client: with gRPC's own limits.
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await rpc.ExecutorServiceStub(channel).GetExecutorStatus(pb.GetExecutorStatusRequest())
    await server.drain(0)
    error = wire.to_error(caught.value)
    assert isinstance(error, InvalidInput)
    assert (error.reason, error.facts["field"]) == ("BAD_FIELD", "name")
    assert error.message.startswith("name is " + filler)
    assert error.message.endswith(filler + "; expected less")


@pytest.mark.parametrize("data", [b"\xff", b"\x08", b"\x0a\x05ab", b"\xbf" * 40])
async def test_bytes_that_are_no_message_are_bad_input_and_no_bug(
    server: Server, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire.channel(f"127.0.0.1:{server.port}", auth.service_metadata("gateway")) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary("/srbench.v1.ExecutorService/GetExecutorStatus")(data)
    error = wire.to_error(caught.value)
    assert isinstance(error, InvalidInput)
    assert (error.reason, error.message) == ("BAD_MESSAGE", "the request is not one of GetExecutorStatus")
    assert "bug in" not in caplog.text


async def test_the_actor_is_forwarded(server: Server) -> None:
    metadata = auth.service_metadata("gateway") | auth.actor_metadata(auth.Actor(id="ann", role="read"))
    async with wire.channel(f"127.0.0.1:{server.port}", metadata) as channel:
        status = await rpc.ExecutorServiceStub(channel).DrainExecutor(pb.DrainExecutorRequest())
    assert status.executor_id == "ann"


async def test_a_wrong_token_is_refused_and_health_is_not(server: Server) -> None:
    async with wire.channel(f"127.0.0.1:{server.port}", {"authorization": "Bearer wrong"}) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await rpc.ExecutorServiceStub(channel).DrainExecutor(pb.DrainExecutorRequest())
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert wire.reason(caught.value) == "BAD_TOKEN"
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=""))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_other_addresses_than_loopback_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SR_BENCH_INTERNAL_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match="needs a token"):
        Server("0.0.0.0:0")


async def test_a_quiet_stream_outlives_a_reader_that_asks_often_whether_it_lives(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes of silence under a ping each ten seconds, both shortened alike: nothing is sent away or told twice."""
    asked = [(name, 50 if name == "grpc.keepalive_time_ms" else value) for name, value in wire._NETWORK_OPTIONS]
    monkeypatch.setattr(wire, "_NETWORK_OPTIONS", asked)
    async with wire.channel(f"127.0.0.1:{server.port}") as channel:
        watched = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(service="srbench.v1.ExecutorService")
        )
        seen = [(await watched.read()).status]
        await asyncio.sleep(7)
        # Draining turns the service unhealthy, which is the next thing to hear.
        draining = asyncio.ensure_future(server.drain(5))
        seen.append((await watched.read()).status)
        watched.cancel()
        await draining
    assert seen == [health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING]
