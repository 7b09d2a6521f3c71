"""How well a run's judges judge, as reports and `GetJudging` show it: two judges' agreement, and what people correct."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as facts
from srbench.v1 import judging_pb2 as pb
from srbench.v1 import plan_pb2, report_pb2
from srbench_kit.values import Json, object_of

from srbench_accounting import audit, audit_store
from srbench_accounting.agreement import agreement
from srbench_accounting.listing import Filter, Start
from srbench_accounting.packing import unpack
from srbench_accounting.ranking import Ranking
from srbench_accounting.rows import timestamp
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.saved_answers import BATCH
from srbench_accounting.store import Store

Cell: TypeAlias = tuple[str, str]
Labels: TypeAlias = Mapping[Cell, bool]
JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class Judged:
    """One cell of a judged benchmark; `correct` is `None` without a grade."""

    case_id: str
    target_id: str
    benchmark: str
    correct: bool | None
    details: Mapping[str, Json]


def section(
    store: Store, connection: Connection, run: KnownRun, plan: plan_pb2.Plan, cases: PlanCases, report: report_pb2.Report
) -> pb.Judging | None:
    """What is known of the judges of a live run, beside the figures in `report`; `None` when that is nothing."""
    benchmarks = {case.benchmark for case in cases.cases if case.grader == JUDGE}
    if not benchmarks or plan.mode not in ("", "live"):
        return None
    options = object_of(plan.benchmark_options)
    twice = any(isinstance(own := options.get(name), dict) and own.get("second_judge") for name in benchmarks)
    audited = audit_store.newest(connection, run.run_no)
    if audited is None and not twice:
        return None
    found = judged_cells(store, connection, run, cases)
    made = pb.Judging(run_id=run.run_id, agreements=_agreements(found))
    if audited is not None:
        name, create_us, said = audited
        made.audit_id, made.auditor = name, said.auditor
        made.audit_time.CopyFrom(timestamp(create_us))
        labels = {(label.case_id, label.target_id): label.correct for label in said.labels}
        _correct(made, _Figures(report, dict(plan.benchmark_weights), found, labels))
    return made


def judged_cells(store: Store, connection: Connection, known: KnownRun, cases: PlanCases) -> list[Judged]:
    """All cells with an outcome whose benchmark is graded by a judge."""
    found: list[Judged] = []
    wanted = Filter(cases=frozenset(index for index, case in enumerate(cases.cases) if case.grader == JUDGE))
    after, more = 0, True
    while more:
        page = store.ranks.outcomes.page(connection, known.run_no, cases, (wanted, Ranking()), Start(after), BATCH)
        for _, row in store.lists.outcomes(connection, page.ids):
            case = cases.cases[row.case_index]
            details = object_of(unpack(facts.CellOutcome, row.rest).details)
            correct = None if row.correct is None else bool(row.correct)
            target = known.context.targets[row.target_index].id
            found.append(Judged(case.case_id, target, case.benchmark, correct, details))
        more = page.more
        after = page.last if more else after
    return found


def _agreements(found: Sequence[Judged]) -> list[pb.JudgeAgreement]:
    by_benchmark: dict[str, list[Mapping[str, Json]]] = defaultdict(list)
    for one in found:
        by_benchmark[one.benchmark].append(one.details)
    agreements: list[pb.JudgeAgreement] = []
    for name, details in sorted(by_benchmark.items()):
        figures = agreement(details)
        if figures is not None:
            agreements.append(
                pb.JudgeAgreement(
                    benchmark=name,
                    pair_count=figures.pairs,
                    unpaired_count=figures.unpaired,
                    observed=figures.observed,
                    kappa=figures.kappa,
                )
            )
    return agreements


class _Figures:
    """A report's rows with the judge's verdicts and people's labels that belong to each."""

    def __init__(
        self, report: report_pb2.Report, weights: Mapping[str, float], found: Sequence[Judged], labels: Labels
    ) -> None:
        self.report = report
        self.weights = weights
        self.verdicts: dict[Cell, list[bool]] = defaultdict(list)
        self.pairs: dict[Cell, list[tuple[bool, bool]]] = defaultdict(list)
        self.judged = {one.benchmark for one in found}
        for one in found:
            if one.correct is not None:
                key, label = (one.benchmark, one.target_id), labels.get((one.case_id, one.target_id))
                self.verdicts[key].append(one.correct)
                if label is not None:
                    self.pairs[key].append((one.correct, label))


