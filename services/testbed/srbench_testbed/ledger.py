"""Every request that came in, so that a test can prove how often something was sent."""

from __future__ import annotations

import hashlib
import os
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from srbench_kit.values import Json

# Values of these headers are secrets: only their digest is kept.
_SECRET_HEADERS = frozenset({b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"})
# Turns CLOCK_MONOTONIC into time since 1970.
_WALL_OFFSET_NS = time.time_ns() - time.monotonic_ns()


@dataclass(slots=True, kw_only=True)
class Row:
    """One request and what became of it.

    Attributes:
        sequence: from 1, in order of arrival.
        identity: digest of model and messages, the same for two requests that ask a model the same.
        received_ns, first_byte_ns, ended_ns: CLOCK_MONOTONIC, comparable with clients on this machine; 0 for not yet.
        ended: `complete`, `client_closed`, `fault:NAME`, `shutdown`, or empty while it is in hand.
    """

    sequence: int
    method: str
    path: str
    headers: Sequence[tuple[bytes, bytes]]
    body_sha256: str
    body_bytes: int
    received_ns: int
    model: str = ""
    identity: str = ""
    prompt_sha256: str = ""
    selected_model: str = ""
    answer_right: bool | None = None
    status: int = 0
    fault: str = ""
    first_byte_ns: int = 0
    ended_ns: int = 0
    ended: str = ""
    sent_parts: int = 0

    def header(self, name: bytes) -> str:
        """The last value of a request header; empty without one."""
        return next((value.decode("latin-1") for key, value in reversed(self.headers) if key == name), "")

    def document(self) -> dict[str, Json]:
        """As JSON, secrets as digests."""
        return {
            "sequence": self.sequence,
            "method": self.method,
            "path": self.path,
            "headers": [[key.decode("latin-1"), _shown(key, value)] for key, value in self.headers],
            "body_sha256": self.body_sha256,
            "body_bytes": self.body_bytes,
            "model": self.model,
            "identity": self.identity,
            "prompt_sha256": self.prompt_sha256,
            "session_id": self.header(b"x-session-id"),
            "selected_model": self.selected_model,
            "answer_right": self.answer_right,
            "received_ns": self.received_ns,
            "received_at": (self.received_ns + _WALL_OFFSET_NS) / 1e9,
            "first_byte_ns": self.first_byte_ns,
            "ended_ns": self.ended_ns,
            "ended": self.ended,
            "status": self.status,
            "fault": self.fault,
            "sent_parts": self.sent_parts,
        }


def _shown(name: bytes, value: bytes) -> str:
    if name in _SECRET_HEADERS:
        return "sha256:" + hashlib.sha256(value).hexdigest()
    return value.decode("latin-1")


@dataclass(slots=True)
class Ledger:
    """All rows since the start or the last reset. With a file, each row is in it before its request is answered.

    The file takes two lines a request, `received` and `ended`; it survives the death of this process.
    """

    path: Path | None = None
    rows: list[Row] = field(default_factory=list)
    bodies: Counter[str] = field(default_factory=Counter)
    identities: Counter[str] = field(default_factory=Counter)
    # Routing previews: no generation, and no rows.
    previews: int = 0
    _next: int = 1
    _file: int = -1

    def open(self) -> None:
        """Opens the file, going on behind what it holds."""
        if self.path is not None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Marks what is in hand as ended by the shutdown and closes the file."""
        for row in self.rows:
            if not row.ended:
                self.ended(row, "shutdown")
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def received(self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Row:
        """A row for a request that came in just now."""
        row = Row(
            sequence=self._next,
            method=method,
            path=path,
            headers=headers,
            body_sha256=hashlib.sha256(body).hexdigest(),
            body_bytes=len(body),
            received_ns=time.monotonic_ns(),
        )
        self._next += 1
        self.rows.append(row)
        return row

    def count(self, row: Row) -> None:
        """Counts a chat request whose identity is known by now, and writes it to the file."""
        self.bodies[row.body_sha256] += 1
        if row.identity:
            self.identities[row.identity] += 1
        if self._file >= 0:
            os.write(self._file, orjson.dumps({"event": "received", **row.document()}) + b"\n")

    def ended(self, row: Row, how: str) -> None:
        """A request came to its end, once."""
        if row.ended:
            return
        row.ended, row.ended_ns = how, time.monotonic_ns()
        if self._file >= 0:
            os.write(
                self._file,
                orjson.dumps({"event": "ended", "sequence": row.sequence, "ended": how, "status": row.status}) + b"\n",
            )

    def forget(self, row: Row) -> None:
        """Takes the newest row out again: requests to the testbed's own pages prove nothing and are not kept."""
        if self.rows and self.rows[-1] is row:
            self.rows.pop()
        row.ended = "not kept"

    def reset(self) -> None:
        """Forgets all rows and counts; sequences go on. The file keeps its lines."""
        self.rows.clear()
        self.bodies.clear()
        self.identities.clear()
        self.previews = 0

    def after(self, sequence: int, limit: int) -> Iterator[Row]:
        """At most `limit` rows behind `sequence`, in order."""
        start = bisect_right(self.rows, sequence, key=lambda row: row.sequence)
        yield from self.rows[start : start + limit]

    def counts(self) -> dict[str, Json]:
        """How often each body and each (model, messages) came."""
        return {
            "requests": sum(self.bodies.values()),
            "bodies": dict(self.bodies),
            "identities": dict(self.identities),
            "previews": self.previews,
            "most": max(self.identities.values(), default=0),
            "in_hand": sum(1 for row in self.rows if not row.ended),
        }
