"""The ARC tasks that the demo prepares are upstream's."""

from __future__ import annotations

from pathlib import Path

import orjson
from srbench_kit.canonical import digest
from srbench_testbed.arc_export import TASK_COUNT, evaluation_tasks, export

SEED = 20260918
SMOKE = ["58f5dbd5", "8f215267"]
QUICK_DIGEST = "ffb7bd9663f1099615f10011411abe8e3356721cbf2a31965fbf5863738a4fa7"


def test_the_ids_are_those_whose_published_selection_is_known() -> None:
    ids = [f"arc-agi-2/{name}" for name in evaluation_tasks()]
    order = sorted(ids, key=lambda name: digest([SEED, name]))
    # One stratum: the case that comes first stays first, and the rest follows in hash order.
    assert [name.removeprefix("arc-agi-2/") for name in order[:2]] == SMOKE
    assert digest(sorted(order[:12])) == QUICK_DIGEST


def test_the_files_have_upstreams_layout_and_the_same_bytes_again(tmp_path: Path) -> None:
    assert export(tmp_path) == TASK_COUNT
    files = sorted((tmp_path / "data" / "evaluation").glob("*.json"))
    assert len(files) == TASK_COUNT
    before = [path.read_bytes() for path in files]
    assert export(tmp_path) == TASK_COUNT
    assert [path.read_bytes() for path in files] == before
    task = orjson.loads(before[0])
    assert set(task) == {"train", "test"}
    assert all(set(pair) == {"input", "output"} for pair in task["train"] + task["test"])


def test_the_content_is_what_the_published_counts_say() -> None:
    tasks = evaluation_tasks()
    tests = [len(task["test"]) for task in tasks.values()]  # type: ignore[arg-type]
    assert (tests.count(1), sum(count > 1 for count in tests)) == (75, 45)
