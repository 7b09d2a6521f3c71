"""Tests as LiveCodeBench packs them come out without a pickle ever being run."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest
from srbench_kit.errors import InvalidInput
from srbench_kit.packed_tests import hidden_part, pickled_text, unpack

TESTS = [{"input": "3\n", "output": "9\n", "testtype": "stdin"}]
# Two rows of a public case collection: a pickled string, and a pickle that looks a global up.
GOOD = "eJxrYIowZmBgiK5WyswrKC1RslIyjMlT0lHKLy1B5pakFpeUVBakAgWKS1Iy85RqYwsZ9AAfGBJ2"
BAD = "eJxLLsgvzqzgSk8tSS5P4dIoCdIDAECXBkU="


def packed(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def test_a_pickled_string_is_read_and_any_other_pickle_is_refused() -> None:
    assert unpack(GOOD) == [{"input": "1\n", "output": "1\n", "testtype": "stdin"}]
    with pytest.raises(InvalidInput, match="the pickle may only hold a string") as caught:
        unpack(BAD)
    assert caught.value.reason == "BAD_ROW"


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_of_pickle_is_read(protocol: int) -> None:
    tests = [{"input": "é\U0001f600", "output": "", "testtype": "stdin"}]
    assert unpack(packed(json.dumps(tests, ensure_ascii=False), protocol)) == tests


def test_plain_json_is_read() -> None:
    assert unpack(json.dumps(TESTS)) == TESTS


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize("value", [Evil(), ["a"], {"a": 1}, b"bytes", 7, None, ("a", "b"), len])
def test_nothing_but_a_string_is_taken_and_nothing_is_run(value: Any) -> None:
    with pytest.raises(InvalidInput, match="may only hold a string"):
        unpack(packed(value))


@pytest.mark.parametrize("text", ["%%%", "AAAA", base64.b64encode(zlib.compress(b"junk")).decode(), packed("no json")])
def test_broken_packings_are_named(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        unpack(text)
    assert caught.value.facts["field"] == "private_test_cases"


def test_two_strings_in_one_pickle_are_refused() -> None:
    data = pickle.dumps("a", 0)[:-1] + b"0" + pickle.dumps("b", 0)
    with pytest.raises(InvalidInput):
        pickled_text(data, "f")


def row(**changes: Any) -> dict[str, Any]:
    found = {"public_test_cases": json.dumps(TESTS), "private_test_cases": packed(json.dumps(TESTS)), "metadata": "{}"}
    return found | changes


def test_public_tests_come_before_hidden_ones() -> None:
    hidden = packed(json.dumps([{"input": "4", "output": "16", "testtype": "stdin"}]))
    found = json.loads(hidden_part(row(private_test_cases=hidden)))
    assert found == {"function": "", "tests": [{"input": "3\n", "output": "9\n"}, {"input": "4", "output": "16"}]}


def test_a_functional_problem_names_its_function() -> None:
    tests = json.dumps([{"input": "3", "output": "9", "testtype": "functional"}])
    found = json.loads(
        hidden_part(row(public_test_cases=tests, private_test_cases="[]", metadata='{"func_name": "square"}'))
    )
    assert found["function"] == "square"


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": '{"func_name": "square"}'},
        {"metadata": '{"func_name": "a; b"}'},
        {"public_test_cases": "[]", "private_test_cases": "[]"},
        {"public_test_cases": '{"a": 1}'},
        {"private_test_cases": '[{"input": 3, "output": "9", "testtype": "stdin"}]'},
        {"private_test_cases": None},
    ],
)
def test_rows_without_usable_tests_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        hidden_part(row(**changes))
    assert caught.value.reason == "BAD_ROW"
