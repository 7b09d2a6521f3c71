"""What a path from outside may be: a regular file, and nothing that hangs, changes or fails in a way of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from srbench_kit.errors import SrBenchError
from srbench_kit.given_files import read_given
from srbench_planner.files import open_regular


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "dataset", "document"),
    [
        ("folder", "NOT_A_FILE", "NO_SUCH_FILE"),
        ("pipe", "NOT_A_FILE", "NOT_A_FILE"),
        ("loop", "SYMLINK", "NO_SUCH_FILE"),
        ("link", "SYMLINK", ""),
        ("none", "NO_SUCH_FILE", "NO_SUCH_FILE"),
        ("file/under", "NOT_READABLE", "NO_SUCH_FILE"),
        ("x" * 300, "NOT_READABLE", "NO_SUCH_FILE"),
        ("file", "", ""),
    ],
)
def test_every_kind_of_path_is_read_or_refused_by_name(folder: Path, name: str, dataset: str, document: str) -> None:
    def reason(read: object) -> str:
        assert callable(read)
        try:
            read(folder / name)
        except SrBenchError as error:
            return error.reason if str(folder / name) in error.message else "a sentence without the path"
        return ""

    def read_dataset(path: Path) -> None:
        with open_regular(path) as file:
            assert file.read() == b"12345"

    assert reason(read_dataset) == dataset
    assert reason(read_given) == document


def test_no_more_is_read_than_is_needed_to_see_that_it_is_too_much(folder: Path) -> None:
    assert read_given(folder / "file", 3) == b"1234"
