"""Reading request bodies from strangers: bounded in size and time, one JSON object, nothing twice, nothing unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import Message
from srbench_kit import documents
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json
from srbench_kit.wire import MAX_MESSAGE_BYTES
from starlette.requests import ClientDisconnect, Request

MIB = 1024 * 1024
# Beyond this a body is parsed beside the event loop, and only so many at once: others must not wait for it.
BIG_BYTES = 256 * 1024
BIG_AT_ONCE = 2
MESSAGE_SPARE_BYTES = 4096
_Made = TypeVar("_Made", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of a body is read, and how long that may take.

    Attributes:
        plan_bytes: largest body that may carry a manifest with its cases.
        other_bytes: largest body of every other route.
        idle_s: longest silence within a body.
        total_s: longest time for a whole body.
    """

    plan_bytes: int = 64 * MIB
    other_bytes: int = MIB
    idle_s: float = 10.0
    total_s: float = 120.0
    parsers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BIG_AT_ONCE))


async def read_message(
    request: Request, bounds: Bounds, most: int, make: Callable[[dict[str, Json]], _Made], *, may_be_empty: bool = False
) -> _Made:
    """What `make` makes of the JSON object in the body of `request`, at most `most` bytes long.

    Raises: `InvalidInput` (`BODY_TOO_LARGE`, `SLOW_BODY`, `NOT_JSON`, `EMPTY_BODY`, `NOT_AN_OBJECT`, those of
    `documents.load_json` and of `make`); `ClientDisconnect` when the caller is gone.
    """
    _check_length(request.headers.get("content-length"), most)
    data = await _read(request, bounds, most)
    if not data:
        if may_be_empty:
            return make({})
        raise InvalidInput("EMPTY_BODY", "the body is empty; expected a JSON object")
    _check_kind(request)
    if len(data) <= BIG_BYTES:
        return _parse(data, make)
    async with bounds.parsers:
        return await asyncio.to_thread(_parse, data, make)


def _parse(data: bytes, make: Callable[[dict[str, Json]], _Made]) -> _Made:
    body = documents.load_json(data, "the body")
    if not isinstance(body, dict):
        raise InvalidInput("NOT_AN_OBJECT", f"the body is {kind_of(body)}; expected a JSON object")
    message = make(body)
    if len(data) > BIG_BYTES and message.ByteSize() > MAX_MESSAGE_BYTES - MESSAGE_SPARE_BYTES:
        raise InvalidInput("BODY_TOO_LARGE", "the body is larger, as a message, than services take from each other")
    return message


def kind_of(value: Json) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def _check_length(header: str | None, most: int) -> None:
    if header is not None and header.isdecimal() and int(header[:20]) > most:
        raise _too_large(most)


def _check_kind(request: Request) -> None:
    """A body that does not call itself JSON may be a form that another site's page sends without asking."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        raise InvalidInput("NOT_JSON", "the header Content-Type must be application/json, in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidInput("NOT_JSON", "a body with a content coding is not accepted; send plain JSON")


async def _read(request: Request, bounds: Bounds, most: int) -> bytes:
    data = bytearray()
    try:
        async with asyncio.timeout(bounds.total_s):
            while True:
                message = await asyncio.wait_for(request.receive(), bounds.idle_s)
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                data += message.get("body", b"")
                if len(data) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return bytes(data)
    except TimeoutError:
        sentence = f"the body did not come within {bounds.total_s:g} s, or paused for {bounds.idle_s:g} s"
        raise InvalidInput("SLOW_BODY", sentence) from None


def _too_large(most: int) -> InvalidInput:
    return InvalidInput("BODY_TOO_LARGE", f"the body is larger than {most} bytes, the most for this route", limit=most)
