"""The journal: what a later process finds after any death of the one before."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor.receipts import Settlement, settle_facts
from srbench_executor.replay import facts_of
from srbench_executor.spool import Spool
from srbench_kit import segments
from srbench_kit.errors import Conflict, Exhausted
from srbench_kit.redact import Redactor

NONE = Redactor([])
SSE = [("content-type", "text/event-stream")]


def dispatch(cell: int) -> pb.Dispatch:
    return pb.Dispatch(key=pb.CallKey(run_id="r", cell=cell), request_sha256="x")


def ended(cell: int, evidence: bytes = b"packed") -> list[pb.Fact]:
    receipt = pb.Receipt(status=pb.CALL_STATUS_COMPLETED)
    return settle_facts(pb.CallKey(run_id="r", cell=cell), Settlement(receipt=receipt, evidence=evidence, text=""))


def killed(spool: Spool) -> None:
    """As after SIGKILL: what was not written is lost, and the lock is free."""
    os.close(spool._lock)


def segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


async def test_a_later_process_finds_what_was_not_acknowledged(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    numbers = [first.open(dispatch(cell), NONE) for cell in range(4)]
    first.head(numbers[1], 200, SSE)
    first.append(numbers[1], b"data: half")
    first.append(numbers[1], b" an event")
    first.receipt(numbers[2], ended(2))
    first.receipt(numbers[3], ended(3))
    first.acknowledged(numbers[3])
    first.flush()
    killed(first)
    second = Spool(tmp_path)
    found = {call.dispatch.key.cell: call for call in second.left_over()}
    assert set(found) == {0, 1, 2}
    assert (found[0].settle, found[0].head.http_status) == (None, 0)
    assert (b"".join(found[1].body), found[1].head.http_status) == (b"data: half an event", 200)
    assert found[2].settle == ended(2)[-1].settle
    assert found[2].evidence == b"packed"
    assert second.executor_id == first.executor_id
    second.forget_left_over()
    second.close()
    assert list(Spool(tmp_path).left_over()) == []


def test_left_over_calls_become_settlements(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.open(dispatch(0), NONE)
    number = spool.open(dispatch(1), NONE)
    spool.receipt(number, ended(1, b"z" * 2_500_000))
    killed(spool)
    unknown, whole = (facts_of(call) for call in Spool(tmp_path).left_over())
    assert [fact.WhichOneof("fact") for fact in unknown] == ["settle"]
    assert unknown[0].settle.receipt.status == pb.CALL_STATUS_SENT_UNKNOWN
    assert [len(fact.evidence.data) for fact in whole[:-1]] == [1_048_576, 1_048_576, 402_848]
    assert whole[-1].settle == ended(1, b"z" * 2_500_000)[-1].settle


@pytest.mark.parametrize("cut", [1, 5, 40, 60])
def test_a_torn_tail_loses_only_itself(tmp_path: Path, cut: int) -> None:
    spool = Spool(tmp_path)
    spool.open(dispatch(0), NONE)
    spool.open(dispatch(1), NONE)
    killed(spool)
    (segment,) = tmp_path.glob("*.seg")
    os.truncate(segment, segment.stat().st_size - cut)
    assert [call.dispatch.key.cell for call in Spool(tmp_path).left_over()] == [0]


async def test_whatever_rots_only_that_is_lost_and_the_file_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Calls: 0 got one piece before the damage and one after, 1 ended, 2 began after it. Each frame is damaged in turn."""
    spool = Spool(tmp_path / "spool")
    numbers = [spool.open(dispatch(cell), NONE) for cell in range(2)]
    spool.head(numbers[0], 200, SSE)
    spool.append(numbers[0], b"first ")
    spool.flush()
    spool.append(numbers[0], b"second")
    spool.flush()
    spool.receipt(numbers[1], ended(1))
    spool.open(dispatch(2), NONE)
    killed(spool)
    (segment,) = segments_in(tmp_path / "spool")
    whole = segment.read_bytes()
    places = [frame[0] for frame in segments.scan(segment) if frame is not None]
    assert len(places) == 6

    def left_over(damaged: int) -> dict[int, tuple[bytes, bool]]:
        data = bytearray(whole)
        data[places[damaged].offset + segments.frame_bytes(places[damaged]) - 1] ^= 1
        folder = tmp_path / str(damaged)
        folder.mkdir()
        (folder / segment.name).write_bytes(data)
        later = Spool(folder)
        calls = {one.dispatch.key.cell: (b"".join(one.body), one.settle is not None) for one in later.left_over()}
        later.forget_left_over()
        later.close()
        assert [path.read_bytes() for path in folder.glob("*.damaged")] == [bytes(data)]
        assert f"{segment.name}.damaged" in caplog.text
        assert list(Spool(folder).left_over()) == []
        return calls

    all_of_it = {0: (b"first second", False), 1: (b"", True), 2: (b"", False)}
    assert left_over(0) == {1: (b"", True), 2: (b"", False)}, "an open call alone is what the ledger knows anyway"
    assert left_over(1) == all_of_it | {0: (b"", False)} | {1: (b"", True)}
    assert left_over(2) == all_of_it | {0: (b"", False)}
    assert left_over(3) == all_of_it | {0: (b"first ", False)}
    assert left_over(4) == all_of_it | {1: (b"", False)}
    assert left_over(5) == {0: (b"first second", False), 1: (b"", True)}


