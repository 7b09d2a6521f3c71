"""Datasets over an object store: frozen by one planner, found by another, and never half there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.objects import Objects
from srbench_planner.dataset import Case, Dataset, SourceFile, SourceRecord
from srbench_planner.datasets import DatasetStore
from srbench_planner.hidden_parts import HiddenParts

from tests.object_store import ObjectStore

RECORD = SourceRecord(
    url="https://example.org/set",
    revision="r1",
    files=(SourceFile("a.jsonl", "0" * 64),),
    revision_verification="git-head",
    license_url="https://example.org/licence",
    access_note="Public.",
    normalizer="n1",
)


def case(number: int) -> Case:
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": f"Question {number}\u2028?"}],
        "answer": "A",
        "metadata": {"stratum": "law", "split": "dev"},
    }


def publish(store: DatasetStore, *numbers: int) -> Dataset:
    return store.publish(
        [case(number) for number in numbers],
        profile="quick",
        seed=1,
        sources={"mmlu-pro": RECORD},
        custom_subset=True,
        planned={"mmlu-pro": 500},
    )


@pytest.fixture
def stores(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[DatasetStore, DatasetStore]:
    """The datasets of two planners that share nothing but the object store."""
    monkeypatch.setenv("SR_BENCH_OBJECTS_URL", url)
    return DatasetStore(tmp_path / "one"), DatasetStore(tmp_path / "two")


def test_what_one_planner_froze_another_lists_and_reads(stores: tuple[DatasetStore, DatasetStore]) -> None:
    one, two = stores
    frozen = publish(one, 1, 2)
    assert [found.id for found in two.list()] == [frozen.id]
    found = two.get(frozen.id[:12])
    assert (found.id, found.sha256, found.case_count) == (frozen.id, frozen.sha256, 2)
    assert two.cases(found) == [case(1), case(2)]
    assert abs(found.create_time_s - frozen.create_time_s) < 60
    assert publish(two, 1, 2).id == frozen.id
    with pytest.raises(NotFound):
        two.get("0" * 64)


def test_a_dataset_without_its_manifest_is_not_there_yet(stores: tuple[DatasetStore, DatasetStore], url: str) -> None:
    one, two = stores
    frozen = publish(one, 1)
    Objects(url).delete(f"datasets/{frozen.id}/manifest.json")
    assert two.list() == []
    publish(one, 1)
    assert [found.id for found in two.list()] == [frozen.id]


def test_damaged_cases_are_not_taken_in(stores: tuple[DatasetStore, DatasetStore], url: str) -> None:
    one, two = stores
    frozen = publish(one, 1)
    Objects(url).put(f"datasets/{frozen.id}/cases.jsonl", b"{}\n")
    with pytest.raises(DataLoss, match="does not match its manifest"):
        two.get(frozen.id)
    assert not (two.root / frozen.id).exists()
    assert one.get(frozen.id).id == frozen.id


def test_hidden_tests_are_shared_too(
    stores: tuple[DatasetStore, DatasetStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = HiddenParts(tmp_path / "one").put(b"assert solve(1) == 2")
    assert b"".join(HiddenParts(tmp_path / "two").pieces(name)) == b"assert solve(1) == 2"


def test_a_store_that_is_away_for_a_while_only_delays_the_freezing(
    s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SR_BENCH_OBJECTS_URL", s3.url)
    s3.door.shut()
    threading.Timer(2.0, s3.door.open).start()
    frozen = publish(DatasetStore(tmp_path / "one"), 1)
    assert [found.id for found in DatasetStore(tmp_path / "two").list()] == [frozen.id]
