"""A completion means the same however its bytes were cut, and no bytes make its reader raise or look twice."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from srbench_kit.chatparts import split_thinking
from srbench_kit.completion import AnswerReader, Completion, read_answer

from tests.unit.kit.chat_streams import DONE, JSON, SSE, USED, delta, event, read

RICH = b"".join(
    [
        b"\xef\xbb\xbf: hi\r\n\r\nretry: 3\n\n",
        delta(role="assistant", content=None, reasoning="h\u00e9"),
        delta(content="<think>x</think>\u65e5\u672c"),
        b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"\\ud83d"}}]}\r\r',
        b'data:{"choices":[{"index":0,"delta":{"content":"\\ude00"}}]}\n\n',
        delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]),
        delta("stop"),
        USED,
        b"data: [DONE]",
    ]
)


def in_pieces(stream: bytes, cuts: list[int]) -> Completion:
    reader = AnswerReader(200, SSE)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[start:end])
    return reader.finish(clean_end=True)


def test_a_cut_at_every_byte_gives_the_same_answer() -> None:
    whole = in_pieces(RICH, [])
    assert (whole.text, whole.reasoning, whole.reason) == ("\u65e5\u672c\U0001f600", "h\u00e9x", "")
    for cut in range(len(RICH) + 1):
        assert in_pieces(RICH, [cut]) == whole
    assert in_pieces(RICH, list(range(1, len(RICH)))) == whole


def test_many_cuts_at_random_give_the_same_answer() -> None:
    whole, chance = in_pieces(RICH, []), random.Random(7)
    for _ in range(300):
        assert in_pieces(RICH, sorted(chance.choices(range(len(RICH)), k=chance.randrange(1, 30)))) == whole


@given(st.binary(max_size=300), st.sampled_from([200, 204, 400, 500]), st.sampled_from([SSE, JSON, []]), st.booleans())
def test_no_bytes_raise(body: bytes, status: int, headers: Any, clean: bool) -> None:
    got = read_answer(status, headers, body, clean_end=clean)
    assert bool(got.reason) or got.text is not None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "content", "usage", "error", "index", "tool_calls", "function", "type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON_VALUES, max_size=4))
def test_no_json_raises_either(values: list[Any]) -> None:
    got = read(*(event(value) for value in values), DONE)
    got.usage_json  # noqa: B018
    got.text.encode()


def test_thousands_of_tags_are_looked_for_once_in_each_part_of_a_text() -> None:
    # What is looked for is counted, not timed.
    class Text(str):
        looked = 0

        def __getitem__(self, place: Any) -> str:
            return Text(super().__getitem__(place))

        def find(self, *arguments: Any) -> int:
            found = super().find(*arguments)
            begin = arguments[1] if len(arguments) > 1 else 0
            Text.looked += (found if found >= 0 else len(self)) - begin
            return found

    for unit in ("</think>1", "<think>1", "<think>1</think>2", "</think><think>"):
        text = Text(unit * 3000)
        Text.looked = 0
        split_thinking(text)
        assert Text.looked <= 3 * len(text)
