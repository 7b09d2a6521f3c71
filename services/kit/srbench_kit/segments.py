"""Append-only segments: many small blobs in few files, each behind a checksummed frame.

A frame is `SRF1`, the length (4 bytes, big endian), the SHA-256 of the data, the data. A writer begins a new segment when
it starts, so a torn tail is never written over; whoever holds a location from an acknowledged write can read it for ever.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.durable import sync_folder
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

    def __init__(
        self,
        folder: Path,
        segment_bytes: int = SEGMENT_BYTES,
        *,
        synced: bool = True,
        when_sealed: Callable[[str], None] | None = None,
    ) -> None:
        """`synced` false: nothing is ever synced, for data that need not outlive the machine's own death.
        `when_sealed` gets the name of each segment that will not be written any more."""
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
        self._when_sealed = when_sealed
        self._opened_s = 0.0

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
            if not self._size:
                self._discard()
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

    @property
    def age_s(self) -> float:
        """Seconds since the segment that is being written was begun; 0 when none is."""
        return 0.0 if self._file is None else time.monotonic() - self._opened_s

    def abandon(self) -> None:
        """Leaves the segment as it is, not synced; the next frame begins a new one. For after a failed `sync`."""
        self._queued, self._queued_size = [], 0
        self._dirty = False
        self._seal()

    def close(self) -> None:
        """Syncs and closes the segment."""
        if self._file is not None:
            self.sync()
            self._seal()

    def _seal(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if self._when_sealed is not None:
                self._when_sealed(self._name)

    def _discard(self) -> None:
        """Removes a segment that holds nothing: a full disk is not to be strewn with empty files."""
        assert self._file is not None
        (self._folder / self._name).unlink()
        os.close(self._file)
        self._file = None

    def _open(self) -> None:
        self.close()
        self._name = f"{uuid7_hex()}.seg"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self._file = os.open(self._folder / self._name, flags, 0o600)
        # Whoever else looks after this folder sees that it is still being written; see `is_written`.
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = 0
        self._opened_s = time.monotonic()
        if self._synced:
            sync_folder(self._folder)


def is_written(path: Path) -> bool:
    """Whether some process still writes the segment at `path`. Raises: `OSError`."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def read_frame(folder: Path, location: Location) -> bytes:
    """The data at `location`, checked against its checksum.

    Raises: `DataLoss` (`EVIDENCE_DAMAGED`) when the frame is absent, cut or changed; it names segment and offset.
    """
    try:
        with (folder / location.segment).open("rb") as file:
            file.seek(location.offset)
            return frame_data(file.read(frame_bytes(location)), location)
    except OSError as error:
        raise damaged(location, f"cannot be read: {error.strerror}") from error


def frame_bytes(location: Location) -> int:
    """How many bytes the frame at `location` takes."""
    return _HEADER.size + location.length


def frame_data(frame: bytes, location: Location) -> bytes:
    """The data of the frame that was read at `location`. Raises: `DataLoss` (`EVIDENCE_DAMAGED`)."""
    if len(frame) < frame_bytes(location):
        raise damaged(location, "is cut short")
    magic, length, checksum = _HEADER.unpack_from(frame)
    data = frame[_HEADER.size :]
    if magic != MAGIC or length != location.length or hashlib.sha256(data).digest() != checksum:
        raise damaged(location, "does not match its checksum")
    return data


def damaged(location: Location, what: str) -> DataLoss:
    """The error for a frame that cannot be had as it was written."""
    where = f"segment {location.segment} at offset {location.offset}"
    return DataLoss("EVIDENCE_DAMAGED", f"{where} {what}", segment=location.segment)


def scan(path: Path) -> Iterator[tuple[Location, bytes] | None]:
    """The whole frames of a segment in order, `None` in place of a damaged one; nothing is said of a cut tail.

    Raises: `DataLoss` (`EVIDENCE_DAMAGED`) where it is not known where the next frame begins. It is not searched for: data
    from outside may look like one.
    """
    content, offset = path.read_bytes(), 0
    while len(content) - offset >= _HEADER.size:
        magic, length, checksum = _HEADER.unpack_from(content, offset)
        start = offset + _HEADER.size
        cut = length > len(content) - start
        # A write that was cut is the last.
        if magic != MAGIC or (cut and MAGIC in content[start:]):
            raise DataLoss("EVIDENCE_DAMAGED", f"segment {path.name} at offset {offset} does not match its checksum")
        if cut:
            return
        data = content[start : start + length]
        whole = hashlib.sha256(data).digest() == checksum
        yield (Location(path.name, offset, length), data) if whole else None
        offset = start + length
