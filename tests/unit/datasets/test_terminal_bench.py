"""Terminal-Bench 2.1: task folders to cases, the published order, and what never enters a case."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput
from srbench_planner import sources
from srbench_planner.benchmark import Row
from srbench_planner.benchmarks import terminal_bench
from srbench_planner.files import sha256_of
from srbench_planner.task_folders import read_task_folders

SHARED = Path(os.environ.get("SR_BENCH_CASES", "../shared/cases")).resolve().parent / "data" / "terminal-bench-2.1"
TOML = """\
[metadata]
difficulty = "easy"
category = "files"
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 900.0
[environment]
build_timeout_sec = 120.0
docker_image = "owner/one:1"
allow_internet = false
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def task(root: Path, name: str = "one", toml: str = TOML) -> Path:
    folder = write(root / "tasks" / name, **{"tests__test": "secret test", "solution__solve": "secret solution"})
    (folder / "task.toml").write_text(toml)
    (folder / "instruction.md").write_text("Do it.\n")
    return folder


def rows(root: Path) -> list[Row]:
    return list(sources.local(terminal_bench.SPEC, str(root), "r1").rows())


def test_the_tree_digest_is_the_published_formula(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", **{"tests__test.sh": ""})
    (folder / "instruction.md").write_text("hi\n")
    (folder / "task.toml").write_text("")
    files = [(f"t/{name}", folder / name) for name in ("instruction.md", "tests/test.sh")]
    listed = [*files, ("t/task.toml", folder / "task.toml")]
    (row,) = read_task_folders(listed)
    # The vector of the fact sheet has no task.toml: the formula is checked on its two files, the row on all three.
    two = digest({name.partition("/")[2]: sha256_of(path) for name, path in files})
    assert two == "00f55ca6d70c0c4324920cee08060cd97f1f0a76811891cd6a81bc430ebbd1d5"
    assert row.values["tree_sha256"] == digest({n.partition("/")[2]: sha256_of(p) for n, p in listed})


def test_a_case_holds_the_instruction_and_names_the_rest_by_its_digest(tmp_path: Path) -> None:
    folder = task(tmp_path)
    (row,) = rows(tmp_path)
    made = terminal_bench.normalize(row, 0)
    assert (made.identity, made.stratum, made.prompt) == ("one", "terminal", "Do it.\n")
    assert made.metadata["agent_timeout_s"] == 900.0
    assert made.metadata["docker_image"] == "owner/one:1"
    assert made.metadata["allow_internet"] is False
    assert "secret" not in json.dumps([dict(row.values), dict(made.metadata)])
    needs = terminal_bench.needs(made.metadata)
    assert (needs.case_timeout_s, needs.calls) == (1080.0, 100)
    before = made.metadata["tree_sha256"]
    (folder / "tests/test").write_text("another test")
    (again,) = rows(tmp_path)
    assert again.values["tree_sha256"] != before


def test_a_store_on_another_machine_freezes_the_same_case(tmp_path: Path) -> None:
    task(tmp_path / "here")
    task(tmp_path / "there")
    made = [terminal_bench.normalize(rows(tmp_path / name)[0], 0) for name in ("here", "there")]
    assert made[0] == made[1]


def test_links_are_no_part_of_a_task(tmp_path: Path) -> None:
    folder = task(tmp_path)
    (before,) = rows(tmp_path)
    (folder / "tests/link").symlink_to("/etc/passwd")
    assert rows(tmp_path)[0].values == before.values


@pytest.mark.parametrize(
    ("toml", "field"),
    [
        ("[agent]\ntimeout_sec = -1", "agent.timeout_sec"),
        ("agent = 3", "agent"),
        ("[environment]\nbuild_timeout_sec = 'long'", "environment.build_timeout_sec"),
    ],
)
def test_a_bad_task_file_names_its_field(tmp_path: Path, toml: str, field: str) -> None:
    task(tmp_path, toml=toml)
    (row,) = rows(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        terminal_bench.normalize(row, 0)
    assert caught.value.facts["field"] == field


def test_a_task_file_that_is_no_toml_spoils_its_row_alone(tmp_path: Path) -> None:
    task(tmp_path, "bad", "this is no toml")
    task(tmp_path, "good")
    (tmp_path / "tasks/none").mkdir()
    bad, good = rows(tmp_path)
    assert "task.toml" in bad.problem
    assert not good.problem


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"task\.toml"):
        rows(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared task descriptions are not here")
def test_the_real_task_descriptions_are_read(tmp_path: Path) -> None:
    found = [terminal_bench.normalize(row, 0) for row in rows(SHARED)]
    assert len(found) == 20
    assert all(terminal_bench.needs(made.metadata).case_timeout_s >= 750 for made in found)
