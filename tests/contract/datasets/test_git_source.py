"""The task folder of a commit, fetched by Git from a repository on this machine."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from srbench_kit.errors import Unreachable
from srbench_planner import git_source, sources
from srbench_planner.benchmark import GitSource
from srbench_planner.benchmarks import arc_agi_2

TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[4]]}]}


def git(directory: Path, *arguments: str) -> str:
    names = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments], check=True, capture_output=True, text=True, env=os.environ | names
    )
    return done.stdout.strip()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitSource:
    """A repository `owner/tasks` below the configured base, with one commit to pin and a later one."""
    work = tmp_path / "base" / "owner" / "tasks"
    folder = work / "data" / "evaluation"
    folder.mkdir(parents=True)
    (folder / "aa.json").write_text(json.dumps(TASK))
    (folder / "outside.json").symlink_to("/etc/hostname")
    (folder / "inner").mkdir()
    (folder / "inner" / "bb.json").write_text("{}")
    git(work, "init", "--quiet")
    git(work, "add", "-A")
    git(work, "commit", "--quiet", "-m", "first")
    pinned = git(work, "rev-parse", "HEAD")
    (folder / "aa.json").write_text("changed later")
    git(work, "commit", "--quiet", "-am", "second")
    monkeypatch.setenv("SR_BENCH_GIT_BASE", str(tmp_path / "base"))
    return GitSource(repository="owner/tasks", revision=pinned, folder="data/evaluation", license_url="", access_note="")


def test_the_regular_files_of_the_pinned_commit_are_exported(source: GitSource, tmp_path: Path) -> None:
    folder = git_source.export(source, tmp_path / "cache")
    assert [path.name for path in folder.iterdir()] == ["aa.json"]
    assert json.loads((folder / "aa.json").read_text()) == TASK


def test_a_second_export_needs_no_repository(source: GitSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git_source.export(source, tmp_path / "cache")
    monkeypatch.setenv("SR_BENCH_GIT_BASE", str(tmp_path / "gone"))
    assert (git_source.export(source, tmp_path / "cache") / "aa.json").exists()


def test_a_commit_that_is_not_there_is_unreachable(source: GitSource, tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        git_source.export(replace(source, revision="b" * 40), tmp_path / "cache")
    assert caught.value.reason == "SOURCE_UNREACHABLE"


def test_a_fetched_source_is_labelled_by_its_address_not_as_a_local_import(source: GitSource, tmp_path: Path) -> None:
    spec = replace(arc_agi_2.SPEC, source=source)
    fetched = sources.pinned(spec, tmp_path / "cache", lambda _count: None)
    record = fetched.record(spec.normalizer)
    assert (record.url, record.revision_verification) == ("https://github.com/owner/tasks", "git-commit")
    assert [row.values["id"] for row in fetched.rows()] == ["aa"]


def test_a_source_that_names_its_files_gets_them_from_the_folders_they_lie_in(source: GitSource, tmp_path: Path) -> None:
    named = replace(source, files=("inner/bb.json",))
    folder = git_source.export(named, tmp_path / "cache")
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*.json")] == ["inner/bb.json"]
    assert sources.task_files_in(folder, named) == (("inner/bb.json", folder / "inner/bb.json"),)
