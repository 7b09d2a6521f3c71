"""A whole stack whose evidence and cases lie in a real S3 API server that is away for a while in the middle of a run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from srbench_kit.objects import Objects

from tests.e2e.whole_stack import Stack, Testbed, manifest, mmlu_cases, running_stack, running_testbed, until
from tests.object_store import CREDENTIALS, ObjectStore, running_object_store

pytestmark = pytest.mark.e2e
# Longer than any client waits before it tries again; tests/fleet has the long one.
AWAY_S = 6.0
CASES, HANDS = 150, 6


@dataclass
class Ended:
    """A run that ended although the object store was away for part of it, and accounting was killed meanwhile."""

    stack: Stack
    bed: Testbed
    objects: ObjectStore
    run_id: str
    sent_while_away: int


def segments(store: Path) -> list[Path]:
    return list((store / "segments").glob("*.seg"))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("objects")
    os.environ.update(CREDENTIALS)
    with running_object_store() as objects, running_testbed(folder, "live") as bed:
        environment = CREDENTIALS | {"SR_BENCH_OBJECTS_URL": objects.url, "SR_BENCH_SEAL_S": "0.5"}
        with running_stack(folder / "store", **environment) as stack:
            small = [one for one in bed.targets if one["id"] in ("small", "router")]
            path = folder / "manifest.json"
            path.write_text(json.dumps(manifest(mmlu_cases(CASES), small, concurrency=HANDS)))
            run_id = str(stack.cli("run", "--manifest", str(path), "--detach", "--idempotency-key", "s3")["id"])
            until(lambda: stack.get(f"/runs/{run_id}")["progress"]["completed"] >= 10)
            until(lambda: bool(list(Objects(objects.url).list("segments"))))
            before = len(bed.sent())
            objects.door.shut()
            time.sleep(AWAY_S / 2)
            stack.kill("srbench_accounting")
            killed = len(bed.sent())
            time.sleep(AWAY_S / 2)
            # The run goes on with the accounting that was started again, and its evidence waits here for the store.
            until(lambda: len(bed.sent()) > killed + HANDS)
            until(lambda: bool(segments(stack.store)))
            while_away = len(bed.sent()) - before
            objects.door.open()
            until(lambda: stack.get(f"/runs/{run_id}")["status"] not in ("queued", "running"))
            until(lambda: not segments(stack.store))
            yield Ended(stack, bed, objects, run_id, while_away)


def test_the_run_goes_on_while_the_store_is_away_and_sends_nothing_twice(ended: Ended) -> None:
    run = ended.stack.get(f"/runs/{ended.run_id}")
    assert run["status"] == "completed", run
    assert ended.sent_while_away > 0
    sent = ended.bed.sent()
    assert set(sent.values()) == {1}
    assert len(sent) == CASES * 2


def test_every_call_is_read_from_the_object_store_where_alone_it_lies(ended: Ended) -> None:
    found = Objects(ended.objects.url)
    assert list(found.list("segments"))
    assert list(found.list("blobs"))
    page = ended.stack.get(f"/runs/{ended.run_id}/calls", limit=500)
    assert len(page["calls"]) == CASES * 2
    for call in page["calls"][:: CASES // 10]:
        shown = ended.stack.cli("show", ended.run_id, "--call-id", call["id"])
        assert shown["final"], shown
    first = ended.stack.cli("evidence", ended.run_id, page["calls"][0]["id"], "--output", str(ended.stack.store / "e"))
    assert first is not None
    assert b"data:" in (ended.stack.store / "e").read_bytes()


def test_a_bundle_and_a_reconciliation_read_every_stream_again(ended: Ended, tmp_path: Path) -> None:
    bundle = tmp_path / "run.tar"
    ended.stack.cli("bundle", ended.run_id, "--output", str(bundle))
    ended.stack.cli("verify", str(bundle))
    corrected = ended.stack.cli("reconcile-usage", ended.run_id)
    assert "evidence_damaged" not in json.dumps(corrected), corrected


def test_nothing_of_a_run_is_garbage(ended: Ended) -> None:
    before = {item.path for item in Objects(ended.objects.url).list("")}
    found = ended.stack.cli("store", "gc", "--older-than", "1", "--delete")
    assert (found["object_count"], found["deleted"]) == (0, True)
    assert found["kept_count"] >= 2
    assert {item.path for item in Objects(ended.objects.url).list("")} == before
    assert "BAD_AGE" not in json.dumps(found)


def test_while_the_store_is_away_reports_work_and_texts_are_unreachable_not_lost(ended: Ended) -> None:
    page = ended.stack.get(f"/runs/{ended.run_id}/calls", limit=1)
    ended.stack.kill("srbench_accounting")
    ended.objects.door.shut()
    try:
        until(lambda: bool(ended.stack.children("srbench_accounting")))
        until(lambda: ended.stack.http(f"/runs/{ended.run_id}/report").status_code == 200)
        call = f"/runs/{ended.run_id}/calls/{page['calls'][0]['id']}"
        answer = ended.stack.http(call)
        assert (answer.status_code, answer.json()["reason"]) == (503, "OBJECT_STORE_UNAVAILABLE")
        doctor = ended.stack.cli_any("doctor")
        broken = [check for check in doctor["checks"] if check["status"] == "failed"]
        assert {check["check"] for check in broken} == {"object_store"}
        assert all("SR_BENCH_OBJECTS_URL" in check["remedy"] for check in broken)
    finally:
        ended.objects.door.open()
    assert ended.stack.http(call).status_code == 200
