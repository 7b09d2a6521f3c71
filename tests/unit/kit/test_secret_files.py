"""Secrets as files become variables, and nothing shows their values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from srbench_kit import secret_files
from srbench_kit.errors import InvalidInput


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(secret_files.VARIABLE, str(tmp_path))
    for name in ("ONE_TOKEN", "OTHER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_file_is_a_variable_and_one_that_is_set_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "ONE_TOKEN").write_text("word\n")
    (folder / "OTHER_TOKEN").write_text("of the file")
    (folder / "aws_credentials").write_text("no variable")
    monkeypatch.setenv("OTHER_TOKEN", "of the environment")
    secret_files.read()
    assert os.environ["ONE_TOKEN"] == "word"
    assert os.environ["OTHER_TOKEN"] == "of the environment"
    assert "aws_credentials" not in os.environ
    monkeypatch.delenv("ONE_TOKEN")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"x" * 70_000])
def test_what_is_no_secret_is_refused_without_its_value(folder: Path, data: bytes) -> None:
    (folder / "ONE_TOKEN").write_bytes(data)
    with pytest.raises(InvalidInput, match="the secret ONE_TOKEN") as caught:
        secret_files.read()
    assert caught.value.reason == "BAD_SECRET"
    assert len(caught.value.message) < 100


def test_a_folder_that_is_not_there_ends_the_process_with_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(secret_files.VARIABLE, str(folder / "none"))
    with pytest.raises(SystemExit) as caught:
        secret_files.read_or_exit("planner")
    assert caught.value.code == 2
    assert "planner: SR_BENCH_SECRETS_DIR is" in capsys.readouterr().err
