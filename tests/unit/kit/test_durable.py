"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from srbench_kit import durable


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    durable.write_whole(path, b"old")
    durable.write_whole(path, b"new")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("a.json", b"new")]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_the_one_asked_for_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        durable.write_whole(tmp_path / "a", b"x", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        durable.write_whole(tmp_path / "taken", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
