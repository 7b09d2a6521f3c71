"""Files by which a stack is known, on a disk that has no room for them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from srbench_cli import service_files
from srbench_kit.errors import Exhausted


def test_a_full_store_is_one_sentence_and_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "service.json"
    service_files.write_private(path, "before")

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exhausted, match="cannot be written: the store has no space left") as caught:
        service_files.write_private(path, "after")
    assert caught.value.reason == "STORAGE_FULL"
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("service.json", "before")]
