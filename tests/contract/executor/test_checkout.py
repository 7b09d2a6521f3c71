"""Task files out of a real Git repository, at a commit, whole or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from srbench_executor.harness import installing
from srbench_executor.harness.checkout import fetch
from srbench_kit.errors import Unreachable

NAME = "owner/tasks-of-somebody"


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository with two commits, of which the first is wanted; the mirror that the fetch is told to use."""
    source = tmp_path / "mirror" / NAME
    (source / "tasks" / "one").mkdir(parents=True)
    script = source / "tasks" / "one" / "test.sh"
    script.write_bytes(b"#!/bin/sh\r\nexit 0\n")
    script.chmod(0o755)
    git(source, "init", "--quiet")
    git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "first")
    first = git(source, "rev-parse", "HEAD")
    script.write_text("changed")
    git(source, "commit", "--quiet", "-am", "second")
    monkeypatch.setenv("SR_BENCH_GIT_BASE", str(tmp_path / "mirror"))
    return first


def test_a_folder_comes_as_it_was_at_the_commit_and_nothing_else_is_left(tmp_path: Path, commit: str) -> None:
    into = tmp_path / "home"
    found = fetch(NAME, commit, "tasks", into)
    script = found / "one" / "test.sh"
    assert script.read_bytes() == b"#!/bin/sh\r\nexit 0\n"
    assert script.stat().st_mode & 0o111
    assert [path.name for path in into.iterdir()] == ["tasks"]
    script.write_text("mine")
    assert fetch(NAME, "f" * 40, "tasks", into) == found, "what is there is left alone"
    assert script.read_text() == "mine"


@pytest.mark.parametrize(("name", "folder"), [("owner/nobody", "tasks"), (NAME, "nothing")])
def test_what_cannot_be_had_is_said_and_leaves_nothing(tmp_path: Path, commit: str, name: str, folder: str) -> None:
    with pytest.raises(Unreachable) as caught:
        fetch(name, commit, folder, tmp_path / "home")
    assert name in caught.value.message
    assert not list((tmp_path / "home").iterdir())


def test_one_failure_keeps_nothing_else_from_being_installed(
    tmp_path: Path, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SR_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SR_BENCH_HARNESS_BASE_PYTHON", str(tmp_path / "no-python"))
    files = installing.TaskFiles("TERMINAL", (NAME, commit, "tasks"))
    monkeypatch.setattr(installing, "TASK_FILES", {"terminal-bench-2.1": files})
    chosen = ["--benchmark", "tau3", "--benchmark", "terminal-bench-2.1", "--tasks"]
    done = CliRunner().invoke(installing.main, chosen)
    assert done.exit_code == 6
    assert done.output.count("NO_PYTHON") == 2
    assert (tmp_path / "home" / "harnesses" / "terminal-bench-2.1" / "tasks" / "one" / "test.sh").is_file()
    monkeypatch.setenv("SR_BENCH_GIT_BASE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SR_BENCH_HOME", str(tmp_path / "other"))
    assert "set SR_BENCH_TERMINAL_ROOT to the checkout" in CliRunner().invoke(installing.main, chosen).output
