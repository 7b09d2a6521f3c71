"""Server-sent events: every line end, every cut, nothing looked at twice."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_kit.sse import SseEvent, SseParser


def events(*pieces: bytes) -> list[SseEvent]:
    parser = SseParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    return found + parser.finish()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [("", b"a"), ("", b"b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", b"a"), ("", b"b")]),
        (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"data:a\n\n", [("", b"a")]),
        (b"data:  a \n\n", [("", b" a ")]),
        (b"data: one\ndata: two\n\n", [("", b"one\ntwo")]),
        (b"data\n\n", [("", b"")]),
        (b": comment\n\nid: 7\n\nretry: 10\n\n\n\n", []),
        (b"event: ping\n\ndata: a\n\n", [("", b"a")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [("error", b"a"), ("", b"b")]),
        (b"data: unfinished", [("", b"unfinished")]),
        (b"data: unfinished\n", [("", b"unfinished")]),
        (b"dataset: x\n\nother: y\n\n", []),
        ("data: a\u2028b\u2029c\u0085d\x0ce\n\n".encode(), [("", "a\u2028b\u2029c\u0085d\x0ce".encode())]),
        (b"", []),
    ],
)
def test_streams_are_read_as_the_standard_says(stream: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert events(stream) == expected


LINES = st.lists(
    st.sampled_from([b"data: a", b"data:", b"data: \xc3\xa9\xe2\x80\xa8", b"event: x", b": c", b"", b"", b"id: 1"]),
    max_size=12,
)


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_however_a_stream_is_cut_its_events_are_the_same(lines: list[bytes], end: bytes, data: st.DataObject) -> None:
    stream = end.join([*lines, b""])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events(*pieces) == events(stream)


@pytest.mark.parametrize(
    "blocks",
    [
        b"data: a\n\n",
        b"data: a\n\ndata: b\n\n",
        b"data: \n\ndata: b\n\n",
        b"data: a\n\n\ndata: b\n\n",
        b"data: a\n\n\n\ndata: b\n\n\n",
        b"data: a\ndata: b\n\ndata: c\n\n",
        b"data: a\n\ndata:b\n\ndata: c\n\n",
        b"data: a\n\n: still here\n\ndata: b\n\n",
        b"data: a\n\nevent: x\ndata: b\n\ndata: c\n\n",
        b"data: a\n\n\xef\xbb\xbfdata: b\n\n",
        b"data: data: a\n\ndata: \xef\xbb\xbfb\n\n",
    ],
)
def test_blocks_that_come_whole_are_read_as_those_that_come_byte_by_byte(blocks: bytes) -> None:
    first = b"data: first\n\n"
    one_by_one = [blocks[place : place + 1] for place in range(len(blocks))]
    assert events(first, blocks) == events(first, *one_by_one)


@given(LINES)
def test_the_three_line_ends_mean_the_same(lines: list[bytes]) -> None:
    read = [events(end.join([*lines, b""])) for end in (b"\n", b"\r\n", b"\r")]
    assert read[0] == read[1] == read[2]


def test_one_huge_event_in_many_pieces_costs_its_size_and_not_its_square() -> None:
    def seconds(count: int) -> float:
        parser = SseParser()
        parser.feed(b"data: ")
        began = time.process_time()
        for _ in range(count):
            parser.feed(b"x" * 100)
        ((_, data),) = parser.feed(b"\n\n")
        assert len(data) == 100 * count
        return time.process_time() - began

    seconds(1000)
    small = min(seconds(5_000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(2)) < 8 * small * 4
