"""How a service process starts, says that it is ready, and drains."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import uvloop
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from srbench_kit import metrics, settings, tls, tracing
from srbench_kit.auth import AuthInterceptor
from srbench_kit.errors import InvalidInput
from srbench_kit.hosts import is_loopback
from srbench_kit.wire import SERVER_OPTIONS, ErrorInterceptor

DRAIN_S = 10.0
_REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
# Facts and answers are short-lived and hold no cycles; looking for some after every 700 would cost several per cent.
_GC_THRESHOLDS = (20_000, 20, 20)
_log = logging.getLogger(__name__)


def check_exposure(address: str, token: str) -> None:
    """Raises: `InvalidInput` (`TOKEN_REQUIRED`) when `address` can be reached from outside and no token is set."""
    host = address if address.startswith("unix:") else address.rpartition(":")[0]
    if not token and not is_loopback(host):
        raise InvalidInput(
            "TOKEN_REQUIRED",
            f"{address} can be reached from other machines; listening there needs a token",
            value=address,
        )


class _LazyReflection(grpc.GenericRpcHandler):
    """The reflection service, imported when somebody asks for it: it takes a tenth of a service's start."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._handlers: list[grpc.GenericRpcHandler] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The method's handler; `None` for every other service."""
        if not handler_call_details.method.startswith(f"/{_REFLECTION}/"):
            return None
        if not self._handlers:
            from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

            servicer = reflection.aio.ReflectionServicer(self._names)
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self)
        return self._handlers[0].service(handler_call_details)

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Takes what the reflection package would register with a server."""
        self._handlers = list(handlers)

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """The same methods a second time, for servers that look them up by name."""


class Server:
    """One gRPC server with health, reflection, authentication and the table of errors.

    `add` registers servicers, `start` listens, `drain` ends.
    """

    def __init__(self, address: str, interceptors: Sequence[aio.ServerInterceptor] = ()) -> None:
        """`interceptors` see calls that were let in."""
        token = settings.internal_token()
        check_exposure(address, token)
        self.address = address
        self._names: list[str] = [health.SERVICE_NAME, _REFLECTION]
        self._health = health.aio.HealthServicer()
        # The outermost interceptor is the first: errors raised by authentication get details, too.
        self._server = aio.server(
            options=SERVER_OPTIONS, interceptors=[ErrorInterceptor(), AuthInterceptor(token), *interceptors]
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def add(self, servicer: object, register: Callable[..., None], name: str) -> None:
        """Registers `servicer` under its full service name."""
        register(servicer, self._server)
        self._names.append(name)

    async def start(self) -> None:
        """Listens and turns healthy. `port` holds the port afterwards, 0 for a Unix socket."""
        self._server.add_generic_rpc_handlers((_LazyReflection(self._names),))
        secrets = tls.files() if tls.applies(self.address) else None
        if secrets is None:
            self.port = self._server.add_insecure_port(self.address)
        else:
            self.port = self._server.add_secure_port(self.address, tls.server_credentials(secrets))
        await self._server.start()
        for name in ["", *self._names[2:]]:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    @property
    def listening(self) -> str:
        """The address, with the port that was found where 0 was asked for; once it has started."""
        # gRPC gives 1 as the port of a Unix socket.
        unix = self.address.startswith("unix:")
        return self.address if unix else f"{self.address.rpartition(':')[0]}:{self.port}"

    async def drain(self, grace_s: float = DRAIN_S) -> None:
        """Turns unhealthy, refuses new calls, and ends those in hand after `grace_s`."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; a second signal changes nothing."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return stopped


async def serve(server: Server, background: Sequence[Awaitable[None]] = (), grace_s: float = DRAIN_S) -> None:
    """Starts `server`, prints one line with its address, runs until a signal, then drains.

    A background task that fails ends the process and what it has in hand at once: a service without its loop must not look
    healthy.
    """
    stopped = stop_event()
    await server.start()
    print(f"listening {server.listening}", flush=True)
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    tasks = [asyncio.ensure_future(task) for task in background]
    waiter = asyncio.ensure_future(stopped.wait())
    done, _ = await asyncio.wait([waiter, *tasks], return_when=asyncio.FIRST_COMPLETED)
    await server.drain(grace_s if waiter in done else 0)
    for task in [waiter, *tasks]:
        task.cancel()
    for task in done - {waiter}:
        task.result()
    await asyncio.gather(*tasks, return_exceptions=True)


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Runs `main` on uvloop until it returns, and shows the process's metrics meanwhile."""

    async def body() -> None:
        exposition = metrics.expose()
        try:
            await main()
        finally:
            exposition.close()
            # It waits for the collector, for a few seconds at most.
            await asyncio.to_thread(tracing.stop)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(body())
