"""Evidence: parts put together as they arrive, kept as one frame a call in append-only segments, read back and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard
from google.protobuf.message import DecodeError
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.depot import Depot
from srbench_kit.errors import DataLoss
from srbench_kit.segments import Location, SegmentWriter, is_written, read_frame

from srbench_accounting.admission import Refusal
from srbench_accounting.rows import Stored

# One call's compressed evidence, and all unsettled evidence of one stream. Both far above what the guards let through.
MAX_EVIDENCE_BYTES = 256 * 1024 * 1024
MAX_PENDING_BYTES = 512 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
# Segments on their way to an object store: small enough to be carried soon and held in memory once.
CARRIED_SEGMENT_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Pending:
    """The whole compressed evidence of one call on its way into a segment.

    Attributes:
        stored: where it was written; kept here because a job may run twice and the frame need not be written twice.
        epoch: the epoch of the store in which that was.
    """

    data: bytes
    sha256: bytes
    stored: Stored | None = None
    epoch: int = -1


class EvidenceStore:
    """The segments of one process. `append`, `sync` and `seal_old` run on the writer's thread only; reading is free."""

    def __init__(self, folder: Path, depot: Depot | None = None) -> None:
        """`depot`: where sealed segments are carried; they stay in `folder` without one."""
        self._folder = folder
        self.depot = depot
        self._writer = (
            SegmentWriter(folder)
            if depot is None
            else SegmentWriter(folder, CARRIED_SEGMENT_BYTES, when_sealed=depot.carry)
        )
        self._epoch = 0

    def append(self, pending: Pending) -> Stored:
        """Takes the evidence, once, for the next `flush`. Raises: `OSError`, such as a full disk."""
        if pending.stored is None or pending.epoch != self._epoch:
            try:
                at = self._writer.queue(pending.data, pending.sha256)
            except OSError:
                self._epoch += 1
                raise
            pending.stored = Stored(at.segment, at.offset, at.length, pending.sha256)
            pending.epoch = self._epoch
        return pending.stored

    def flush(self) -> None:
        """Writes what was appended; durable after `sync`. Raises: `OSError`; then nothing since the last sync counts as
        written, and all of it is written again when its facts are."""
        try:
            self._writer.flush()
        except OSError:
            self._epoch += 1
            raise

    def sync(self) -> None:
        """Makes all appended evidence durable. Raises: `OSError`.

        A failed sync may have lost pages that a second one would call durable, so everything since is written again,
        to a new segment.
        """
        try:
            self._writer.sync()
        except OSError:
            self._writer.abandon()
            self._epoch += 1
            raise

    def seal_old(self, age_s: float) -> None:
        """Seals a segment that was begun `age_s` ago or earlier, so that it is carried away. Raises: as `sync`."""
        if self._writer.age_s >= age_s:
            self.sync()
            self._writer.close()

    def is_written(self, name: str) -> bool:
        """Whether this or another process that shares the folder still writes the segment `name`."""
        try:
            return is_written(self._folder / name)
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Syncs and closes the segment, and has it carried away as far as the object store answers."""
        self._writer.close()
        if self.depot is not None:
            self.depot.close()

    def read(self, stored: Stored) -> bytes:
        """The compressed evidence, checked. Raises: `DataLoss` (`EVIDENCE_DAMAGED`) naming the segment; `Unreachable`
        (`OBJECT_STORE_UNAVAILABLE`) when it lies in an object store that is away."""
        location = Location(stored.segment, stored.offset, stored.length)
        try:
            data = read_frame(self._folder, location) if self.depot is None else self.depot.read(location)
        except DataLoss as error:
            raise _damaged(stored, error.message) from error
        if hashlib.sha256(data).digest() != stored.sha256:
            where = f"segment {stored.segment} at offset {stored.offset}"
            raise _damaged(stored, f"{where} holds another call's evidence")
        return data

    def open(self, stored: Stored) -> pb.Evidence:
        """The evidence itself. Raises: `DataLoss` (`EVIDENCE_DAMAGED`)."""
        packed = self.read(stored)
        try:
            data = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
            return pb.Evidence.FromString(data)
        except (zstandard.ZstdError, DecodeError) as error:
            where = f"segment {stored.segment} at offset {stored.offset}"
            raise _damaged(stored, f"{where} is not an Evidence") from error


def _damaged(stored: Stored, what: str) -> DataLoss:
    """Names the evidence as lists of calls do, so that its call is found."""
    sha256 = stored.sha256.hex()
    sentence = f"the evidence {sha256} is damaged: {what}"
    return DataLoss("EVIDENCE_DAMAGED", sentence, segment=stored.segment, evidence_sha256=sha256)


CallKey = tuple[str, int, int, int]


def key_of(key: pb.CallKey) -> CallKey:
    """A call's key as a plain value."""
    return key.run_id, key.cell, key.ordinal, key.offer


@dataclass(slots=True)
class Assembly:
    """The evidence of one stream's calls between the first part and the settlement."""

    _parts: dict[CallKey, bytearray] = field(default_factory=dict)
    _size: int = 0

    def add(self, chunk: pb.EvidenceChunk) -> None:
        """Takes one part. A part at 0 begins again, as after a reconnection; one that leaves a gap spoils the whole,
        which the settlement then finds out."""
        key = key_of(chunk.key)
        if chunk.offset == 0:
            self._drop(key)
        held = self._parts.setdefault(key, bytearray())
        fits = chunk.offset == len(held) and len(held) + len(chunk.data) <= MAX_EVIDENCE_BYTES
        if fits and self._size + len(chunk.data) <= MAX_PENDING_BYTES:
            held += chunk.data
            self._size += len(chunk.data)

    def take(self, settle: pb.Settle) -> Pending | Refusal | None:
        """The evidence that a settlement declares; `None` when it declares none."""
        held = self._drop(key_of(settle.key))
        if not settle.evidence_sha256:
            return None
        digest = hashlib.sha256(held).digest()
        if len(held) == settle.evidence_byte_count and digest.hex() == settle.evidence_sha256:
            return Pending(bytes(held), digest)
        if settle.evidence_byte_count > MAX_EVIDENCE_BYTES:
            return Refusal(
                "EVIDENCE_TOO_LARGE",
                f"evidence has {settle.evidence_byte_count} bytes; expected at most {MAX_EVIDENCE_BYTES}",
            )
        return Refusal(
            "EVIDENCE_MISSING",
            f"evidence of {settle.evidence_byte_count} bytes was declared and {len(held)} "
            "came, or they do not match the digest; send all parts again before the settlement",
        )

    def _drop(self, key: CallKey) -> bytearray:
        held = self._parts.pop(key, bytearray())
        self._size -= len(held)
        return held


def chunks(key: pb.CallKey, data: bytes) -> Iterator[pb.EvidenceChunk]:
    """`data` in parts of at most 1 MiB; one empty part for no bytes."""
    for offset in range(0, max(len(data), 1), CHUNK_BYTES):
        yield pb.EvidenceChunk(key=key, offset=offset, data=data[offset : offset + CHUNK_BYTES])
