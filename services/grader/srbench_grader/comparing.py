"""When an output is the expected one, by the rules of LiveCodeBench's own grader.

Source: `lcb_runner/evaluation/testing_util.py` of github.com/LiveCodeBench/LiveCodeBench.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation

from srbench_kit.errors import InvalidInput

# Below Python's own bound on reading whole numbers.
_MOST_DIGITS = 4000


def same_output(given: str, expected: str) -> bool:
    """Whether two printed outputs are equal: line by line without outer blanks, numbers by value as a second chance."""
    given_lines, expected_lines = _lines(given), _lines(expected)
    if len(given_lines) != len(expected_lines):
        return False
    return all(_same_line(one, other) for one, other in zip(given_lines, expected_lines, strict=True))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(given: str, expected: str) -> bool:
    if given == expected:
        return True
    numbers, wanted = _decimals(given), _decimals(expected)
    if numbers is None or wanted is None:
        return False
    try:
        return numbers == wanted
    except InvalidOperation:
        # A signalling NaN is equal to nothing, and raises where it is compared.
        return False


def _decimals(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in line.split()]
    except (InvalidOperation, ValueError):
        return None


def same_value(given: bytes, expected: str) -> bool:
    """Whether a returned value, as JSON, equals the expected one, as JSON.

    Raises: `InvalidInput` (`BAD_TESTS`) when `expected` is no JSON.
    """
    try:
        wanted = json.loads(expected, parse_int=_whole)
    except (ValueError, RecursionError):
        raise InvalidInput("BAD_TESTS", "the output that is expected of a call is no JSON value") from None
    try:
        return bool(json.loads(given, parse_int=_whole) == wanted)
    except (ValueError, RecursionError):
        return False


def _whole(digits: str) -> int | Decimal:
    """A whole number of any length; one that Python would not read at once as a decimal, which is as exact."""
    return int(digits) if len(digits) < _MOST_DIGITS else Decimal(digits)