def test_a_damaged_id_is_replaced(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    first.close()
    path = tmp_path / "executor_id"
    for content in (b"\xff" + path.read_bytes()[1:], b"executor-\n", b""):
        path.write_bytes(content)
        later = Spool(tmp_path)
        later.close()
        assert later.executor_id not in (first.executor_id, "")
        assert path.read_text().strip() == later.executor_id


async def test_a_segment_goes_once_all_its_calls_are_acknowledged(tmp_path: Path) -> None:
    spool = Spool(tmp_path, segment_bytes=2000)
    numbers = [spool.open(dispatch(cell), NONE) for cell in range(120)]
    assert len(segments_in(tmp_path)) > 2
    for number in numbers[1:]:
        spool.acknowledged(number)
    spool.flush()
    kept = len(segments_in(tmp_path))
    assert kept <= 3
    spool.acknowledged(numbers[0])
    spool.close()
    assert len(segments_in(tmp_path)) < kept


async def test_an_idle_spool_keeps_no_old_streams(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for cell in range(10):
        number = spool.open(dispatch(cell), NONE)
        spool.append(number, bytes(100_000))
        spool.flush()
        spool.acknowledged(number)
    spool.flush()
    assert sum(path.stat().st_size for path in segments_in(tmp_path)) < 400_000
    number = spool.open(dispatch(99), NONE)
    spool.flush()
    killed(spool)
    assert [call.dispatch.key.cell for call in Spool(tmp_path).left_over()] == [99]


def test_one_process_at_a_time_has_the_folder(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(Conflict, match="another executor"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


@pytest.mark.parametrize("secret", ["sk-CANARY-1234567", "aaaaab-aaaaab"])
async def test_a_secret_is_never_written_however_it_is_cut(tmp_path: Path, secret: str) -> None:
    body = b"data: " + secret.encode() + b" and aaaaa " + secret.encode() + b"\n\n"
    expected = body.replace(secret.encode(), b"[redacted]")
    for cut in range(1, len(body)):
        folder = tmp_path / str(cut)
        spool = Spool(folder)
        number = spool.open(dispatch(0), Redactor([secret]))
        spool.head(number, 200, [("x-echo", secret)])
        for piece in (body[:cut], body[cut:]):
            spool.append(number, piece)
            spool.flush()
        killed(spool)
        assert secret.encode() not in b"".join(path.read_bytes() for path in folder.glob("*.seg"))
        (call,) = Spool(folder).left_over()
        assert b"".join(call.body) == expected
        assert call.head.headers[0].value == "[redacted]"


async def test_a_full_disk_stops_new_calls_and_harms_none_in_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    number = spool.open(dispatch(0), NONE)
    write = os.pwrite

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    spool.append(number, b"data")
    spool.flush()
    assert not spool.healthy
    with pytest.raises(Exhausted, match="no space"):
        spool.open(dispatch(1), NONE)
    spool.receipt(number, ended(0))
    monkeypatch.setattr(os, "pwrite", write)
    spool.probe()
    assert spool.healthy
    spool.receipt(spool.open(dispatch(2), NONE), ended(2))
    killed(spool)
    assert [call.dispatch.key.cell for call in Spool(tmp_path).left_over()] == [0, 2]
