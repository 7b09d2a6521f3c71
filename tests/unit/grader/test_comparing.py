"""When an output is the expected one. The rules are upstream's; each line of the tables was read off its grader."""

from __future__ import annotations

import pytest
from srbench_grader.comparing import same_output, same_value


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
def test_printed_outputs(given: str, expected: str, same: bool) -> None:
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
        (b"0.30000000000000004", "0.3", False),
        (b"not json", "9", False),
        (b"", "null", False),
    ],
)
def test_returned_values(given: bytes, expected: str, same: bool) -> None:
    assert same_value(given, expected) is same
