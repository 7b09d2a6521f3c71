"""gRPC as this project uses it: channels, the status table, and the interceptor that turns errors into statuses."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from srbench_kit import tls
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
# A status is two headers, and clients give up on more than 8 KiB of headers: they would see a broken transport.
_MESSAGE_BYTES = 2700
_FACTS_BYTES = 900
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
]
# Over a network a peer may be gone, or stopped, without a word; on a Unix socket the kernel tells.
_UNIX_OPTIONS = [("grpc.keepalive_time_ms", 2**31 - 1)]
_NETWORK_OPTIONS = [
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
]
SERVER_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.max_metadata_size", 32 * 1024),
    # A long quiet stream is normal here, so a peer that asks now and then whether this one lives is no nuisance.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


def channel(address: str, metadata: dict[str, str] | None = None) -> aio.Channel:
    """One channel to `address` for the life of the process; every call carries `metadata`.

    A comma-separated list of addresses, each an IP and a port, is one service of several processes: the first that answers
    is used, and the next when it is gone. So is a name that stands for several addresses.
    """
    interceptors: list[aio.ClientInterceptor] = client_metadata(metadata) if metadata else []
    if "," in address:
        parts = [part.strip() for part in address.split(",")]
        address = ("ipv6:" if parts[0].startswith("[") else "ipv4:") + ",".join(parts)
    options = CHANNEL_OPTIONS + (_UNIX_OPTIONS if address.startswith("unix:") else _NETWORK_OPTIONS)
    secrets = tls.files() if tls.applies(address) else None
    if secrets is None:
        return aio.insecure_channel(address, options=options, interceptors=interceptors)
    options = [*options, tls.TARGET_OPTION]
    return aio.secure_channel(address, tls.channel_credentials(secrets), options=options, interceptors=interceptors)


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


def shortened(error: SrBenchError) -> SrBenchError:
    """`error`, its texts short enough for a status: a message may repeat what a caller sent, however long that is."""
    facts: dict[str, str] = {}
    left = _FACTS_BYTES
    for key, value in error.facts.items():
        facts[key] = _cut(value, left - len(key.encode()))
        left -= len(key.encode()) + len(facts[key].encode())
        if left <= 0:
            break
    return type(error)(error.reason, _cut(error.message, _MESSAGE_BYTES), **facts)


def _cut(text: str, most: int) -> str:
    """`text` with what does not fit in `most` bytes of a header left out of its middle."""
    # A header says a percent sign, and each byte that is not printable ASCII, with three characters.
    sizes = [
        1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode("utf-8", "replace"))
        for character in text
    ]
    if sum(sizes) <= most:
        return text
    kept = [0, 0]
    for end, room in ((0, (most - 9) * 2 // 3), (1, (most - 9) // 3)):
        for size in reversed(sizes) if end else sizes:
            room -= size
            if room < 0:
                break
            kept[end] += 1
    return text[: kept[0]] + "…" + text[len(text) - kept[1] :]


async def refuse(context: aio.ServicerContext[Any, Any], error: SrBenchError) -> NoReturn:
    """Ends a call with the status of `error`."""
    error = shortened(error)
    code = STATUS.get(error.kind, grpc.StatusCode.INTERNAL)
    await context.abort(code, error.message, status_details(error) if error.kind in STATUS else ())
    raise AssertionError("abort returns never")


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
        await refuse(context, error)
    if isinstance(error, aio.AioRpcError):
        inner = to_error(error)
        if inner.kind in STATUS:
            await refuse(context, inner)
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
                _check_read(request, method)
                return await behavior(request, context)
            except (SrBenchError, aio.AioRpcError, Exception) as error:
                _reraise_abort(error)
                await _abort(context, error, method)

        return guarded

    def stream(behavior: Any) -> Any:
        if inspect.iscoroutinefunction(behavior):
            # It writes its answers itself, as the watch over a service's health does.
            return unary(behavior)

        async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                _check_read(request, method)
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
    read = handler.request_deserializer if handler.request_streaming else _reading(handler.request_deserializer)
    wrapped: grpc.RpcMethodHandler[Any, Any] = make(wrap(behavior), read, handler.response_serializer)
    return wrapped


def _reading(deserializer: Any) -> Any:
    """`deserializer`, but bytes that are no such message become the error, which the handler tells in our words."""

    def read(data: bytes) -> Any:
        try:
            return deserializer(data)
        except DecodeError as error:
            return error

    return read if deserializer is not None else None


def _check_read(request: Any, method: str) -> None:
    if isinstance(request, DecodeError):
        raise InvalidInput("BAD_MESSAGE", f"the request is not one of {method.rpartition('/')[2]}", field=method)


def _reraise_abort(error: BaseException) -> None:
    """Lets pass what `context.abort` raised; it has answered already."""
    if isinstance(error, aio.AbortError):
        raise error
