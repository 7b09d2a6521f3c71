"""Server-sent events from bytes, as the HTML standard reads them, in whatever pieces they come. Pure.

One difference from the standard: an event whose blank line never came is still given at the end of the stream, because
servers that forget it are common and the bytes are there. Linear: no byte is looked at twice, however it was cut.
"""

from __future__ import annotations

from typing import TypeAlias

BOM = b"\xef\xbb\xbf"
_LF, _ENDS = 0x0A, b"\r\n"
_MARK = BOM[:1]


# One event: its `event` field, empty when none was given, and its data lines joined by LF.
SseEvent: TypeAlias = tuple[str, bytes]


class SseParser:
    """Feed it bytes as they come; it gives the events that they complete."""

    __slots__ = ("_after_cr", "_data", "_name", "_pending", "_started")

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._data: list[bytes] = []
        self._name = ""
        self._after_cr = False
        self._started = False

    @property
    def inside_event(self) -> bool:
        """Whether bytes of an unfinished event are held."""
        return bool(self._pending or self._data)

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes."""
        if self._after_cr and data:
            # CR has ended its line already; the LF of a CRLF cut in two is part of that end.
            self._after_cr = False
            if data[0] == _LF:
                data = data[1:]
        if not data:
            return []
        between = self._started and not self._pending and not self._data and not self._name
        if between and data.endswith(b"\n\n") and b"\r" not in data:
            return self._read_blocks(data)
        # For bytes this splits at LF, CRLF and CR and at nothing else (no U+2028, no form feed).
        lines = data.splitlines()
        last = data[-1]
        rest = b"" if last in _ENDS else lines.pop()
        self._after_cr = last == 0x0D
        if lines and self._pending:
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending = []
        if rest:
            self._pending.append(rest)
        return self._read(lines) if lines else []

    def finish(self) -> list[SseEvent]:
        """What is left at the end of the stream: at most one event."""
        lines = [b"".join(self._pending), b""] if self._pending else [b""]
        self._pending = []
        return self._read(lines)

    def _read_blocks(self, data: bytes) -> list[SseEvent]:
        """The events of whole blocks with LF line ends."""
        if data.startswith(b"data: "):
            blocks = data[6:-2].split(b"\n\ndata: ")
            # Most streams are one data line an event, which needs no taking apart: then no other line end is left.
            if data.count(b"\n") == 2 * len(blocks):
                return [("", block) for block in blocks]
        events: list[SseEvent] = []
        blocks = data.split(b"\n\n")
        blocks.pop()
        for block in blocks:
            events += self._read([*block.split(b"\n"), b""])
        return events

    def _read(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        self._started = True
        held, name = self._data, self._name
        for line in lines:
            if line[:1] == _MARK:
                # Some relays write a mark before each piece: no event is lost for it.
                line = line.removeprefix(BOM)
            if not line:
                if held:
                    events.append((name, held[0] if len(held) == 1 else b"\n".join(held)))
                    held = []
                name = ""
            elif line.startswith(b"data:"):
                held.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
            elif line == b"data":
                held.append(b"")
            # Comments, `id`, `retry` and unknown fields carry nothing for us.
        self._data, self._name = held, name
        return events