def _correct(made: pb.Judging, figures: _Figures) -> None:
    """Puts the corrected accuracies into `made`, those of each benchmark by name and the headlines in plan order."""
    rows = [row for row in figures.report.benchmarks if row.benchmark in figures.judged]
    made.audited.extend(
        _audited(row, figures.verdicts[row.benchmark, row.target_id], figures.pairs[row.benchmark, row.target_id])
        for row in sorted(rows, key=lambda row: (row.benchmark, row.target_id))
    )
    made.headlines.extend(_headline(whole, figures) for whole in figures.report.summary.targets)


def _audited(row: report_pb2.Metrics, judged: list[bool], pairs: list[tuple[bool, bool]]) -> pb.AuditedAccuracy:
    made = pb.AuditedAccuracy(
        benchmark=row.benchmark,
        target_id=row.target_id,
        planned_count=row.total,
        graded_count=len(judged),
        audited_count=len(pairs),
        agreed_count=_agreed(pairs),
        judged_accuracy=row.accuracy,
        method=audit.METHOD,
    )
    corrected = audit.corrected(judged, pairs, row.total)
    if corrected is not None:
        made.corrected_accuracy, made.lower, made.upper = corrected.accuracy, corrected.lower, corrected.upper
    judge = audit.quality(judged, pairs, row.total)
    for field, value in (
        ("sensitivity", judge.sensitivity),
        ("specificity", judge.specificity),
        ("rogan_gladen_accuracy", judge.rogan_gladen),
    ):
        if value is not None:
            setattr(made, field, value)
    return made


def _headline(whole: report_pb2.Metrics, figures: _Figures) -> pb.AuditedHeadline:
    rows = [row for row in figures.report.benchmarks if row.target_id == whole.id]
    keys = [(row.benchmark, row.target_id) for row in rows]
    pairs = [pair for key in keys for pair in figures.pairs[key]]
    made = pb.AuditedHeadline(
        target_id=whole.id,
        planned_count=whole.total,
        accuracy=whole.accuracy,
        graded_count=sum(len(figures.verdicts[key]) for key in keys),
        audited_count=len(pairs),
        agreed_count=_agreed(pairs),
        method=audit.METHOD,
    )
    corrected = audit.headline(_parts(rows, {row.benchmark: row.total for row in rows}, figures))
    if corrected is not None:
        made.corrected_accuracy, made.lower, made.upper = corrected.accuracy, corrected.lower, corrected.upper
    if whole.HasField("macro_accuracy"):
        made.macro_accuracy = whole.macro_accuracy
        weights = {row.benchmark: figures.weights.get(row.benchmark, 1.0) for row in rows}
        macro = audit.headline(_parts(rows, weights, figures))
        if macro is not None:
            made.corrected_macro_accuracy, made.macro_lower, made.macro_upper = macro.accuracy, macro.lower, macro.upper
    return made


def _parts(rows: Sequence[report_pb2.Metrics], weights: Mapping[str, float], figures: _Figures) -> list[audit.Part]:
    total = sum(weights.values())
    return [
        audit.Part(
            weight=weights[row.benchmark] / total,
            correct=row.correct,
            planned=row.total,
            judged=figures.verdicts[row.benchmark, row.target_id],
            pairs=figures.pairs[row.benchmark, row.target_id],
        )
        for row in rows
    ]


def _agreed(pairs: Sequence[tuple[bool, bool]]) -> int:
    return sum(verdict == label for verdict, label in pairs)
