"""A streaming chat completions endpoint that costs its clients next to nothing: hand-read HTTP, frames rendered beforehand.

    python bench/mock_openai.py [--chunks 20] [--ttft-ms 200] [--between-ms 20]

Prints two ports: the first answers at once and in one write, the second at the pace of a live model, an event a segment.
The answer's letter follows from the request's own bytes; each answer has an id of its own. `GET /first` on either port
says when the first event of each request was written, by the request's seed, in nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import time
import zlib
from typing import cast

import uvloop

LETTERS = "ABCDEFGHIJ"
_ID = "chatcmpl-0000000000000000"
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_SEED = re.compile(rb'"seed": ?(\d+)')


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def frames(letter: str, chunks: int) -> list[bytes]:
    """The events of one answer, each as one chunk of the transfer coding."""
    head = {"id": _ID, "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "mock-1"}
    words = [f" word{number}" for number in range(chunks - 1)] + [f"\nThe answer is: {letter}"]
    bodies = [head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]
    bodies += [head | {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in words]
    bodies.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {
        "prompt_tokens": 240,
        "completion_tokens": chunks + 4,
        "total_tokens": 244 + chunks,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    bodies.append(head | {"choices": [], "usage": usage})
    events = [b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n" for body in bodies]
    return [_chunked(event) for event in [*events, b"data: [DONE]\n\n"]] + [b"0\r\n\r\n"]


class Pace:
    """How one port answers: in one write, or event by event after `ttft_s`, `between_s` seconds apart."""

    def __init__(self, chunks: int, whole: bool, ttft_s: float, between_s: float) -> None:
        self.at_once, self.ttft_s, self.between_s = whole, ttft_s, between_s
        self.first_ns: dict[int, int] = {}
        self.answers = [frames(letter, chunks) for letter in LETTERS]
        self.whole = [_HEAD + b"".join(events) for events in self.answers]
        self.served = 0


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of `asyncio.Transport` without being one.
        self._transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer = data if not self._buffer else self._buffer + data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._transport is None:
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + size:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + size], b""
        if not head.startswith(b"post "):
            found = json.dumps(self._pace.first_ns).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(found), found))
            return
        seed = _SEED.search(body)
        self._answer(zlib.crc32(body) % len(LETTERS), int(seed[1]) if seed else 0)

    def _answer(self, choice: int, seed: int) -> None:
        pace = self._pace
        pace.served += 1
        identity = b"chatcmpl-%016d" % pace.served
        if pace.at_once:
            assert self._transport is not None
            self._transport.write(pace.whole[choice].replace(_ID.encode(), identity))
            return
        events = [event.replace(_ID.encode(), identity) for event in pace.answers[choice]]
        # Role and first word come together, and so do the end's events.
        parts = [_HEAD + events[0] + events[1], *events[2:-4], b"".join(events[-4:])]
        loop = asyncio.get_running_loop()
        loop.call_later(pace.ttft_s, self._send, loop.time() + pace.ttft_s, parts, 0, seed)

    def _send(self, due: float, parts: list[bytes], position: int, seed: int) -> None:
        if self._transport is None:
            return
        if position == 0:
            self._pace.first_ns[seed] = time.monotonic_ns()
        self._transport.write(parts[position])
        if position + 1 < len(parts):
            loop, due = asyncio.get_running_loop(), due + self._pace.between_s
            loop.call_at(due, self._send, due, parts, position + 1, seed)


async def main() -> None:
    """Serves until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--ttft-ms", type=float, default=200)
    parser.add_argument("--between-ms", type=float, default=20)
    options = parser.parse_args()
    loop = asyncio.get_running_loop()
    ports = []
    for whole in (True, False):
        pace = Pace(options.chunks, whole, options.ttft_ms / 1e3, options.between_ms / 1e3)
        server = await loop.create_server(lambda pace=pace: Connection(pace), "127.0.0.1", 0, backlog=4096)  # type: ignore[misc]
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
