"""What a transport and a call know of each other: one request, one answer, told by callbacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from srbench_kit.completion import Headers


class NotAccepted(Exception):
    """The endpoint provably never saw the request: it may be offered again.

    Attributes:
        reason: `connect_failed`, `name_not_resolved` or `tls_failed`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a connection goes."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request: where to, its path, its headers in order, its body, which only a POST has."""

    origin: Origin
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    method: str = "POST"


class Listener(Protocol):
    """Who hears of one exchange. Times are `time.monotonic_ns()`."""

    @property
    def wants_stamps(self) -> bool:
        """Whether the first token is still to come, so that each piece's time of arrival matters."""

    @property
    def is_dated(self) -> bool:
        """Whether no time but the end's is left to be taken from what comes, so that it may be read a moment later."""

    def on_connected(self, connect_ns: int | None) -> None:
        """A connection is there; `connect_ns` is what it took to open, `None` when it was open before."""

    def on_sent(self, now_ns: int) -> None:
        """The last byte of the request has been written."""

    def on_head(self, status: int, headers: Headers) -> None:
        """Status and headers of the answer, names in lower case."""

    def on_body(self, data: bytes, arrival_ns: int, kernel: bool, burst: int) -> None:
        """A piece of the body. `kernel`: the arrival is the kernel's receive stamp. Pieces that one wake-up of the loop
        found waiting share a `burst`."""

    def on_end(self, clean: bool, trailers: Headers, error: str, at_ns: int) -> None:
        """No more will come.

        Args:
            clean: whether the body ended by itself.
            error: otherwise what was wrong with it; empty for a connection that was lost.
            at_ns: when the last of it arrived.
        """


class Abortable(Protocol):
    """An exchange under way."""

    def catch_up(self) -> None:
        """Tells the listener at once of all that has arrived: before it is judged by what has come, and by when."""

    def abort(self) -> None:
        """Ends the exchange at once; the listener hears no more."""


class Transport(Protocol):
    """Sends requests; each exactly once."""

    def start_now(self, outgoing: Outgoing, listener: Listener) -> Abortable | None:
        """As `start`, on a connection that is open already; `None`, with nothing done, when there is none."""

    async def start(self, outgoing: Outgoing, listener: Listener, connect_timeout_s: float) -> Abortable:
        """Writes the request; the answer goes to `listener`.

        Raises: `NotAccepted` before anything was written.
        """

    async def close(self) -> None:
        """Closes all connections."""
