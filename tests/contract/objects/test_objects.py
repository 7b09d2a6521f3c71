"""Objects and sealed segments against a folder and a real S3 API server that goes away at the worst moments."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from srbench_kit.blobs import BlobStore
from srbench_kit.depot import Depot
from srbench_kit.errors import DataLoss, InvalidInput, NotFound, Unreachable
from srbench_kit.objects import Objects
from srbench_kit.segments import Location, SegmentWriter

from tests.object_store import ObjectStore
from tests.waiting import PATIENCE_S, until


def test_an_object_is_whole_found_listed_and_deleted(url: str) -> None:
    objects = Objects(url)
    objects.put("a/one", b"first")
    objects.put("a/one", b"second")
    objects.put("a/b/two", b"x" * 3_000_000)
    assert objects.get("a/one") == b"second"
    assert objects.read_at("a/b/two", 2_999_990, 100) == b"x" * 10
    assert {(info.path, info.byte_count) for info in objects.list("a")} == {("a/one", 6), ("a/b/two", 3_000_000)}
    assert abs(time.time() - next(objects.list("a/b")).write_time_s) < 60
    objects.delete("a/one")
    objects.delete("a/one")
    assert objects.info("a/one") is None
    assert list(objects.list("none")) == []
    with pytest.raises(NotFound, match="there is no object a/one"):
        objects.get("a/one")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("s3://UPPER/x", "s3://bucket/prefix"),
        ("gs://bucket/x", "s3://bucket/prefix"),
        ("s3://key:word@bucket/x", "no credentials"),
        ("s3://bucket/x?endpoint=y", "no option but"),
        ("file://host/path", "file:///an/absolute/path"),
    ],
)
def test_an_address_that_cannot_work_is_refused_and_no_password_is_repeated(address: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Objects(address)
    assert caught.value.reason == "BAD_OBJECTS_URL"
    assert expected in caught.value.message
    assert "word" not in caught.value.message


def test_a_bucket_that_is_not_there_is_said(s3: ObjectStore) -> None:
    with pytest.raises(NotFound) as caught:
        Objects(s3.url.replace("s3://evidence", "s3://nothing")).check_bucket()
    assert caught.value.reason == "NO_SUCH_BUCKET"


def test_blobs_are_the_same_in_a_folder_and_in_s3(url: str) -> None:
    blobs = BlobStore(url, "blobs")
    name = blobs.put(b"cases")
    assert blobs.put(b"cases") == name
    assert blobs.get(name) == b"cases"
    with pytest.raises(NotFound, match="there is no blob"):
        blobs.get("0" * 64)


def test_a_store_that_is_away_for_a_while_only_delays_a_blob(s3: ObjectStore) -> None:
    blobs = BlobStore(s3.url, "blobs")
    s3.door.shut()
    opening = threading.Event()

    def open_again() -> None:
        opening.set()
        s3.door.open()

    threading.Timer(2.0, open_again).start()
    assert blobs.get(blobs.put(b"late")) == b"late"
    assert opening.is_set(), "it was there while the store was away"


def test_a_store_that_stays_away_is_unreachable_and_its_address_is_not_told(s3: ObjectStore) -> None:
    s3.door.shut()
    with pytest.raises(Unreachable) as caught:
        Objects(s3.url).put("x", b"y")
    assert caught.value.reason == "OBJECT_STORE_UNAVAILABLE"
    assert "127.0.0.1" not in caught.value.message


def test_an_upload_that_is_cut_leaves_no_object(s3: ObjectStore) -> None:
    s3.door.shut()
    s3.door.pass_bytes = 7_000_000
    s3.door.open()
    with pytest.raises(Unreachable):
        Objects(s3.url).put("segments/big", os.urandom(30_000_000))
    s3.door.shut()
    s3.door.pass_bytes = None
    s3.door.open()
    assert Objects(s3.url).info("segments/big") is None


@pytest.mark.parametrize("after_s", [0.02, 0.05, 0.1, 0.2, 0.3])
def test_a_store_that_dies_during_an_upload_has_the_whole_object_or_none(s3: ObjectStore, after_s: float) -> None:
    data = os.urandom(40_000_000)
    threading.Timer(after_s, s3.door.shut).start()
    with suppress(Unreachable):
        Objects(s3.url).put("segments/big", data)
    s3.door.shut()
    s3.door.open()
    found = Objects(s3.url)
    assert found.info("segments/big") is None or found.get("segments/big") == data


# Segments that are carried to the store.


def written(folder: Path, frames: list[bytes], depot: Depot | None) -> list[Location]:
    """Frames in segments of at most 1 MB, the last one sealed, too."""
    writer = SegmentWriter(folder, 1_000_000, when_sealed=depot.carry if depot else None)
    found = [writer.append(frame) for frame in frames]
    writer.close()
    return found


def test_sealed_segments_are_carried_and_every_frame_is_read_wherever_it_lies(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    depot = Depot(folder, url)
    frames = [os.urandom(size) for size in (1, 700_000, 400_000, 1_500_000, 9_000_000, 20)]
    places = written(folder, frames, depot)
    assert [depot.read(place) for place in places] == frames
    until(lambda: depot.waiting == 0)
    assert not list(folder.glob("*.seg"))
    assert [depot.read(place) for place in reversed(places)] == frames[::-1]
    depot.close()


def test_a_store_that_is_away_loses_nothing_and_what_waits_is_read_from_here(s3: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    depot = Depot(folder, s3.url)
    (early,) = written(folder, [b"early"], depot)
    until(lambda: depot.waiting == 0)
    s3.door.shut()
    (late,) = written(folder, [b"late"], depot)
    time.sleep(1.0)
    assert depot.waiting == 1
    assert depot.read(late) == b"late"
    with pytest.raises(Unreachable):
        # Never read before, so no block of it is kept.
        depot.read(early)
    s3.door.open()
    until(lambda: depot.waiting == 0)
    assert [depot.read(early), depot.read(late)] == [b"early", b"late"]
    depot.close()


def test_segments_that_a_killed_process_left_are_carried_at_the_next_start(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    places = written(folder, [b"one", b"two"], None)
    with (folder / places[0].segment).open("ab") as torn:
        torn.write(b"SRF1 half a frame")
    depot = Depot(folder, url)
    until(lambda: depot.waiting == 0)
    assert [depot.read(place) for place in places] == [b"one", b"two"]
    depot.close()


def test_closing_does_not_wait_for_a_store_that_is_away(s3: ObjectStore, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    depot = Depot(folder, s3.url)
    s3.door.shut()
    written(folder, [b"kept"], depot)
    began = time.monotonic()
    depot.close(0.5)
    assert time.monotonic() - began < PATIENCE_S
    assert len(list(folder.glob("*.seg"))) == 1


def test_a_changed_or_missing_frame_is_data_loss_and_names_its_segment(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    depot = Depot(folder, url)
    (place,) = written(folder, [b"evidence"], depot)
    until(lambda: depot.waiting == 0)
    objects = Objects(url)
    path = f"segments/{place.segment}"
    data = bytearray(objects.get(path))
    data[-1] ^= 1
    objects.put(path, bytes(data))
    with pytest.raises(DataLoss, match=place.segment):
        depot.read(place)
    objects.delete(path)
    with pytest.raises(DataLoss, match="neither here nor in the object store"):
        Depot(folder, url).read(place)
    depot.close()


def test_a_bucket_is_made_only_when_the_address_says_so(s3: ObjectStore) -> None:
    address = s3.url.replace("s3://evidence/", "s3://made-by-us/")
    with pytest.raises(Unreachable, match="NO_SUCH_BUCKET"):
        Objects(address).put("a", b"b")
    for _ in range(2):
        # There already, the second time.
        objects = Objects(f"{address}&create_bucket=true")
        objects.check_bucket()
        objects.put("a", b"b")
    assert Objects(address).get("a") == b"b"
