"""The executor's own journal: what was sent, what came, how it ended, until accounting has acknowledged it.

It lives in segments of checksummed frames (kit `segments`), many records a frame. Nothing is synced: it is there for the
death of the process, not of the machine. A segment is deleted once every call that wrote to it is acknowledged. Secrets are
removed before anything is written, also those that come cut over several pieces.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import segments
from srbench_kit.completion import Headers
from srbench_kit.errors import Conflict, DataLoss, Exhausted
from srbench_kit.ids import prefixed
from srbench_kit.redact import Redactor

SEGMENT_BYTES = 32 * 1024 * 1024
TIDY_BYTES = 256 * 1024
FLUSH_S = 0.05
PROBE_S = 5.0
_RECORD = struct.Struct(">BQI")
_OPEN, _HEAD, _DATA, _RECEIPT, _ACKED = 1, 2, 3, 4, 5
# Never written: where something was that cannot be read.
_DAMAGE = 0
_ID = re.compile(r"executor-[0-9a-z-]+\Z")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Unacknowledged:
    """A call that the journal holds and accounting may not.

    Attributes:
        dispatch: what was dispatched.
        settle: how it ended; `None` when nobody saw that.
        evidence: its compressed evidence when it ended.
        head, body: status, headers and pieces of the body that had come when it did not.
    """

    number: int
    dispatch: pb.Dispatch
    settle: pb.Settle | None = None
    evidence: bytes = b""
    head: pb.Evidence = field(default_factory=pb.Evidence)
    body: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Stream:
    redactor: Redactor
    parts: list[bytes] = field(default_factory=list)
    held: bytes = b""
    head: tuple[int, Headers] | None = None

    def take(self) -> bytes:
        """The body since the last time, without secrets; keeps back what may be the beginning of one."""
        parts, self.parts = self.parts, []
        if self.redactor.empty:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        data = self.redactor.data(self.held + b"".join(parts))
        count = self.redactor.held_back(data)
        self.held = data[len(data) - count :]
        return data[: len(data) - count]

    def take_head(self) -> bytes:
        """Status and headers, which came and were not taken before, as the beginning of an `Evidence`."""
        assert self.head is not None
        status, headers = self.head
        self.head = None
        evidence = pb.Evidence(http_status=status)
        for name, value in headers:
            evidence.headers.add(name=name, value=self.redactor.header(name, value))
        return evidence.SerializeToString()


class Spool:
    """The journal in one folder. One process at a time has it."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Raises: `Conflict` (`SPOOL_IN_USE`) when another process has the folder."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = self.folder = folder
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Conflict("SPOOL_IN_USE", f"another executor uses the spool folder {folder.name}") from None
        self.executor_id = self._identity()
        self.healthy = True
        self._before = sorted(folder.glob("*.seg"))
        self._damaged: set[str] = set()
        self._writer = segments.SegmentWriter(folder, segment_bytes, synced=False)
        self._current = ""
        self._next = time.time_ns()
        self._streams: dict[int, _Stream] = {}
        self._dirty: dict[int, None] = {}
        self._acked: list[bytes] = []
        self._calls_in: dict[str, set[int]] = {}
        self._segments_of: dict[int, set[str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._probed_at = 0.0

    def _identity(self) -> str:
        path = self._folder / "executor_id"
        if path.exists():
            name = path.read_bytes().decode("ascii", "replace").strip()
            if _ID.match(name):
                return name
            _log.error("%s is damaged; this executor goes on under another id", path)
        name = prefixed("executor")
        beside = path.with_suffix(".tmp")
        beside.write_text(name + "\n")
        beside.replace(path)
        return name

    # One call's records.

    def open(self, dispatch: pb.Dispatch, redactor: Redactor) -> int:
        """A call is about to be sent; gives the number that its other records carry.

        Raises: `Exhausted` (`STORAGE_FULL`) when it cannot be written; then nothing may be sent.
        """
        self._next += 1
        number = self._next
        if not self._append([_record(_OPEN, number, dispatch.SerializeToString())], [number]):
            raise Exhausted("STORAGE_FULL", "the executor's spool has no space left; nothing was sent")
        self._streams[number] = _Stream(redactor)
        return number

    def head(self, number: int, status: int, headers: Headers) -> None:
        """Status and headers of a call's answer; written with the first of its body."""
        self._streams[number].head = (status, headers)
        self._dirty[number] = None

    def append(self, number: int, data: bytes) -> None:
        """More of a call's body; written with what other calls got in the same 50 ms."""
        self._streams[number].parts.append(data)
        self._dirty[number] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def receipt(self, number: int, facts: list[pb.Fact]) -> None:
        """How a call ended, before accounting is told. A full disk is no error here: accounting is told all the same."""
        evidence = b"".join(fact.evidence.data for fact in facts[:-1])
        settle = facts[-1].settle.SerializeToString()
        payload = struct.pack(">I", len(settle)) + settle + evidence
        self._streams.pop(number, None)
        self._dirty.pop(number, None)
        self._append([_record(_RECEIPT, number, payload)], [number])

    def acknowledged(self, number: int) -> None:
        """Accounting has the call's end."""
        self._streams.pop(number, None)
        self._dirty.pop(number, None)
        self._acked.append(_record(_ACKED, number, b""))
        for name in self._segments_of.pop(number, set()):
            calls = self._calls_in[name]
            calls.discard(number)
            if not calls:
                self._drop(name)
        if len(self._acked) >= 256:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Writes what waits, in one frame."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        records, self._acked = self._acked, []
        numbers = []
        for number in self._dirty:
            stream = self._streams[number]
            if stream.head is not None:
                records.append(_record(_HEAD, number, stream.take_head()))
                numbers.append(number)
            if data := stream.take():
                records.append(_record(_DATA, number, data))
                numbers.append(number)
        self._dirty.clear()
        if records:
            self._append(records, numbers)
        self._tidy()

    def _tidy(self) -> None:
        """Lets the current segment go once all its calls are acknowledged: an idle executor keeps no old streams."""
        if self._segments_of or self._writer.size < TIDY_BYTES:
            return
        self._writer.close()
        done, self._current = self._current, ""
        self._drop(done)

    def probe(self) -> None:
        """Finds out, now and then, whether a disk that was full has room again."""
        now = time.monotonic()
        if not self.healthy and now - self._probed_at > PROBE_S:
            self._probed_at = now
            if self._append([_record(_ACKED, 0, bytes(64 * 1024))], []):
                _log.info("the spool has space again")

    def close(self) -> None:
        """Writes what waits and lets the folder go."""
        self.flush()
        self._writer.close()
        os.close(self._lock)

    def _append(self, records: list[bytes], numbers: list[int]) -> bool:
        try:
            location = self._writer.append(b"".join(records))
        except OSError as error:
            if self.healthy:
                _log.error("the spool cannot be written: %s", error.strerror)
            self.healthy = False
            return False
        self.healthy = True
        calls = self._calls_in.setdefault(location.segment, set())
        for number in numbers:
            if number not in calls:
                calls.add(number)
                self._segments_of.setdefault(number, set()).add(location.segment)
        if location.segment != self._current:
            before, self._current = self._current, location.segment
            if before and not self._calls_in.get(before):
                self._drop(before)
        return True

    def _drop(self, name: str) -> None:
        if name != self._current:
            self._calls_in.pop(name, None)
            (self._folder / name).unlink(missing_ok=True)

    # What an earlier process left.

    def left_over(self) -> list[Unacknowledged]:
        """The calls of earlier processes that were not acknowledged, in the order of their dispatch."""
        found: dict[int, Unacknowledged] = {}
        acked: set[int] = set()
        # Calls of whose streams a piece may be missing: what came after it is no part of their evidence.
        holed: set[int] = set()
        for path in self._before:
            for kind, number, payload in self._records(path):
                if kind == _DAMAGE:
                    holed.update(found)
                elif kind == _OPEN:
                    found[number] = Unacknowledged(number, pb.Dispatch.FromString(payload))
                elif kind == _ACKED:
                    acked.add(number)
                elif kind == _RECEIPT:
                    # Whole by itself, whatever happened to the records before it.
                    _end(found.setdefault(number, Unacknowledged(number, pb.Dispatch())), payload)
                elif number in found and number not in holed:
                    _add(found[number], kind, payload)
        return [call for number, call in sorted(found.items()) if number not in acked]

    def forget_left_over(self) -> None:
        """Deletes the segments of earlier processes: all their calls have been acknowledged. Damaged ones are kept."""
        for path in self._before:
            if path.name in self._damaged:
                path.replace(path.with_name(f"{path.name}.damaged"))
            else:
                path.unlink(missing_ok=True)
        self._before = []

    def _records(self, path: Path) -> Iterator[tuple[int, int, bytes]]:
        """The records of a segment: kind, number of the call, payload; one of kind `_DAMAGE` in place of what cannot be
        read."""
        try:
            for frame in segments.scan(path):
                if frame is None:
                    self._note(path, f"segment {path.name} has a frame that does not match its checksum")
                    yield _DAMAGE, 0, b""
                else:
                    yield from _unpack(frame[1])
        except DataLoss as error:
            self._note(path, f"{error.message}; what follows is not read")
            yield _DAMAGE, 0, b""

    def _note(self, path: Path, what: str) -> None:
        self._damaged.add(path.name)
        beside = f"{path.name}.damaged"
        _log.error("the spool is damaged: %s; calls whose end it held count as unknown, the file stays as %s", what, beside)


def _add(call: Unacknowledged, kind: int, payload: bytes) -> None:
    if kind == _HEAD:
        call.head = pb.Evidence.FromString(payload)
    elif kind == _DATA:
        call.body.append(payload)


def _end(call: Unacknowledged, payload: bytes) -> None:
    (length,) = struct.unpack_from(">I", payload)
    call.settle = pb.Settle.FromString(payload[4 : 4 + length])
    call.evidence = payload[4 + length :]
    call.dispatch.key.CopyFrom(call.settle.key)


def _record(kind: int, number: int, payload: bytes) -> bytes:
    return _RECORD.pack(kind, number, len(payload)) + payload


def _unpack(frame: bytes) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    while offset < len(frame):
        kind, number, length = _RECORD.unpack_from(frame, offset)
        offset += _RECORD.size
        yield kind, number, frame[offset : offset + length]
        offset += length
