"""When an output is the expected one, by the rules of LiveCodeBench's own grader.

Source: `lcb_runner/evaluation/testing_util.py` of github.com/LiveCodeBench/LiveCodeBench.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation


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
    return numbers is not None and wanted is not None and numbers == wanted


def _decimals(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in line.split()]
    except (InvalidOperation, ValueError):
        return None


def same_value(given: bytes, expected: str) -> bool:
    """Whether a returned value, as JSON, equals the expected one, as JSON.

    Raises: `ValueError` when `expected` is no JSON.
    """
    wanted = json.loads(expected)
    try:
        return bool(json.loads(given) == wanted)
    except (ValueError, RecursionError):
        return False
