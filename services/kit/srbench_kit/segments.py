"""Append-only segments: many small blobs in few files, each behind a checksummed frame.

A frame is `SRF1`, the length (4 bytes, big endian), the SHA-256 of the data, the data. A writer begins a new segment when
it starts, so a torn tail is never written over; whoever holds a location from an acknowledged write can read it for ever.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import DataLoss
from srbench_kit.ids import uuid7_hex

MAGIC = b"SRF1"
_HEADER = struct.Struct(">4sI32s")
SEGMENT_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Location:
    """Where a frame lies: the segment's name, the frame's offset, the data's length."""

    segment: str
    offset: int
    length: int


class SegmentWriter:
    """Appends frames to the newest segment of a folder. Not thread-safe; one writer a folder and process."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES, *, synced: bool = True) -> None:
        """`synced` false: nothing is ever synced, for data that need not outlive the machine's own death."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._limit = segment_bytes
        self._file: int | None = None
        self._name = ""
        self._size = 0
        self._queued: list[bytes] = []
        self._queued_size = 0
        self._dirty = False
        self._synced = synced

    def append(self, data: bytes) -> Location:
        """Writes one frame; durable only after `sync`. On an error the segment is as it was before.

        Raises: `OSError` of the file system, such as a full disk.
        """
        location = self.queue(data, hashlib.sha256(data).digest())
        self.flush()
        return location

    def queue(self, data: bytes, sha256: bytes) -> Location:
        """Takes one frame, whose SHA-256 is known, for the next `flush`: many frames are then one write. Where it will lie
        is certain once that has succeeded. Raises: `OSError`."""
        if self._file is None or self._size + self._queued_size >= self._limit:
            self.flush()
            self._open()
        location = Location(self._name, self._size + self._queued_size, len(data))
        self._queued += (_HEADER.pack(MAGIC, len(data), sha256), data)
        self._queued_size += _HEADER.size + len(data)
        return location

    def flush(self) -> None:
        """Writes the queued frames. On an error they are given up, the segment is as it was before. Raises: `OSError`."""
        if not self._queued:
            return
        assert self._file is not None
        frames = b"".join(self._queued)
        self._queued, self._queued_size = [], 0
        try:
            written = 0
            while written < len(frames):
                written += os.pwrite(self._file, memoryview(frames)[written:], self._size + written)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(frames)
        self._dirty = True

    def sync(self) -> None:
        """Makes all appended frames durable."""
        self.flush()
        if self._synced and self._dirty and self._file is not None:
            os.fdatasync(self._file)
            self._dirty = False

    @property
    def size(self) -> int:
        """Bytes in the segment that is being written; 0 when none is."""
        return 0 if self._file is None else self._size + self._queued_size

    def abandon(self) -> None:
        """Leaves the segment as it is, not synced; the next frame begins a new one. For after a failed `sync`."""
        self._queued, self._queued_size = [], 0
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._dirty = False

    def close(self) -> None:
        """Syncs and closes the segment."""
        if self._file is not None:
            self.sync()
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        self.close()
        self._name = f"{uuid7_hex()}.seg"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._file = os.open(self._folder / self._name, flags, 0o600)
        self._size = 0
        if not self._synced:
            return
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_frame(folder: Path, location: Location) -> bytes:
    """The data at `location`, checked against its checksum.

    Raises: `DataLoss` (`EVIDENCE_DAMAGED`) when the frame is absent, cut or changed; it names segment and offset.
    """
    where = f"segment {location.segment} at offset {location.offset}"
    try:
        with (folder / location.segment).open("rb") as file:
            file.seek(location.offset)
            header = file.read(_HEADER.size)
            data = file.read(location.length)
    except OSError as error:
        raise DataLoss("EVIDENCE_DAMAGED", f"{where} cannot be read: {error.strerror}") from error
    if len(header) < _HEADER.size or len(data) < location.length:
        raise DataLoss("EVIDENCE_DAMAGED", f"{where} is cut short")
    magic, length, checksum = _HEADER.unpack(header)
    if magic != MAGIC or length != location.length or hashlib.sha256(data).digest() != checksum:
        raise DataLoss("EVIDENCE_DAMAGED", f"{where} does not match its checksum")
    return data


def scan(path: Path) -> Iterator[tuple[Location, bytes]]:
    """The whole frames of a segment in order; stops quietly at a cut tail, raises `DataLoss` at a changed frame."""
    offset = 0
    with path.open("rb") as file:
        while True:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return
            magic, length, checksum = _HEADER.unpack(header)
            data = file.read(length) if magic == MAGIC else b""
            if magic == MAGIC and len(data) < length:
                return
            if magic != MAGIC or hashlib.sha256(data).digest() != checksum:
                raise DataLoss("EVIDENCE_DAMAGED", f"segment {path.name} at offset {offset} does not match its checksum")
            yield Location(path.name, offset, length), data
            offset += _HEADER.size + length
