"""Sealed segments in an object store: carried there by a thread, read from there by range.

A segment is written and synced in a local folder (`segments`), so what is acknowledged never waits for the object store.
Once sealed it is uploaded, read back, and only then deleted here. Whatever dies in between, the next start carries on: what
lies in the folder is what is not known to be safe elsewhere. An upload that was cut leaves no object, and a second one
replaces the first with the same bytes. Several processes may share the folder: a segment that one still writes is locked,
and the others leave it alone.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from srbench_kit.durable import sync_folder
from srbench_kit.errors import DataLoss, NotFound, SrBenchError
from srbench_kit.objects import Objects
from srbench_kit.segments import Location, damaged, frame_bytes, frame_data, is_written, read_frame

PREFIX = "segments"
SUFFIX = ".seg"
BLOCK_BYTES = 1 << 20
KEPT_BLOCKS = 32
_PAUSES_S = (0.5, 1.0, 2.0, 5.0)
CLOSE_S = 10.0
LOOK_AROUND_S = 60.0
_log = logging.getLogger(__name__)


class Depot:
    """Carries the sealed segments of one folder to an object store and reads frames wherever they lie."""

    def __init__(self, folder: Path, url: str) -> None:
        """Segments that lie in `folder` already are carried first. Raises: `InvalidInput` (`BAD_OBJECTS_URL`)."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._objects = Objects(url)
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._sealed: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._waiting = 0
        self._carry_found()
        self._thread = threading.Thread(target=self._work, name="segment-depot", daemon=True)
        self._thread.start()

    def carry(self, name: str) -> None:
        """Takes a segment that will not be written any more. Never blocks."""
        with self._lock:
            self._waiting += 1
        self._sealed.put(name)

    @property
    def waiting(self) -> int:
        """Sealed segments that are not known to be in the object store."""
        return self._waiting

    def read(self, location: Location) -> bytes:
        """The data at `location`, checked.

        Raises: `DataLoss` (`EVIDENCE_DAMAGED`); `Unreachable` (`OBJECT_STORE_UNAVAILABLE`), then it may be read later.
        """
        if (self._folder / location.segment).exists():
            try:
                return read_frame(self._folder, location)
            except DataLoss:
                # It may have been carried away between the two looks; what is there then decides.
                if (self._folder / location.segment).exists():
                    raise
        try:
            return frame_data(self._range(location.segment, location.offset, frame_bytes(location)), location)
        except NotFound as error:
            raise damaged(location, "lies neither here nor in the object store") from error

    def close(self, patience_s: float = CLOSE_S) -> None:
        """Ends the thread once all is carried, at the latest after `patience_s`; the next start carries the rest."""
        self._sealed.put(None)
        self._thread.join(patience_s)
        self._stopping.set()
        self._thread.join()

    def _range(self, segment: str, offset: int, length: int) -> bytes:
        if length > KEPT_BLOCKS * BLOCK_BYTES // 4:
            return self._objects.read_at(f"{PREFIX}/{segment}", offset, length)
        first, last = offset // BLOCK_BYTES, (offset + length - 1) // BLOCK_BYTES
        data = b"".join(self._block(segment, number) for number in range(first, last + 1))
        start = offset - first * BLOCK_BYTES
        return data[start : start + length]

    def _block(self, segment: str, number: int) -> bytes:
        """A part of a segment; sealed segments never change, so it is kept for the neighbours of the frame."""
        key = segment, number
        with self._lock:
            found = self._blocks.get(key)
        if found is None:
            found = self._objects.read_at(f"{PREFIX}/{segment}", number * BLOCK_BYTES, BLOCK_BYTES)
        with self._lock:
            self._blocks[key] = found
            self._blocks.move_to_end(key)
            while len(self._blocks) > KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        return found

    def _carry_found(self) -> None:
        """Takes the segments that lie in the folder and that nobody writes: former processes left them."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            with suppress(FileNotFoundError):
                if not is_written(path):
                    self.carry(path.name)

    def _next(self) -> str | None:
        """The next segment to carry; `None` at the end."""
        while True:
            try:
                return self._sealed.get(timeout=LOOK_AROUND_S)
            except queue.Empty:
                self._carry_found()

    def _work(self) -> None:
        while (name := self._next()) is not None:
            for tries in range(1 << 30):
                if self._stopping.is_set() or self._carried(name):
                    break
                self._stopping.wait(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
            if self._stopping.is_set():
                return
            with self._lock:
                self._waiting -= 1

    def _carried(self, name: str) -> bool:
        """Uploads a segment, reads it back and deletes it here; whether that worked."""
        began = time.monotonic()
        try:
            data = (self._folder / name).read_bytes()
            path = f"{PREFIX}/{name}"
            self._objects.put(path, data)
            if self._objects.get(path) != data:
                _log.error("segment %s came back different from the object store; it is uploaded again", name)
                return False
            (self._folder / name).unlink()
            sync_folder(self._folder)
        except FileNotFoundError:
            # Another process that shares the folder was faster.
            return True
        except (SrBenchError, OSError) as error:
            _log.warning("segment %s could not be carried to the object store and is tried again: %s", name, error)
            return False
        _log.info("segment %s carried: %d bytes in %.1f s", name, len(data), time.monotonic() - began)
        return True
