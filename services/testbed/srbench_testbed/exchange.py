"""One answer over HTTP as a plan: what to write, with which delays, and how to end. Faults change the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

KEEP, CLOSE, RESET, HANG = "keep", "close", "reset", "hang"
CHUNKED, LENGTH, UNTIL_CLOSE = "chunked", "length", "close"

_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What will be written.

    Attributes:
        headers: in order; framing headers are added when written.
        parts: body parts, each with the seconds to wait before it.
        trailers: after a chunked body.
        end: `keep` the connection, `close` it, `reset` it (RST), or let it `hang`, after the last part.
        head_delay_s: seconds before the status line; `no_head` means that none is ever written.
        interim: bytes before the status line, such as `100 Continue`.
        last_chunk: whether a chunked body is ended properly.
        declared_length: overrides the Content-Length of a body with that framing.
        after: bytes behind the whole answer.
        repeat: a part written for ever after the others, with the seconds between.
        fault: name of what was done to it, for the ledger.
    """

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[float, bytes]] = field(default_factory=list)
    trailers: list[tuple[str, str]] = field(default_factory=list)
    framing: str = LENGTH
    end: str = KEEP
    head_delay_s: float = 0.0
    no_head: bool = False
    interim: bytes = b""
    last_chunk: bool = True
    declared_length: int | None = None
    after: bytes = b""
    repeat: tuple[float, bytes] | None = None
    fault: str = ""

    @property
    def body(self) -> bytes:
        """All parts together."""
        return b"".join(data for _, data in self.parts)

    def set_header(self, name: str, value: str) -> None:
        """Puts `value` under `name`, in place of what stood there."""
        self.headers = [(key, old) for key, old in self.headers if key != name] + [(name, value)]

    def head(self) -> bytes:
        """Status line and headers."""
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.framing == CHUNKED:
            lines.append("transfer-encoding: chunked")
            if self.trailers:
                lines.append("trailer: " + ", ".join(name for name, _ in self.trailers))
        elif self.framing == LENGTH:
            length = len(self.body) if self.declared_length is None else self.declared_length
            lines.append(f"content-length: {length}")
        if self.framing == UNTIL_CLOSE or self.end == CLOSE:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def coded(self, part: bytes) -> bytes:
        """A part as it goes over the wire."""
        return chunk(part) if self.framing == CHUNKED and part else part

    def tail(self) -> bytes:
        """What ends the body."""
        if self.framing != CHUNKED or not self.last_chunk:
            return self.after
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
        return b"0\r\n" + lines.encode("latin-1", "replace") + b"\r\n" + self.after


def chunk(data: bytes) -> bytes:
    """`data` in chunked transfer coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def document(status: int, body: bytes, content_type: str = "application/json") -> Exchange:
    """A whole body at once."""
    return Exchange(status=status, headers=[("content-type", content_type)], parts=[(0.0, body)])
