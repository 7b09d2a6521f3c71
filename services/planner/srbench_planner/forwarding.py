"""A planner that does not have the queue passes calls on to the one that has it, so that callers may talk to any of them.

What reads plans and cases alone is answered here: it needs no queue, and it is the bulk of the bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import sqlalchemy as sa
from grpc import aio
from srbench_kit import wire
from srbench_kit.errors import Unreachable

from srbench_planner.ownership import Ownership

HOP_KEY = "x-srbench-forwarded"
SERVICES = ("/srbench.v1.PlannerService/", "/srbench.v1.WorkQueueService/", "/srbench.v1.RecoveryService/")
ANYWHERE = frozenset(
    {
        *("/srbench.v1.PlannerService/" + name for name in ("GetCatalog", "GetPlan", "StreamPlanCases")),
        *("/srbench.v1.PlannerService/" + name for name in ("StreamReferences", "StreamHiddenTests", "StreamSealedCases")),
        "/srbench.v1.WorkQueueService/GetRunContext",
    }
)
# As long as a hand-over takes, and a little more.
PATIENCE_S = 12.0
PAUSE_S = 0.2
# What a hand-over looks like; the first is a process that does not answer. All other answers are the owner's own.
_HAND_OVER = frozenset({"UNAVAILABLE", "QUEUE_LOST", "NOT_OWNER", "NO_OWNER", "STORAGE_UNAVAILABLE"})
KNOWN_S = 0.5


class Forwarding(aio.ServerInterceptor):
    """Answers calls here while this process has the queue, else lets the owner answer them."""

    def __init__(self, ownership: Ownership, ready: asyncio.Event) -> None:
        self._ownership = ownership
        self._ready = ready
        self._channels: dict[str, aio.Channel] = {}
        self._known, self._known_until = "", 0.0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler, method = await continuation(handler_call_details), handler_call_details.method
        local = self._here or method in ANYWHERE or not method.startswith(SERVICES)
        if handler is None or local:
            return handler
        if HOP_KEY in dict(handler_call_details.invocation_metadata or ()):
            return _refusal()
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._unary(handler, method))
        return grpc.unary_stream_rpc_method_handler(self._stream(handler, method))

    async def close(self) -> None:
        """Closes the channels to other planners."""
        for channel in self._channels.values():
            await channel.close()

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(request: bytes, context: Any) -> bytes:
            until = time.monotonic() + PATIENCE_S
            while True:
                try:
                    owner = await self._owner()
                    if not owner:
                        response = await handler.unary_unary(handler.request_deserializer(request), context)
                        return bytes(handler.response_serializer(response))
                    call: Any = self._channel(owner).unary_unary(method)
                    return bytes(await call(request, metadata=_passed(context), timeout=context.time_remaining()))
                except (aio.AioRpcError, Unreachable) as error:
                    await self._again(error, until)

        return answer

    def _stream(self, handler: Any, method: str) -> Any:
        async def answer(request: bytes, context: Any) -> AsyncIterator[bytes]:
            until, begun = time.monotonic() + PATIENCE_S, False
            while True:
                try:
                    owner = await self._owner()
                    if not owner:
                        async for response in handler.unary_stream(handler.request_deserializer(request), context):
                            yield handler.response_serializer(response)
                        return
                    call: Any = self._channel(owner).unary_stream(method)
                    async for part in call(request, metadata=_passed(context), timeout=context.time_remaining()):
                        begun = True
                        yield part
                    return
                except (aio.AioRpcError, Unreachable) as error:
                    # What has begun cannot begin again under the caller's eyes.
                    await self._again(error, 0.0 if begun else until)

        return answer

    async def _again(self, error: aio.AioRpcError | Unreachable, until: float) -> None:
        """Waits before another try, unless the answer is one, or the time is over."""
        reason = error.reason if isinstance(error, Unreachable) else wire.reason(error)
        if reason not in _HAND_OVER or time.monotonic() > until:
            raise error
        self._known_until = 0.0
        await asyncio.sleep(PAUSE_S)

    async def _owner(self) -> str:
        """Where the owner listens; empty when it is this process. Raises: `Unreachable` (`NO_OWNER`)."""
        if self._here:
            return ""
        if time.monotonic() > self._known_until:
            try:
                self._known = await self._ownership.owner()
            except sa.exc.DBAPIError as error:
                raise Unreachable("STORAGE_UNAVAILABLE", "the database does not answer") from error
            self._known_until = time.monotonic() + KNOWN_S
        becoming = self._ownership.term and not self._ownership.lost.is_set()
        if not self._known or becoming:
            raise Unreachable("NO_OWNER", "no planner has the queue at the moment")
        return self._known

    @property
    def _here(self) -> bool:
        return self._ready.is_set() and not self._ownership.lost.is_set()

    def _channel(self, address: str) -> aio.Channel:
        found = self._channels.get(address)
        if found is None:
            found = self._channels[address] = wire.channel(address)
        return found


def _passed(context: Any) -> aio.Metadata:
    """The caller's own words, and a mark that they come through another planner."""
    given = [(key, value) for key, value in context.invocation_metadata() or () if not key.startswith(("grpc-", ":"))]
    kept = [(key, value) for key, value in given if key not in ("user-agent", "te", "content-type")]
    return aio.Metadata(*kept, (HOP_KEY, "1"))


def _refusal() -> grpc.RpcMethodHandler[Any, Any]:
    async def refuse(_request: Any, _context: Any) -> Any:
        raise Unreachable("NOT_OWNER", "this planner does not have the queue any more")

    return grpc.unary_unary_rpc_method_handler(refuse)
