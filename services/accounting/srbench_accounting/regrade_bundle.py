"""Grades of a bundle made again, where it holds the cases with their answers.

Answers and graders are other processes' business, so they are asked as programs: `srbench_planner.references` makes what a
grader needs of a case, `srbench_grader.offline` grades.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from srbench_kit import bundle_files as files
from srbench_kit.canonical import digest
from srbench_kit.errors import DataLoss, Unreachable
from srbench_kit.values import Json

from srbench_accounting.bundle_reading import BundledRun

REFERENCES, GRADER = "srbench_planner.references", "srbench_grader.offline"
TIMEOUT_S = 3600.0


def regrade(bundled: BundledRun, texts: Mapping[int, str]) -> dict[str, Json]:
    """How many grades were made again, and which differ. `texts` has the final text by cell.

    Raises: `DataLoss` (`BAD_MEMBER`) for a case that is not the plan's, `Unreachable` (`PROGRAM_FAILED`).
    """
    check_answers(bundled)
    graded = [row.outcome for row in bundled.outcomes if row.sequence and row.outcome.HasField("correct")]
    again = [one for one in graded if one.case_index in bundled.answers and one.cell in texts and not one.output_limit]
    rows: list[Json] = [
        {"index": one.case_index, "grader": bundled.cases[one.case_index].grader, "case": bundled.answers[one.case_index]}
        for one in again
    ]
    references = _ask(REFERENCES, rows)
    asked: list[Json] = [
        {"grader": bundled.cases[one.case_index].grader, "text": texts[one.cell], "reference": reference}
        for one, reference in zip(again, references, strict=True)
    ]
    made = [
        (one, grade)
        for one, grade in zip(again, _ask(GRADER, asked), strict=True)
        if isinstance(grade, dict) and grade.get("correct") is not None
    ]
    differing: list[Json] = [
        {"cell": one.cell, "recorded": one.correct, "derived": grade["correct"]}
        for one, grade in made
        if one.correct != grade["correct"]
    ]
    # An answer that was cut by the output limit is wrong whatever its text says.
    differing += [
        {"cell": one.cell, "recorded": one.correct, "derived": False} for one in graded if one.output_limit and one.correct
    ]
    cut = sum(one.output_limit for one in graded)
    return {
        "compared": len(made) + cut,
        "equal": len(made) + cut - len(differing),
        "not_made_again": len(graded) - len(made) - cut,
        "differing": differing,
    }


def check_answers(bundled: BundledRun) -> None:
    """Raises: `DataLoss` (`BAD_MEMBER`) unless every case in the answers is the plan's own, of split `dev`."""
    member = files.run_file(bundled.run.id, files.ANSWERS)
    for index, case in bundled.answers.items():
        planned = bundled.cases[index] if 0 <= index < len(bundled.cases) else None
        if planned is None or not isinstance(case, dict) or digest(case) != planned.sha256:
            raise DataLoss("BAD_MEMBER", f"{member}: case {index} is not the plan's", member=member)
        if planned.split != "dev":
            raise DataLoss("BAD_MEMBER", f"{member}: case {index} is not of the split dev", member=member)


def all_made_again(grades: Mapping[str, Json]) -> bool:
    """Whether every grade of a run was made again."""
    return bool(grades) and grades["not_made_again"] == 0


def _ask(module: str, rows: Sequence[Json]) -> list[Json]:
    """What a program answers, a line for each row. Raises: `Unreachable` (`PROGRAM_FAILED`)."""
    if not rows:
        return []
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=b"".join(files.json_bytes(row) for row in rows),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(rows):
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise Unreachable("PROGRAM_FAILED", f"{module} ended with code {done.returncode}: {said}")
    return [json.loads(line) for line in lines]
