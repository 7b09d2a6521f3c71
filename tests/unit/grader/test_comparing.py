"""When an output is the expected one. The rules are upstream's; each line of the tables was read off its grader."""

from __future__ import annotations

import pytest
from srbench_grader.comparing import same_output, same_value
from srbench_kit.errors import InvalidInput


@pytest.mark.parametrize(
    ("given", "expected", "same"),
    [
        ("9\n", "9", True),
        ("9", "9\n\n", True),
        ("  9  \n 10\t\n", "9\n10", True),
        ("9 10", "9  10", True),  # as numbers
        ("a b", "a  b", False),
        ("9.0", "9", True),
        ("1e3", "1000", True),
        ("0.1", "0.10", True),
        ("0.30000000000000004", "0.3", False),
        ("50000000000000001", "50000000000000000", False),
        ("yes", "YES", False),
        ("9\n10", "9", False),
        ("9\n\n10", "9\n10", False),
        ("", "", True),
        ("", "9", False),
        ("NaN", "nan", False),
        ("inf", "Infinity", True),
        ("1_000", "1000", True),
    ],
)
def test_printed_outputs_are_compared_by_the_rules_of_livecodebench(given: str, expected: str, same: bool) -> None:
    assert same_output(given, expected) is same


@pytest.mark.parametrize(
    ("given", "expected", "same"),
    [
        (b"9", "9", True),
        (b"9.0", "9", True),
        (b"true", "1", True),
        (b'"9"', "9", False),
        (b"[1, [2]]", "[1,[2]]", True),
        (b"[1, 2]", "[2, 1]", False),
        (b'{"a": 1}', '{"a":1}', True),
        (b"null", "null", True),
        (b"NaN", "NaN", False),
        (b"1" + b"0" * 5000, "1" + "0" * 5000, True),
        (b"1" + b"0" * 5000, "1" + "0" * 4999 + "1", False),
        (b"[" + b"7" * 30_000 + b"]", "[" + "7" * 30_000 + "]", True),
        (b"0.30000000000000004", "0.3", False),
        (b"not json", "9", False),
        (b"", "null", False),
    ],
)
def test_returned_values_are_compared_by_the_rules_of_livecodebench(given: bytes, expected: str, same: bool) -> None:
    assert same_value(given, expected) is same


def test_an_expected_value_that_is_no_json_is_a_failure_to_grade() -> None:
    with pytest.raises(InvalidInput) as caught:
        same_value(b"1", "one")
    assert caught.value.reason == "BAD_TESTS"


@pytest.mark.parametrize("text", ["sNaN", "-sNaN12 9", "NaN 9", "1e999999999 9"])
def test_numbers_that_are_none_are_wrong_and_nothing_worse(text: str) -> None:
    assert same_output(text, "9" if " " not in text else "9 9") is False
