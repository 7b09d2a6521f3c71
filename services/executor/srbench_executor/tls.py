"""TLS between memory buffers, so that the socket below stays ours to read and to date."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl

_CHUNK = 64 * 1024


class TlsError(Exception):
    """The TLS session broke; the message is one for people."""


@functools.cache
def client_context() -> ssl.SSLContext:
    """The context of all connections: the system's authorities, or those `SSL_CERT_FILE` names; else certifi's."""
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not ssl.get_default_verify_paths().capath:
        import certifi

        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsLayer:
    """One session. `ended` is true after the peer said that it closes."""

    def __init__(self, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # Certificates and the names in handshakes have no dot at their end (RFC 6066), whatever the address has.
        name = host.rstrip(".")
        self._session = client_context().wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self.ended = False

    async def handshake(self, sock: socket.socket) -> None:
        """Raises: `TlsError`, `OSError` of the socket."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._session.do_handshake()
                finished = True
            except ssl.SSLWantReadError:
                finished = False
            except ssl.SSLError as error:
                await self._flush(sock)
                raise TlsError(describe(error)) from error
            await self._flush(sock)
            if finished:
                return
            data = await loop.sock_recv(sock, _CHUNK)
            if not data:
                raise TlsError("the connection was closed during the TLS handshake")
            self._incoming.write(data)

    async def _flush(self, sock: socket.socket) -> None:
        data = self._outgoing.read()
        if data:
            await asyncio.get_running_loop().sock_sendall(sock, data)

    def encrypt(self, data: bytes) -> bytes:
        """What to send for `data`."""
        view = memoryview(data)
        while view:
            view = view[self._session.write(view) :]
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """What the peer said in `data`; may be nothing yet. Raises: `TlsError`."""
        self._incoming.write(data)
        parts: list[bytes] = []
        while True:
            try:
                part = self._session.read(_CHUNK)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                part = b""
            except ssl.SSLError as error:
                raise TlsError(describe(error)) from error
            if not part:
                self.ended = True
                break
            parts.append(part)
        return b"".join(parts)

    def outgoing(self) -> bytes:
        """What the session itself wants to send, such as a key update."""
        return self._outgoing.read() if self._outgoing.pending else b""


def describe(error: ssl.SSLError) -> str:
    """What went wrong, without the library's own file names."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the endpoint's certificate is not trusted: {error.verify_message}"
    return f"TLS failed: {(error.reason or 'unknown error').replace('_', ' ').lower()}"
