"""gRPC as this project uses it: channels, the status table, and the interceptor that turns errors into statuses."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from srbench_kit.errors import (
    Conflict,
    DataLoss,
    Exhausted,
    Forbidden,
    InvalidInput,
    NotFound,
    SrBenchError,
    Unauthenticated,
    Unreachable,
)

DOMAIN = "srbench"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_DETAILS_KEY = "grpc-status-details-bin"
_log = logging.getLogger(__name__)

STATUS: dict[str, grpc.StatusCode] = {
    "invalid_input": grpc.StatusCode.INVALID_ARGUMENT,
    "not_found": grpc.StatusCode.NOT_FOUND,
    "conflict": grpc.StatusCode.FAILED_PRECONDITION,
    "exhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "unreachable": grpc.StatusCode.UNAVAILABLE,
    "unauthenticated": grpc.StatusCode.UNAUTHENTICATED,
    "forbidden": grpc.StatusCode.PERMISSION_DENIED,
    "data_loss": grpc.StatusCode.DATA_LOSS,
}
_CLASSES: dict[grpc.StatusCode, type[SrBenchError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInput,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Exhausted,
    grpc.StatusCode.UNAVAILABLE: Unreachable,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unreachable,
    grpc.StatusCode.CANCELLED: Unreachable,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}

# Reads and idempotent calls may be repeated by the channel; nothing that dispatches a generation runs over gRPC.
_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 4,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "2s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)

CHANNEL_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.service_config", _SERVICE_CONFIG),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A long quiet stream is normal here; no keep-alive pings, so no peer can call them too many.
    ("grpc.keepalive_time_ms", 2**31 - 1),
]
SERVER_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.max_metadata_size", 32 * 1024),
]


def channel(address: str, metadata: dict[str, str] | None = None) -> aio.Channel:
    """One channel to `address` for the life of the process; every call carries `metadata`."""
    interceptors: list[aio.ClientInterceptor] = client_metadata(metadata) if metadata else []
    return aio.insecure_channel(address, options=CHANNEL_OPTIONS, interceptors=interceptors)


def client_metadata(metadata: dict[str, str]) -> list[aio.ClientInterceptor]:
    """Interceptors, one a kind of call, that add `metadata` to each call."""

    def details(found: aio.ClientCallDetails) -> aio.ClientCallDetails:
        merged = aio.Metadata(*(found.metadata or ()), *metadata.items())
        return aio.ClientCallDetails(found.method, found.timeout, merged, found.credentials, found.wait_for_ready)

    class UnaryUnary(aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation: Any, call_details: Any, request: Any) -> Any:
            return await continuation(details(call_details), request)

    class UnaryStream(aio.UnaryStreamClientInterceptor):
        async def intercept_unary_stream(self, continuation: Any, call_details: Any, request: Any) -> Any:
            return await continuation(details(call_details), request)

    class StreamStream(aio.StreamStreamClientInterceptor):
        async def intercept_stream_stream(self, continuation: Any, call_details: Any, requests: Any) -> Any:
            return await continuation(details(call_details), requests)

    return [UnaryUnary(), UnaryStream(), StreamStream()]


def status_details(error: SrBenchError) -> tuple[tuple[str, bytes], ...]:
    """The trailer that carries `error` as a `google.rpc.Status` with an `ErrorInfo`."""
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.facts)
    packed = any_pb2.Any()
    packed.Pack(info)
    status = status_pb2.Status(code=STATUS[error.kind].value[0], message=error.message, details=[packed])
    return ((_DETAILS_KEY, status.SerializeToString()),)


def to_error(error: grpc.RpcError | aio.AioRpcError) -> SrBenchError:
    """The error of the taxonomy that a failed call stands for; an unknown status becomes a plain `SrBenchError`."""
    code = error.code()
    message = error.details() or code.name
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unreachable("DEADLINE_EXCEEDED", "the service did not answer in time")
    info = _error_info(error)
    kind = _CLASSES.get(code, SrBenchError)
    if info is not None:
        return kind(info.reason, message, **dict(info.metadata))
    return kind(code.name, message)


def reason(error: grpc.RpcError | aio.AioRpcError) -> str:
    """The stable reason of a failed call, or the status name when it carries none."""
    return to_error(error).reason


def _error_info(error: Any) -> error_details_pb2.ErrorInfo | None:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            status = status_pb2.Status.FromString(value)
            for detail in status.details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info
    return None


async def _abort(context: aio.ServicerContext[Any, Any], error: Exception, method: str) -> NoReturn:
    if isinstance(error, SrBenchError) and error.kind in STATUS:
        await context.abort(STATUS[error.kind], error.message, status_details(error))
    if isinstance(error, aio.AioRpcError):
        inner = to_error(error)
        if inner.kind in STATUS:
            await context.abort(STATUS[inner.kind], inner.message, status_details(inner))
    _log.error("bug in %s", method, exc_info=error)
    await context.abort(grpc.StatusCode.UNKNOWN, "internal error; the service's log has the details")
    raise AssertionError("abort returns never")


class ErrorInterceptor(aio.ServerInterceptor):
    """Turns errors of the taxonomy into statuses with details, for all four kinds of methods."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        return wrap_handler(handler, handler_call_details.method) if handler is not None else handler


def wrap_handler(handler: Any, method: str) -> grpc.RpcMethodHandler[Any, Any]:
    """`handler` with its behaviour guarded by the status table."""

    def unary(behavior: Any) -> Any:
        async def guarded(request: Any, context: Any) -> Any:
            try:
                return await behavior(request, context)
            except (SrBenchError, aio.AioRpcError, Exception) as error:
                _reraise_abort(error)
                await _abort(context, error, method)

        return guarded

    def stream(behavior: Any) -> Any:
        async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                async for response in behavior(request, context):
                    yield response
            except (SrBenchError, aio.AioRpcError, Exception) as error:
                _reraise_abort(error)
                await _abort(context, error, method)

        return guarded

    if handler.unary_unary:
        make, behavior, wrap = grpc.unary_unary_rpc_method_handler, handler.unary_unary, unary
    elif handler.unary_stream:
        make, behavior, wrap = grpc.unary_stream_rpc_method_handler, handler.unary_stream, stream
    elif handler.stream_unary:
        make, behavior, wrap = grpc.stream_unary_rpc_method_handler, handler.stream_unary, unary
    else:
        make, behavior, wrap = grpc.stream_stream_rpc_method_handler, handler.stream_stream, stream
    wrapped: grpc.RpcMethodHandler[Any, Any] = make(
        wrap(behavior), handler.request_deserializer, handler.response_serializer
    )
    return wrapped


def _reraise_abort(error: BaseException) -> None:
    """Lets pass what `context.abort` raised; it has answered already."""
    if isinstance(error, aio.AbortError):
        raise error
