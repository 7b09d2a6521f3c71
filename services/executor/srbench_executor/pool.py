"""Direct connections, kept open between calls. A request is written once, on a connection known to be alive."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from srbench_kit.addresses import ip_address, is_forbidden

from srbench_executor.connection import Connection, enable_stamps
from srbench_executor.exchange import Abortable, Listener, NotAccepted, Origin, Outgoing
from srbench_executor.reads import Reads
from srbench_executor.tls import TlsError, TlsLayer

# Common servers close an idle connection after 5 s or more. A request on a connection that is being closed may or may not
# have been accepted, and then could not be sent again: so none older than this is used.
IDLE_S = 3.0
RESOLVED_S = 30.0
NEXT_ADDRESS_S = 0.25
_Address = tuple[socket.AddressFamily, Any]


class DirectTransport:
    """A pool of connections per origin; the newest is used first."""

    def __init__(self, after_late: Callable[[], None] = lambda: None) -> None:
        """`after_late`: see `Reads`."""
        self._reads = Reads(after_late)
        self._idle: dict[Origin, list[Connection]] = {}
        # The kernel dates packets only while some socket asks for it, and takes a moment to begin: one always does.
        self._asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        enable_stamps(self._asking)
        self._resolved: dict[tuple[str, int], tuple[float, list[_Address]]] = {}

    def start_now(self, outgoing: Outgoing, listener: Listener) -> Abortable | None:
        """See `Transport`."""
        # A run of calls that begin together must not keep first tokens waiting either.
        self._reads.look()
        connection = self._take(outgoing.origin)
        if connection is not None:
            listener.on_connected(None)
            connection.start(render(outgoing), listener)
        return connection

    async def start(self, outgoing: Outgoing, listener: Listener, connect_timeout_s: float) -> Abortable:
        """See `Transport`."""
        began_ns = time.monotonic_ns()
        connection = await self._connect(outgoing.origin, connect_timeout_s)
        listener.on_connected(time.monotonic_ns() - began_ns)
        connection.start(render(outgoing), listener)
        return connection

    async def close(self) -> None:
        """Closes the idle connections."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
        self._asking.close()
        self._reads.close()

    def _take(self, origin: Origin) -> Connection | None:
        connections = self._idle.get(origin)
        now = time.monotonic()
        while connections:
            connection = connections.pop()
            if now - connection.idle_since > min(IDLE_S, connection.keep_alive_s):
                connection.close()
            elif connection.usable():
                return connection
        return None

    def _release(self, connection: Connection) -> None:
        connection.idle_since = time.monotonic()
        connections = self._idle.setdefault(connection.origin, [])
        connections.append(connection)
        # The oldest are at the front; what is past its time there is closed as others come in.
        while connections and (connections[0].closed or connection.idle_since - connections[0].idle_since > IDLE_S):
            connections.pop(0).close()

    async def _connect(self, origin: Origin, timeout_s: float) -> Connection:
        sock: socket.socket | None = None
        try:
            async with asyncio.timeout(timeout_s):
                sock = await self._open(origin)
                tls = None
                if origin.scheme == "https":
                    tls = TlsLayer(origin.host)
                    await tls.handshake(sock)
                return Connection(sock, tls, origin, self._release, self._reads)
        except (TlsError, OSError, asyncio.CancelledError) as error:
            if sock is not None:
                sock.close()
            where = f"{origin.host}:{origin.port}"
            if isinstance(error, TlsError):
                raise NotAccepted("tls_failed", f"{where}: {error}") from error
            if isinstance(error, TimeoutError):
                raise NotAccepted("connect_failed", f"{where} did not take the connection in {timeout_s:g} s") from error
            if isinstance(error, OSError):
                said = (error.strerror or "connection failed").lower()
                raise NotAccepted("connect_failed", f"{where} did not take the connection: {said}") from error
            raise

    async def _open(self, origin: Origin) -> socket.socket:
        """A connected socket. The next address is tried when one fails or says nothing for a moment (RFC 8305): the first
        may be one that this network swallows."""
        waiting = list(await self._addresses(origin))
        if len(waiting) == 1:
            return await _open_one(waiting[0])
        pending: dict[asyncio.Task[socket.socket], _Address] = {}
        failure: OSError = OSError("no address")
        try:
            while waiting or pending:
                if waiting:
                    address = waiting.pop(0)
                    pending[asyncio.create_task(_open_one(address))] = address
                patience_s = NEXT_ADDRESS_S if waiting else None
                done, _ = await asyncio.wait(pending, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    address = pending.pop(task)
                    error = task.exception()
                    if error is None:
                        self._prefer(origin, address)
                        return task.result()
                    if not isinstance(error, OSError):
                        raise error
                    failure = error
            raise failure
        finally:
            await _give_up(list(pending))

    def _prefer(self, origin: Origin, address: _Address) -> None:
        """Has the address that answered tried first while its name's addresses are remembered."""
        found = self._resolved.get((origin.host, origin.port))
        if found is not None and found[1][0] != address:
            others = [other for other in found[1] if other != address]
            self._resolved[origin.host, origin.port] = (found[0], [address, *others])

    async def _addresses(self, origin: Origin) -> Sequence[_Address]:
        try:
            number = ipaddress.ip_address(origin.host)
        except ValueError:
            return await self._resolve(origin.host, origin.port)
        if number.version == 6:
            return [(socket.AF_INET6, (origin.host, origin.port, 0, 0))]
        return [(socket.AF_INET, (origin.host, origin.port))]

    async def _resolve(self, host: str, port: int) -> Sequence[_Address]:
        found = self._resolved.get((host, port))
        if found is not None and time.monotonic() - found[0] < RESOLVED_S:
            return found[1]
        # A name may lead where an address could not be registered.
        addresses = [found for found in await lookup(host, port) if not is_forbidden(ip_address(str(found[1][0])))]
        if not addresses:
            raise NotAccepted("name_not_resolved", f"the name {host} leads to a link-local or cloud metadata address alone")
        self._resolved[host, port] = (time.monotonic(), addresses)
        return addresses


async def _open_one(address: _Address) -> socket.socket:
    """Raises: `OSError`."""
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        enable_stamps(sock)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


async def _give_up(tasks: list[asyncio.Task[socket.socket]]) -> None:
    """Ends attempts that are no longer needed; one that got through meanwhile is closed."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, socket.socket):
            ended.close()


async def lookup(host: str, port: int) -> list[_Address]:
    """The addresses that `host` leads to. Raises: `NotAccepted`."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NotAccepted("name_not_resolved", f"the name {host} cannot be resolved") from error
    return [(socket.AddressFamily(family), address) for family, _, _, _, address in infos]


def render(outgoing: Outgoing) -> bytes:
    """The request as it goes over the wire."""
    lines = [f"{outgoing.method} {outgoing.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in outgoing.headers]
    if outgoing.method == "POST":
        lines.append(f"content-length: {len(outgoing.body)}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + outgoing.body
