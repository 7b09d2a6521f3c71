"""Garbage collection takes segments that no receipt names, and never one that is written, young or referred to."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench_accounting import garbage
from srbench_kit.garbage import GarbageCollector
from srbench_kit.segments import SegmentWriter

RUN = "run-0123456789abcdef0123"


def collector(service: Any, folder: Path) -> GarbageCollector:
    return garbage.collector(str(folder), service.store.evidence, service.store.engine)


def orphan(folder: Path, age_s: float) -> Path:
    """A sealed segment that no receipt names."""
    before = set(folder.glob("*.seg"))
    writer = SegmentWriter(folder)
    writer.append(b"of a fact that was never recorded")
    writer.close()
    (found,) = set(folder.glob("*.seg")) - before
    os.utime(found, (time.time() - age_s, time.time() - age_s))
    return found


async def test_only_what_nothing_refers_to_goes_and_a_dry_run_changes_nothing(
    service: Any, writer: Any, facts: Any, evidence_of: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "segments"
    assert await writer.reasons(facts.dispatch(0), facts.settle(0, evidence=evidence_of("kept"))) == ["", ""]
    service.store.evidence.seal_old(0.0)
    (referred,) = folder.glob("*.seg")
    old, young = orphan(folder, 7200), orphan(folder, 60)
    os.utime(referred, (0, 0))
    listed = await collector(service, tmp_path).collect(delete=False, min_age_s=3600)
    assert [item.path for item in listed.garbage] == [f"segments/{old.name}"]
    assert listed.kept_count == 2
    assert old.exists()
    deleted = await collector(service, tmp_path).collect(delete=True, min_age_s=3600)
    assert [item.path for item in deleted.garbage] == [f"segments/{old.name}"]
    assert sorted(folder.glob("*.seg")) == sorted([referred, young])
    call = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls[0]
    assert (await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id))).final == "kept"


async def test_a_segment_that_is_written_is_kept_however_old(
    service: Any, writer: Any, facts: Any, evidence_of: Any, tmp_path: Path
) -> None:
    other = SegmentWriter(tmp_path / "segments")
    other.append(b"of another process over the same folder")
    for path in (tmp_path / "segments").glob("*.seg"):
        os.utime(path, (0, 0))
    found = await collector(service, tmp_path).collect(delete=True, min_age_s=0)
    assert (found.garbage, found.kept_count) == ([], 1)
    other.close()
