"""Tests of problems that are solved in steps, as SciCode writes them: what of a row is hidden, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from srbench_kit.canonical import canonical_bytes
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a problem.

    Attributes:
        number: as upstream numbers it, such as `77.1`; names its targets.
        header: the beginning of the function that it asks for.
        tests: Python texts that end in assertions over `target`; none where upstream has none.
    """

    number: str
    header: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTests:
    """The hidden part of a problem: its imports, which stand before every program, and its steps."""

    dependencies: str
    steps: tuple[Step, ...]


def hidden_part(row: Mapping[str, Json]) -> bytes:
    """The tests of a row, as `{"dependencies": "", "steps": [{"header": "", "number": "", "tests": [""]}, ...]}`.

    Raises: `InvalidInput` (`BAD_ROW`) with the field at fault.
    """
    steps: list[Json] = []
    for place, step in enumerate(rows_of(row)):
        tests = step.get("test_cases")
        if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
            raise _bad("test_cases", f"sub_steps[{place}].test_cases is no list of texts")
        steps.append({"number": _text(step, "step_number"), "header": _text(step, "function_header"), "tests": tests})
    return canonical_bytes({"dependencies": _text(row, "required_dependencies"), "steps": steps})


def step_tests(data: bytes, where: str) -> StepTests:
    """What `hidden_part` made. Raises: `InvalidInput` (`BAD_TESTS`) for anything else."""
    try:
        found = orjson.loads(data)
        return StepTests(
            dependencies=str(found["dependencies"]),
            steps=tuple(
                Step(number=str(step["number"]), header=str(step["header"]), tests=tuple(map(str, step["tests"])))
                for step in found["steps"]
            ),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise InvalidInput("BAD_TESTS", f"the hidden part of {where} holds no steps with tests") from None


def rows_of(row: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The steps of a row as upstream has them. Raises: `InvalidInput` (`BAD_ROW`)."""
    steps = row.get("sub_steps")
    if not isinstance(steps, list) or not steps:
        raise _bad("sub_steps", "sub_steps is no list of at least one step")
    found: list[dict[str, Json]] = []
    for place, step in enumerate(steps):
        if not isinstance(step, dict):
            raise _bad("sub_steps", f"sub_steps[{place}] is no object")
        found.append(step)
    return found


def _text(row: Mapping[str, Json], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise _bad(name, f"{name} is {type(value).__name__}; expected text")
    return value


def _bad(field: str, message: str) -> InvalidInput:
    return InvalidInput("BAD_ROW", message, field=field)
