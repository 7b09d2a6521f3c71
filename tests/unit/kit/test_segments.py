"""Segments: what was appended is read back, a flipped byte is named, a torn tail loses only itself."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
from srbench_kit.errors import DataLoss
from srbench_kit.segments import SegmentWriter, read_frame, scan


def test_frames_come_back_over_several_segments(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, segment_bytes=1000)
    frames = [bytes([n]) * (n * 30) for n in range(1, 20)]
    places = [writer.append(frame) for frame in frames]
    writer.close()
    assert [read_frame(tmp_path, place) for place in places] == frames
    assert len({place.segment for place in places}) > 1


def test_a_flipped_byte_anywhere_in_a_frame_is_found(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    place = writer.append(b"evidence")
    writer.close()
    path = tmp_path / place.segment
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        with pytest.raises(DataLoss, match="offset 0"):
            read_frame(tmp_path, place)


def found(path: Path) -> list[bytes | None]:
    """The data of the frames, `None` for a damaged one."""
    return [frame[1] if frame is not None else None for frame in scan(path)]


def test_a_torn_tail_loses_only_itself(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    first = writer.append(b"one")
    writer.append(b"two")
    writer.close()
    path = tmp_path / first.segment
    path.write_bytes(path.read_bytes()[:-1])
    assert found(path) == [b"one"]


def test_a_damaged_frame_loses_only_itself_and_one_without_a_length_all_that_follow(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    places = [writer.append(data) for data in (b"one", b"two", b"three")]
    writer.close()
    path = tmp_path / places[0].segment
    whole, at = path.read_bytes(), places[1].offset
    for index in range(at, places[2].offset):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        if index < at + 8:
            given = iter(scan(path))
            assert next(given) is not None
            with pytest.raises(DataLoss, match=path.name):
                list(given)
        else:
            assert found(path) == [b"one", None, b"three"]


def test_an_abandoned_segment_is_left_and_the_next_frame_begins_another(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    first = writer.append(b"one")
    writer.abandon()
    second = writer.append(b"two")
    writer.close()
    assert first.segment != second.segment
    assert read_frame(tmp_path, second) == b"two"


def test_frames_that_were_queued_lie_where_it_was_said_once_they_are_flushed(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, segment_bytes=1000)
    frames = [bytes([n]) * (n * 30) for n in range(1, 20)]
    first = writer.append(b"before")
    places = [writer.queue(frame, hashlib.sha256(frame).digest()) for frame in frames]
    writer.flush()
    assert [read_frame(tmp_path, place) for place in (first, *places)] == [b"before", *frames]
    writer.close()


def test_a_failed_flush_leaves_the_segment_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SegmentWriter(tmp_path)
    first = writer.append(b"one")
    writer.queue(b"lost", hashlib.sha256(b"lost").digest())
    real = os.pwrite

    def full(file: int, data: bytes, offset: int) -> int:
        real(file, bytes(data)[:5], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        writer.flush()
    monkeypatch.undo()
    second = writer.append(b"two")
    writer.close()
    assert found(tmp_path / first.segment) == [b"one", b"two"]
    assert read_frame(tmp_path, second) == b"two"


def test_a_full_disk_leaves_no_empty_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SegmentWriter(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            writer.append(b"first")
        assert list(tmp_path.iterdir()) == []
    place = writer.append(b"second")
    writer.close()
    assert read_frame(tmp_path, place) == b"second"
