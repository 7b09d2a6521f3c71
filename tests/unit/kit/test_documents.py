"""Documents from outside: duplicate keys, aliases, bombs and odd numbers are refused with one sentence."""

from __future__ import annotations

import pytest
from srbench.v1 import value_pb2 as pb
from srbench_kit.documents import load_json, load_yaml, received
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, from_value, to_value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 2}', "DUPLICATE_KEY"),
        ('{"a": {"b": 1, "b": 1}}', "DUPLICATE_KEY"),
        ('{"a": NaN}', "BAD_NUMBER"),
        ('{"a": 1e999}', "BAD_NUMBER"),
        ('{"a": -Infinity}', "BAD_NUMBER"),
        ("{'a': 1}", "BAD_JSON"),
        ("", "BAD_JSON"),
        ("[" * 100_000, "TOO_DEEP"),
        ("[" * 300 + "]" * 300, "TOO_DEEP"),
        ("9" * 5000, "BAD_NUMBER"),
        (b'{"a": "\xff"}', "BAD_ENCODING"),
        (r'{"a": ["q \ud800?"]}', "BAD_TEXT"),
        (r'{"\udc00": 1}', "BAD_TEXT"),
    ],
)
def test_bad_json_is_refused_with_a_reason(text: str | bytes, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_json(text, "the plan")
    assert caught.value.reason == reason
    assert "\n" not in caught.value.message


def test_a_whole_pair_is_a_character() -> None:
    assert load_json(r'"\ud83d\ude00"', "the plan") == "\U0001f600"


def test_a_byte_order_mark_is_dropped() -> None:
    assert load_json(b"\xef\xbb\xbf{}", "the plan") == {}


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("target: stub\nlimits:\n  max_cost_usd: 5\n  max_cost_usd: 500\n", "DUPLICATE_KEY", "max_cost_usd (line 4)"),
        ("a: &x 1\nb: *x\n", "YAML_ALIAS", "aliases"),
        ("a: [1, 2\n", "BAD_YAML", "line"),
        ("1: a\n", "BAD_KEY", "1"),
        ("a: .nan\n", "BAD_NUMBER", "finite"),
        ("a: !!python/object:os.system x\n", "BAD_YAML", "python"),
        ("a: !!binary aGk=\n", "BAD_YAML", "bytes"),
        ('a: "q \\ud800?"\n', "BAD_TEXT", "\\ud800"),
    ],
)
def test_bad_yaml_is_refused_with_a_reason(text: str, reason: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_yaml(text, "run.yaml")
    assert caught.value.reason == reason
    assert says in caught.value.message


def test_a_yaml_bomb_is_refused_unexpanded() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(InvalidInput, match="aliases"):
        load_yaml("\n".join(lines), "bomb.yaml")


def test_dates_and_words_stay_text() -> None:
    assert load_yaml("a: 2026-01-01\nb: hello\nc: 1.5\nd: true\n", "x") == {
        "a": "2026-01-01",
        "b": "hello",
        "c": 1.5,
        "d": True,
    }


def test_strangers_documents_cross_the_wire_with_a_mark_for_half_a_pair() -> None:
    strange: Json = {"a\udc00": ["b\ud800", {"é\ud83d": 1}]}
    assert from_value(to_value(strange)) == {"a\ufffd": ["b\ufffd", {"é\ufffd": 1}]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (pb.Value(float_value=float("nan")), "BAD_NUMBER"),
        (pb.Value(list_value=pb.ValueList(items=[pb.Value(float_value=float("-inf"))])), "BAD_NUMBER"),
        (pb.Value(big_int_value="abc"), "BAD_NUMBER"),
        (pb.Value(big_int_value="9" * 4301), "BAD_NUMBER"),
        (pb.Value(big_int_value=""), "BAD_NUMBER"),
        (pb.Value(big_int_value="\u0663"), "BAD_NUMBER"),
        (
            pb.Value(object_value=pb.ValueObject(members=[pb.ValueMember(key="a"), pb.ValueMember(key="a")])),
            "DUPLICATE_KEY",
        ),
    ],
)
def test_a_message_may_say_no_more_than_a_document(value: pb.Value, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        received(value, "the manifest")
    assert caught.value.reason == reason
