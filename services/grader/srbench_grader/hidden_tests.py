"""The tests of a case, as they lie in its hidden part. They reach planner and grader only."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json


@dataclass(frozen=True, slots=True)
class IoTest:
    """One input and the output that is expected for it."""

    input: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IoTests:
    """Tests of one kind.

    Attributes:
        function: the function to call with each input, one JSON value a line; empty for programs that read standard input.
    """

    tests: tuple[IoTest, ...]
    function: str = ""


def io_tests(data: bytes, where: str) -> IoTests:
    """The tests in the hidden part of a code case.

    Raises: `InvalidInput` (`BAD_TESTS`) for anything else, and when there is no test at all.
    """
    try:
        found: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("tests"), list)
        or not isinstance(found.get("function"), str)
    ):
        raise InvalidInput("BAD_TESTS", f"the hidden part of {where} holds no tests")
    tests: list[IoTest] = []
    listed = found["tests"]
    assert isinstance(listed, list)
    for place, test in enumerate(listed):
        given, wanted = (test.get("input"), test.get("output")) if isinstance(test, dict) else (None, None)
        if not isinstance(given, str) or not isinstance(wanted, str):
            raise InvalidInput("BAD_TESTS", f"test {place} of {where} has no input and output")
        tests.append(IoTest(given, wanted))
    if not tests:
        raise InvalidInput("BAD_TESTS", f"{where} has no tests")
    return IoTests(tests=tuple(tests), function=str(found["function"]))
