"""Which saved runs can be compared, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import target_pb2

from srbench_accounting import rules_input
from srbench_accounting.comparable import OVER, Contender, Difference, Endings, differences, faults


def shown(run: planner_pb.Run, reasons: Iterable[Difference] = ()) -> pb.ComparisonRun:
    """A run in a list of options."""
    plan = run.plan
    return pb.ComparisonRun(
        id=run.id,
        name=plan.name,
        status=run.status,
        create_time=run.create_time,
        profile=plan.profile,
        case_count=plan.case_count,
        targets=[
            pb.ComparisonTarget(
                id=target.id,
                kind="mom" if target.kind == target_pb2.TARGET_KIND_MOM else "single",
                model=target.model,
                config_hash=target.config_hash,
            )
            for target in plan.targets
        ],
        reasons=[pb.Difference(reason=one.reason, message=one.message, facts=one.facts) for one in reasons],
    )


def contender(run: planner_pb.Run, endings: Endings, cases: frozenset[str] | None) -> Contender:
    """A run as one side, without its figures."""
    return Contender(
        run_id=run.id,
        status=run.status,
        mode=run.plan.mode or "live",
        rules=rules_input.rules(run.plan),
        endings=endings,
        cases=cases,
        case_sha256=run.plan.case_sha256,
        has_single=bool(rules_input.singles(run.plan)),
    )


def has_partner(run: planner_pb.Run, others: Sequence[planner_pb.Run]) -> bool:
    """Whether, as far as plans and states tell, another of the runs can be compared with this baseline."""
    own = _by_plan(run)
    if faults(own, baseline=True):
        return False
    return any(
        other.id != run.id
        and other.status in OVER
        and other.plan.case_sha256 == run.plan.case_sha256
        and not differences(own, _by_plan(other))
        for other in others
    )


def _by_plan(run: planner_pb.Run) -> Contender:
    """A run as its plan and its progress tell it: cells that failed count as ended."""
    progress = run.progress
    unfinished = progress.cancelled + progress.interrupted
    ended = progress.completed + progress.failed
    endings = Endings(planned=run.plan.total, ended=ended, unfinished=unfinished)
    whole = run.plan.total == run.plan.case_count * len(run.plan.targets)
    return contender(run, endings, frozenset({run.plan.case_sha256}) if whole else None)
