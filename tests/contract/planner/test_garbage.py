"""Garbage collection of inline cases: a plan's blob is never taken, and comes back when it was taken before its plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from planner_doubles import manifest
from srbench_kit.blobs import BlobStore
from srbench_kit.garbage import GarbageCollector
from srbench_planner import garbage


def collector(planner: Any, folder: Path) -> GarbageCollector:
    return garbage.collector(str(folder), planner.service.engine)


def grow_old(folder: Path) -> None:
    for path in (folder / "blobs").rglob("*.zst"):
        os.utime(path, (0, 0))


async def test_blobs_of_plans_stay_and_others_go(planner: Any, tmp_path: Path) -> None:
    run = await planner.run(manifest())
    blobs = BlobStore(str(tmp_path), "blobs")
    orphan = blobs.put(b"of a plan that was never saved")
    young = await collector(planner, tmp_path).collect(delete=True, min_age_s=3600)
    assert (young.garbage, young.kept_count) == ([], 2)
    grow_old(tmp_path)
    listed = await collector(planner, tmp_path).collect(delete=False, min_age_s=3600)
    assert [item.path.rpartition("/")[2] for item in listed.garbage] == [f"{orphan}.zst"]
    assert blobs.has(orphan)
    deleted = await collector(planner, tmp_path).collect(delete=True, min_age_s=3600)
    assert (len(deleted.garbage), deleted.kept_count) == (1, 1)
    assert not blobs.has(orphan)
    assert (await planner.get(run.id)).id == run.id


async def test_cases_that_are_frozen_again_are_no_longer_old(planner: Any, tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path), "blobs")
    blobs.put(b"cases")
    grow_old(tmp_path)
    blobs.put(b"cases")
    found = await collector(planner, tmp_path).collect(delete=True, min_age_s=3600)
    assert (found.garbage, found.kept_count) == ([], 1)


async def test_a_blob_that_went_before_its_plan_was_saved_is_written_again(
    planner: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    plans = planner.service.plans
    put = plans._put_cases

    def put_and_lose(cases: Any) -> str:
        name = str(put(cases))
        monkeypatch.setattr(plans, "_put_cases", put)
        (tmp_path / "blobs" / name[:2] / f"{name}.zst").unlink()
        return name

    monkeypatch.setattr(plans, "_put_cases", put_and_lose)
    await planner.run(manifest())
    assert len(list((tmp_path / "blobs").rglob("*.zst"))) == 1
