"""What the installed graders make of a run's saved answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sqlalchemy.engine import Connection
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.errors import InvalidInput

from srbench_accounting.rows import Stored
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.saved_answers import BATCH, SavedAnswer, check_completed, place_of, read_batch
from srbench_accounting.store import Store

VERSION, KIND = "sr-bench-1.0", "offline-regrade"
# Graders that judge by the text alone: no model is asked and no program is run.
REGRADABLE = frozenset({"choice", "grid"})


class Graders(Protocol):
    """What regrading asks of the grader. Raises: `Unreachable`."""

    async def grade(self, answers: Sequence[grader_pb.Answer]) -> list[grader_pb.Grade]:
        """The grade of each answer, in order."""
        ...


@dataclass(frozen=True, slots=True)
class _Saved:
    """A saved answer and where its text lies; `None` where there is nothing to grade."""

    saved: SavedAnswer
    stored: Stored | None


async def regrade(
    store: Store, run: KnownRun, planner_run: planner_pb.Run, cases: PlanCases, graders: Graders, installed: dict[str, str]
) -> pb.Regrading:
    """The grades of all saved answers, beside what they were.

    Raises: `Conflict` (`NOT_COMPLETED`), `InvalidInput` (`NOT_LIVE`, `NOT_REGRADABLE`, `SEVERAL_CALLS`), `Unreachable`.
    """
    check(planner_run, cases)
    made = pb.Regrading(
        version=VERSION,
        source_run_id=run.run_id,
        kind=KIND,
        source_adapter_versions=planner_run.plan.adapter_versions,
        adapter_versions={name: installed[name] for name in planner_run.plan.adapter_versions if name in installed},
        source_plan_sha256=planner_run.plan.plan_sha256,
    )
    after, more = 0, True
    while more:
        batch = await store.reader.run(partial(_read, store, run=run, cases=cases, after=after))
        asked = {place: one.stored for place, one in enumerate(batch) if one.stored is not None}
        texts = await store.reads.texts(list(asked.values()))
        answers = [_answer(planner_run, cases, batch[place], text) for place, text in zip(asked, texts, strict=True)]
        grades = dict(zip(asked, await graders.grade(answers) if answers else (), strict=True))
        made.results.extend(_result(run, cases, one.saved, grades.get(place)) for place, one in enumerate(batch))
        after, more = after + len(batch), len(batch) == BATCH
    made.grader_version = ", ".join(sorted({one.grader_version for one in made.results if one.grader_version}))
    made.changed_count = sum(one.changed for one in made.results)
    made.gained_count = sum(one.changed and one.correct for one in made.results)
    made.lost_count = sum(one.changed and one.source_correct for one in made.results)
    return made


def check(run: planner_pb.Run, cases: PlanCases) -> None:
    """Raises: `Conflict` (`NOT_COMPLETED`), `InvalidInput` (`NOT_LIVE`, `NOT_REGRADABLE`)."""
    check_completed(run, "regraded")
    for case in cases.cases:
        if case.grader not in REGRADABLE:
            sentence = (
                f"benchmark {case.benchmark} is graded by {case.grader or 'an unknown grader'}, which needs more than"
            )
            raise InvalidInput("NOT_REGRADABLE", f"{sentence} the saved text", benchmark=case.benchmark)


def _read(store: Store, connection: Connection, run: KnownRun, cases: PlanCases, after: int) -> list[_Saved]:
    found: list[_Saved] = []
    for saved in read_batch(store, connection, run, after):
        row = saved.row
        if row.state != queue_pb.CELL_STATE_DONE:
            found.append(_Saved(saved, None))
            continue
        completed = saved.completed
        if len(completed) != 1:
            where = f"case {cases.cases[row.case_index].case_id} of run {run.run_id}"
            sentence = (
                f"{where} has {len(completed)} completed calls; an answer that took several cannot be graded by itself"
            )
            raise InvalidInput("SEVERAL_CALLS", sentence)
        # An answer that was cut counts as wrong by that alone, and was never shown to a grader.
        found.append(_Saved(saved, None if row.output_limit else place_of(store, connection, completed[0])))
    return found


def _answer(run: planner_pb.Run, cases: PlanCases, one: _Saved, text: str) -> grader_pb.Answer:
    index = one.saved.row.case_index
    return grader_pb.Answer(case_sha256=run.plan.case_sha256, case_index=index, grader=cases.cases[index].grader, text=text)


def _result(run: KnownRun, cases: PlanCases, saved: SavedAnswer, grade: grader_pb.Grade | None) -> pb.RegradedResult:
    row, case = saved.row, cases.cases[saved.row.case_index]
    source = None if row.correct is None else bool(row.correct)
    result = pb.RegradedResult(
        case_id=case.case_id,
        benchmark=case.benchmark,
        target_id=run.context.targets[row.target_index].id,
        source_correct=source,
        source_answer=saved.answer,
    )
    if grade is None:
        result.reason = "output_limit" if row.output_limit else "no_answer"
        if row.output_limit:
            result.correct, result.score = False, 0.0
    else:
        result.answer_status, result.grader_version = grade.answer_status, grade.grader_version
        result.reason = grade.failure_reason or ("judge_needed" if grade.HasField("judge_request") else "")
        result.answer.CopyFrom(grade.extracted)
        if grade.HasField("correct"):
            result.correct = grade.correct
        if grade.HasField("score"):
            result.score = grade.score
    now = result.correct if result.HasField("correct") else None
    result.changed = now != source
    return result
