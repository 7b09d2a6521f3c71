"""From rows to the cases of a profile. Every bad row is named; nothing is chosen silently. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import cast

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner.benchmark import BenchmarkSpec, Profile, Row, Task, bad_row, split_of
from srbench_planner.dataset import Case
from srbench_planner.files import MAX_ROWS, too_many_rows
from srbench_planner.selection import Candidate, ordered, window

MAX_SHOWN = 20
ROLES = frozenset({"system", "user", "assistant", "tool", "developer"})
_ID_FIELDS = ("question_id", "problem_id", "id", "Record ID")


def cases_of(spec: BenchmarkSpec, rows: Iterable[Row], *, seed: int, revision: str, name: str) -> list[Case]:
    """The cases of all `rows`, without a split yet. `name` is what messages call the source.

    Raises: `InvalidInput` (`MISSING_COLUMN`, `BAD_ROW`, `NO_ROWS`, `TOO_MANY_ROWS`).
    """
    cases: list[Case] = []
    first_seen: dict[str, str] = {}
    problems: list[tuple[str, str, str]] = []
    for row in _with_columns(spec, rows, name):
        if spec.keeps is not None and not row.problem and not _is_case(spec, row) and not spec.keeps(row):
            continue
        try:
            case = _case(spec, row, seed, revision)
            case_id = str(case["id"])
            if case_id in first_seen:
                raise bad_row("id", f"it has the same id as {first_seen[case_id]}, {case_id!r}")
            first_seen[case_id] = row.where
            cases.append(case)
        except InvalidInput as error:
            problems.append((_where(row), error.message, error.facts.get("field", "")))
    if problems:
        raise _bad_rows(name, problems, len(cases) + len(problems))
    if not cases:
        raise InvalidInput("NO_ROWS", f"{name} holds no rows")
    return cases


def select(spec: BenchmarkSpec, cases: list[Case], *, profile: Profile, seed: int, limit: int | None) -> list[Case]:
    """The cases that `profile` takes, in selection order, each with its split.

    Raises: `InvalidInput` (`BAD_LIMIT`, `TOO_FEW_CASES`).
    """
    by_id = {str(case["id"]): case for case in cases}
    candidates = [Candidate(case_id, stratum_of(case)) for case_id, case in by_id.items()]
    chosen = window(ordered(candidates, seed, spec.order), spec.counts, profile, limit, spec.id)
    split = split_of(profile)
    return [by_id[case_id] | {"metadata": _metadata(by_id[case_id]) | {"split": split}} for case_id in chosen]


def stratum_of(case: Case) -> str:
    """The stratum of a case; `all` where it names none."""
    stratum = _metadata(case).get("stratum")
    return stratum if isinstance(stratum, str) and stratum else "all"


def _metadata(case: Case) -> dict[str, Json]:
    metadata = case.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _with_columns(spec: BenchmarkSpec, rows: Iterable[Row], name: str) -> Iterator[Row]:
    """The rows as they come, after the first readable one has shown that this is the right kind of file."""
    checked = False
    for count, row in enumerate(rows):
        if count >= MAX_ROWS:
            raise too_many_rows(name)
        if not checked and not row.problem:
            checked = True
            missing = [column for column in spec.columns if column not in row.values]
            if missing and not _is_case(spec, row):
                raise InvalidInput(
                    "MISSING_COLUMN",
                    f"{name} does not look like {spec.title}: it has no {', '.join(missing)}; "
                    f"it has {', '.join(sorted(row.values)[:20]) or 'nothing'}",
                    field=missing[0],
                )
        yield row


def _is_case(spec: BenchmarkSpec, row: Row) -> bool:
    """Whether the row is a finished case of the benchmark, which is taken over as it is."""
    return row.values.get("benchmark") == spec.id and "messages" in row.values


def _case(spec: BenchmarkSpec, row: Row, seed: int, revision: str) -> Case:
    if row.problem:
        raise bad_row("", row.problem)
    if _is_case(spec, row):
        return _with_hidden(_finished_case(spec, row, revision), hidden_of(spec, row))
    if spec.normalize is None:
        raise InvalidInput("NOT_AVAILABLE", f"this build cannot prepare {spec.id}", value=spec.id)
    return _with_hidden(_case_of_task(spec, spec.normalize(row, seed), revision), hidden_of(spec, row))


def hidden_of(spec: BenchmarkSpec, row: Row) -> bytes | None:
    """The part of a row that is stored apart; `None` where there is none. Raises `InvalidInput` (`BAD_ROW`).

    A finished case of the released implementation carries the whole row of its source within.
    """
    if spec.hidden is None or row.problem:
        return None
    if not _is_case(spec, row):
        return spec.hidden(row)
    record = _metadata(dict(row.values)).get("source_record")
    return spec.hidden(Row(position=row.position, where=row.where, values=record)) if isinstance(record, dict) else None


def _with_hidden(case: Case, part: bytes | None) -> Case:
    if part is None:
        return case
    named: dict[str, Json] = {"hidden_sha256": hashlib.sha256(part).hexdigest(), "hidden_byte_count": len(part)}
    kept = {key: value for key, value in _metadata(case).items() if key != "source_record"}
    return case | {"metadata": kept | named}


def _case_of_task(spec: BenchmarkSpec, task: Task, revision: str) -> Case:
    case: Case = {
        "id": f"{spec.id}/{task.identity}",
        "benchmark": spec.id,
        "messages": _messages(task),
        "metadata": {**task.metadata, "stratum": task.stratum, "source_revision": revision},
    }
    if spec.requires_answer:
        case["answer"] = task.answer
    if task.choices:
        case["choices"] = list(task.choices)
    return case


def _finished_case(spec: BenchmarkSpec, row: Row, revision: str) -> Case:
    case: Case = dict(row.values)
    case_id = case.get("id")
    if not isinstance(case_id, str) or not case_id.startswith(f"{spec.id}/"):
        raise bad_row("id", f"id is {case_id!r}; expected text that starts with {spec.id}/")
    messages = case["messages"]
    if not isinstance(messages, list) or (spec.requires_messages and not messages):
        raise bad_row("messages", "messages is no list or empty; expected at least one message")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise bad_row("messages", f"messages[{place}] has no role among {', '.join(sorted(ROLES))}")
    if spec.requires_answer and case.get("answer") is None:
        raise bad_row("answer", "answer is missing or null; expected the reference")
    metadata = {"source_revision": revision, "stratum": stratum_of(case)} | _metadata(case)
    return case | {"metadata": cast("Json", metadata)} | _asked_in_steps(spec, row)


def _asked_in_steps(spec: BenchmarkSpec, row: Row) -> Case:
    """The messages of a problem in steps that the released implementation left to its harness; nothing for others."""
    record = _metadata(dict(row.values)).get("source_record")
    if spec.driver != "scicode" or spec.normalize is None or not isinstance(record, dict):
        return {}
    task = spec.normalize(Row(position=row.position, where=row.where, values=record), 0)
    return {"messages": _messages(task)}


def _messages(task: Task) -> Json:
    return [{"role": role, "content": text} for role, text in task.messages or (("user", task.prompt),)]


def _where(row: Row) -> str:
    for name in _ID_FIELDS:
        value = row.values.get(name)
        # Task files and entries are named by their id already.
        if isinstance(value, str | int) and not (name == "id" and str(value) in row.where):
            return f"{row.where} ({name} {str(value)[:60]})"
    return row.where


def _bad_rows(name: str, problems: list[tuple[str, str, str]], total: int) -> InvalidInput:
    shown = "; ".join(f"{where}: {message}" for where, message, _ in problems[:MAX_SHOWN])
    more = f"; and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
    verb = "is" if len(problems) == 1 else "are"
    return InvalidInput(
        "BAD_ROW",
        f"{name}: {len(problems)} of {total} rows {verb} bad: {shown}{more}",
        field=problems[0][2],
        row=problems[0][0],
        bad_rows=len(problems),
    )
