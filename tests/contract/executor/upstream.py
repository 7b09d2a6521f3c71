"""A scripted model endpoint on a raw socket."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SSE = {"content-type": "text/event-stream; charset=utf-8"}


@dataclass(slots=True, kw_only=True)
class Answer:
    """What to send back: status line, headers, pieces with a delay in ms before each, and how it ends."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(SSE))
    chunks: Sequence[tuple[float, bytes]] = ()
    end: str = "eof"
    chunked: bool = True
    trailers: dict[str, str] = field(default_factory=dict)
    raw_head: bytes = b""
    gate: asyncio.Event | None = None


class Upstream:
    """The endpoint. `requests` holds head and body of all that came; answers are taken in order, the last for ever."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: list[Answer] = [Answer()]
        self.requests: list[tuple[bytes, bytes]] = []
        self.connections = 0
        self.open_connections = 0
        # When each piece of the last answer was written, and how long the pieces were to wait.
        self.written_ns: list[int] = []
        self.planned_ms = 0.0
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def hang_up(self) -> None:
        """Closes all connections."""
        writers = list(self._writers)
        for writer in writers:
            writer.close()
        for writer in writers:
            await writer.wait_closed()

    def late_ms(self, sent_ns: int) -> float:
        """How much later than planned the last piece was written, the request having been sent at `sent_ns`.

        A busy machine wakes this endpoint late; tests of times allow for it.
        """
        return (self.written_ns[-1] - sent_ns) / 1e6 - self.planned_ms if self.written_ns else 0.0

    @property
    def base_url(self) -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        self.open_connections += 1
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        self.requests.append((head, await reader.readexactly(length)))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if answer.gate is not None:
            await answer.gate.wait()
        return await self._play(answer, reader, writer)

    async def _play(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.end == "reset" and not answer.status:
            return _reset(writer)
        chunked = answer.chunked or answer.end == "abort_chunked"
        writer.write(answer.raw_head or _head(answer, chunked))
        self.written_ns, self.planned_ms = [], 0.0
        for delay_ms, data in answer.chunks:
            self.planned_ms += delay_ms
            if delay_ms:
                await writer.drain()
                await asyncio.sleep(delay_ms / 1000)
            self.written_ns.append(time.monotonic_ns())
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked and data else data)
            await writer.drain()
        if answer.end == "quiet":
            return True
        if answer.end == "hang":
            await reader.read(1)
            return False
        if answer.end == "reset":
            # What was written must be on its way before the connection is torn down.
            await asyncio.sleep(0.05)
            return _reset(writer)
        if answer.end == "abort_chunked" or not chunked:
            return False
        trailers = "".join(f"{name}: {value}\r\n" for name, value in answer.trailers.items())
        writer.write(b"0\r\n" + trailers.encode() + b"\r\n")
        await writer.drain()
        return True


def _head(answer: Answer, chunked: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in answer.headers.items())]
    lines += ["transfer-encoding: chunked"] if chunked else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> bool:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False
