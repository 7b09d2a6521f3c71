"""Sending one request over a transport and waiting for the end of whoever listens to its answer."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from srbench_executor.call import Cut
from srbench_executor.exchange import Abortable, Listener, NotAccepted, Outgoing, Transport


class Carried(Listener, Protocol):
    """A listener with one end."""

    ended: asyncio.Future[None]
    cut: Cut | None

    def attach(self, exchange: Abortable) -> None:
        """Says what carries it."""

    def abandon(self) -> None:
        """The request was never written: nobody will hear of it again."""


async def carry(transport: Transport, outgoing: Outgoing, call: Carried, connect_s: float) -> NotAccepted | None:
    """Sends and waits for the end; what kept the request from being written, if anything did."""
    exchange = transport.start_now(outgoing, call)
    if exchange is not None:
        call.attach(exchange)
        await call.ended
        return None
    starting = asyncio.ensure_future(transport.start(outgoing, call, connect_s))
    # A call that is stopped while it connects does not wait for the connection.
    either: list[asyncio.Future[Any]] = [starting, call.ended]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    if starting.cancelled():
        cut = call.cut
        assert cut is not None, "only a cut ends a call that has not begun"
        return NotAccepted(cut.reason, cut.message)
    error = starting.exception()
    if isinstance(error, NotAccepted):
        call.abandon()
        return error
    if error is not None:
        call.abandon()
        raise error
    call.attach(starting.result())
    await call.ended
    return None
