"""The yardstick: the least Python that reads a streamed chat completion in full, on uvloop's own transport.

It builds the body, sends it on a kept connection, undoes the chunked coding, parses every event, dates the first content,
joins the text and takes usage and finish reason. It guards nothing, keeps nothing and survives nothing.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson


class RawAnswer(asyncio.Protocol):
    """One connection, one answer at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._reset(None)

    def _reset(self, done: asyncio.Future[tuple[int, str]] | None) -> None:
        self._done = done
        self._buffer = b""
        self._events = b""
        self._in_body = False
        self._parts: list[str] = []
        self._first_ns = 0
        self._usage: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, str]]:
        """Sends `request`; the future holds the time of the first content and the text."""
        self._reset(asyncio.get_running_loop().create_future())
        self.transport.write(request)
        assert self._done is not None
        return self._done

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._in_body:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return
            self._in_body, buffer = True, buffer[end + 4 :]
        position, pieces, over = 0, [], False
        while (line := buffer.find(b"\r\n", position)) >= 0:
            size = int(buffer[position:line], 16)
            stop = line + 2 + size
            if stop + 2 > len(buffer):
                break
            over = size == 0
            pieces.append(buffer[line + 2 : stop])
            position = stop + 2
            if over:
                break
        self._buffer = buffer[position:]
        if pieces:
            self._read(b"".join(pieces))
        if over:
            assert self._usage is not None
            assert self._done is not None
            self._done.set_result((self._first_ns, "".join(self._parts)))

    def _read(self, data: bytes) -> None:
        *events, self._events = (self._events + data).split(b"\n\n")
        for event in events:
            if event == b"data: [DONE]":
                return
            value = orjson.loads(event[6:])
            self._usage = value.get("usage") or self._usage
            for choice in value["choices"]:
                text = choice["delta"].get("content")
                if text:
                    self._first_ns = self._first_ns or time.monotonic_ns()
                    self._parts.append(text)


class RawClient:
    """A pool of kept connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[RawAnswer] = []

    async def ask(self, prompt: str, seed: int) -> tuple[int, str]:
        """The time of the first content and the text of one answer."""
        body = orjson.dumps(
            {
                "model": "mock-1",
                "temperature": 0,
                "max_tokens": 512,
                "seed": seed,
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": prompt}],
            }
        )
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-length: %d\r\n\r\n"
        if self._idle:
            connection = self._idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(RawAnswer, "127.0.0.1", self._port)
        found = await connection.ask(head % (self._port, len(body)) + body)
        self._idle.append(connection)
        return found

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._idle:
            connection.transport.close()
