"""Text from outside, on a terminal and in files."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_cli import printing, terminal
from srbench_kit.errors import InvalidInput


def harmless(text: str) -> bool:
    return not any(
        ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\u2066" or 0xD800 <= ord(c) < 0xE000 for c in text
    )


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_text_can_drive_a_terminal(text: str) -> None:
    assert harmless(terminal.one_line(text))
    assert all(harmless(line) for line in terminal.many_lines(text).split("\n"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_harmless_and_says_the_same(value: object) -> None:
    text = terminal.json_text(value)  # type: ignore[arg-type]
    assert json.loads(text) == value
    assert all(harmless(line) for line in text.split("\n"))
    text.encode()


def test_readable_text_stays_as_it_is() -> None:
    assert terminal.one_line("Ä 漢字 🙂 [red] <b>") == "Ä 漢字 🙂 [red] <b>"
    assert terminal.one_line("a\nb\x1b[2J") == "a\\nb\\x1b[2J"
    assert terminal.one_line("x" * 10, 5) == "xxxx…"


def test_a_new_file_is_whole_and_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    printing.write_new_file(path, b"one")
    with pytest.raises(InvalidInput) as caught:
        printing.write_new_file(path, b"two")
    assert caught.value.reason == "OUTPUT_EXISTS"
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for attempt in (printing.check_new_file, lambda path: printing.write_new_file(path, b"x")):
        with pytest.raises(InvalidInput):
            attempt(link)
    assert not (tmp_path / "elsewhere").exists()
    assert stat.S_ISLNK(os.lstat(link).st_mode)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "ascii", "gbk", "utf-16-le"])
def test_json_is_json_in_every_locale(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding=encoding))
    value = {"naïve": "日本 \U0001f600 \u202e", "plain": [1, None]}
    printing.print_json(value)
    printed = raw.getvalue()
    assert json.loads(printed.decode(encoding) if encoding == "utf-16-le" else printed) == value
