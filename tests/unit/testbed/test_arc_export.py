"""The ARC-AGI-2 tasks that the demo prepares."""

from __future__ import annotations

import json
from pathlib import Path

from srbench_testbed.arc_export import bundled_tasks, export


def test_all_120_public_tasks_are_exported_with_their_grids(tmp_path: Path) -> None:
    assert export(bundled_tasks(), tmp_path) == 120
    files = sorted((tmp_path / "data" / "evaluation").glob("*.json"))
    assert len(files) == 120
    tasks = [json.loads(path.read_text()) for path in files]
    assert sum(len(task["test"]) == 1 for task in tasks) == 75
    assert all(set(task) == {"train", "test"} for task in tasks)
    cells = {cell for task in tasks for pair in task["train"] + task["test"] for row in pair["output"] for cell in row}
    assert cells == set(range(10))


def test_a_second_export_gives_the_same_bytes(tmp_path: Path) -> None:
    tasks = bundled_tasks()
    export(tasks, tmp_path / "one")
    export(tasks, tmp_path / "two")
    export(tasks, tmp_path / "two")
    for path in (tmp_path / "one").rglob("*.json"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
