"""Judges answers that are grids of digits (ARC): the last complete grids in the text, exactly equal to the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from srbench_kit import reference_answers
from srbench_kit.errors import InvalidInput
from srbench_kit.reference_answers import Grid
from srbench_kit.values import Json

from srbench_grader.final_text import final_text
from srbench_grader.grading import AMBIGUOUS, PARSED, UNPARSED, Case, Grader, Grading, JudgeReply

VERSION = "sr-bench-grid-v2"
_MAX_DEPTH = 3

_BRACKET = re.compile(r"[\[\]]")
_NESTED = re.compile(r"\[\s*\[")
_OBJECTS = re.compile(r"\[\s*\{")
_LINK = re.compile(r"\((?:https?:|[/#])")
_DIGITS_ONLY = re.compile(r"[\[\]0-9,\s]+")
_LOOSE_COMMA = re.compile(r",(\s*\])")
_ROW_GAP = re.compile(r"\](\s*)\[")
_DIGIT_GAP = re.compile(r"(?<=\d)[ \t]+(?=\d)")
_TEXT_ROW = re.compile(r"[ \t]*\d(?:[ \t]+\d)*[ \t]*")
# Rows in brackets one below the other, which no brackets hold together.
_LOOSE_ROWS = re.compile(
    r"^(?:[ \t]{0,16}\[ {0,4}\d(?: {0,4}[ ,] {0,4}\d){0,29} {0,4},? {0,4}\],?[ \t]{0,4}(?:\r?\n|\Z)){2,30}", re.MULTILINE
)
_MARKS = re.compile(r"[\[\],]")
_NUMBERS = re.compile(r"[-\d.,\s]*\d[-\d.,\s]*")
_MAX_ROW_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Grids:
    """What a text says.

    Attributes:
        grids: the grids in order; None when there are none that count.
        status: `parsed`, `unparsed` or `ambiguous`.
        problem: why nothing counts, a stable word; empty otherwise.
        strict: whether the text is nothing but the JSON.
    """

    grids: list[Grid] | None
    status: str
    problem: str = ""
    strict: bool = False


def judge(text: str, case: Case, _replies: tuple[JudgeReply, ...] = ()) -> Grading:
    """Judges `text` against the case's grid, or list of grids when its metadata says `output_format: grids`.

    `details` has `pairs_correct` and `pairs_total`: test inputs answered right, of all.
    Raises: `InvalidInput` (`BAD_REFERENCE`) when the reference is no valid grid.
    """
    listed, expected = reference_grids(case)
    found = read_grids(_parts(text, len(expected)), len(expected))
    return _grading(found, listed, expected)


def _grading(found: Grids, listed: bool, expected: list[Grid]) -> Grading:
    grids = found.grids or []
    complete = len(grids) == len(expected)
    right = sum(given == wanted for given, wanted in zip(grids, expected, strict=False)) if complete else 0
    details: dict[str, Json] = {"pairs_correct": right, "pairs_total": len(expected)}
    if found.problem:
        details["problem"] = found.problem
    extracted: Json = None
    if found.grids is not None:
        extracted = [_json(grid) for grid in grids] if listed or len(grids) != 1 else _json(grids[0])
    return Grading(
        correct=complete and right == len(expected),
        status=found.status,
        extracted=extracted,
        strict_format=found.strict,
        details=details,
    )


def _json(grid: Grid) -> Json:
    return [list[Json](row) for row in grid]


def reference_grids(case: Case) -> tuple[bool, list[Grid]]:
    """Whether the reference is a list of grids, and its grids.

    Raises: `InvalidInput` (`BAD_REFERENCE`).
    """
    grid = reference_answers.grid(case.answer)
    if grid is not None and case.metadata.get("output_format") != "grids":
        return False, [grid]
    found = reference_answers.grids(case.answer)
    if found is None:
        raise InvalidInput(
            "BAD_REFERENCE", f"the reference of {case.case_id or 'the case'} is neither a grid nor a list of grids"
        )
    return True, found


def _parts(text: str, count: int) -> Sequence[str]:
    """The texts in `text`: itself, or its items when it is a JSON list of `count` texts, one for each test input."""
    if count > 1 and text.lstrip().startswith('["'):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError):
            return [text]
        if len(items) == count and all(isinstance(item, str) for item in items):
            return items  # type: ignore[no-any-return]  # checked just now
    return [text]


def read_grids(texts: Sequence[str], count: int) -> Grids:
    """The last complete grids of a text, `count` of them wanted; or the last grid of each text when there are several."""
    if len(texts) == 1:
        return _read_one(final_text(texts[0]), count)
    each = [_read_one(final_text(text), 1) for text in texts]
    found = [part.grids[0] for part in each if part.grids]
    if len(found) != len(texts):
        worst = next(part for part in each if not part.grids)
        return Grids(grids=None, status=worst.status, problem=worst.problem)
    return Grids(grids=found, status=PARSED, strict=all(part.strict for part in each))


def _read_one(text: str, count: int) -> Grids:
    groups = _nested_groups(text)
    if not groups:
        return _read_rows(text, count)
    start, end, depth = groups[-1]
    strict = not text[:start].strip() and not text[end:].strip()
    value = _value(text[start:end], depth)
    if depth == _MAX_DEPTH:
        return _listed(value, count, strict)
    last = reference_answers.grid(value)
    if last is None:
        return Grids(grids=None, status=UNPARSED, problem=_fault(value))
    if count == 1:
        return Grids(grids=[last], status=PARSED, strict=strict)
    grids = [last]
    for start, end, depth in reversed(groups[:-1]):
        if len(grids) == count or depth != 2:
            break
        earlier = reference_answers.grid(_value(text[start:end], depth))
        if earlier is None:
            return Grids(grids=None, status=UNPARSED, problem="malformed")
        grids.insert(0, earlier)
    problem = "" if len(grids) == count else "too_few_grids"
    return Grids(grids=grids, status=PARSED, problem=problem)


def _listed(value: Json, count: int, strict: bool) -> Grids:
    """A list of grids; more than were asked for is a hedge."""
    found = reference_answers.grids(value)
    if found is None:
        return Grids(grids=None, status=UNPARSED, problem=_fault(value))
    if len(found) > count:
        return Grids(grids=None, status=AMBIGUOUS, problem="too_many_grids")
    return Grids(grids=found, status=PARSED, problem="" if len(found) == count else "too_few_grids", strict=strict)


def _nested_groups(text: str) -> list[tuple[int, int, int]]:
    """The outermost complete bracket groups of at least two levels that hold data: (start, end, depth), in order.

    An opening bracket that is never closed hides nothing behind it. Linear in the text.
    """
    open_at: list[tuple[int, int]] = []
    groups: list[tuple[int, int, int]] = []
    for match in _BRACKET.finditer(text):
        position = match.start()
        if text[position] == "[":
            open_at.append((position, 0))
        elif open_at:
            start, inner = open_at.pop()
            if _OBJECTS.match(text, start):
                # The grids in a list of objects stand for themselves.
                continue
            if open_at and open_at[-1][1] <= inner:
                open_at[-1] = (open_at[-1][0], inner + 1)
            while groups and groups[-1][0] > start:
                groups.pop()
            groups.append((start, position + 1, inner + 1))
    return [group for group in groups if group[2] >= 2 and _holds_data(text, group)]


def _holds_data(text: str, group: tuple[int, int, int]) -> bool:
    """Whether a nested group may be meant as a grid: `[[1, 0]]` is, `[[source]]` and `[[1]](https://...)` are not."""
    start, end, _ = group
    if _LINK.match(text, end):
        return False
    return any(character.isdigit() for character in text[start : min(end, start + 2000)]) and bool(
        _NESTED.match(text, start)
    )


def _value(group: str, depth: int) -> Json:
    """The lists that `group` writes; None when it holds anything but digits, or nests too deep.

    Rows without commas, as NumPy prints them, and a comma before a closing bracket are read, too.
    """
    if depth > _MAX_DEPTH or not _DIGITS_ONLY.fullmatch(group):
        return None
    if "," not in group:
        group = _DIGIT_GAP.sub(",", group)
        group = _ROW_GAP.sub(r"],\1[", group)
    try:
        value: Json = json.loads(_LOOSE_COMMA.sub(r"\1", group))
    except ValueError:
        return None
    return value


def _fault(value: Json) -> str:
    return "malformed" if value is None else "not_a_grid"


def _read_rows(text: str, count: int) -> Grids:
    """Grids written as plain rows of digits apart by spaces, or as rows in brackets.

    They count only when the text holds exactly as many as wanted.
    """
    blocks: list[Grid] = [[]]
    for line in _LOOSE_ROWS.sub(lambda rows: _MARKS.sub(" ", rows[0]), text).splitlines():
        if len(line) <= _MAX_ROW_CHARS and _TEXT_ROW.fullmatch(line):
            blocks[-1].append([int(cell) for cell in line.split()])
        elif _NUMBERS.fullmatch(line[:_MAX_ROW_CHARS]):
            return Grids(grids=None, status=UNPARSED, problem="not_a_grid")
        elif blocks[-1]:
            blocks.append([])
    written = [block for block in blocks if block and (len(block) > 1 or len(block[0]) > 1)]
    if not written:
        return Grids(grids=None, status=UNPARSED, problem="no_grid")
    if len(written) != count:
        return Grids(grids=None, status=AMBIGUOUS, problem="unclear_rows")
    checked = [reference_answers.grid([list[Json](row) for row in block]) for block in written]
    grids = [grid for grid in checked if grid is not None]
    if len(grids) != count:
        return Grids(grids=None, status=UNPARSED, problem="not_a_grid")
    return Grids(grids=grids, status=PARSED)


GRADER = Grader(name="grid", version=VERSION, judge=judge)
