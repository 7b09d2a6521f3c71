"""Fits the pure core's figures of whole runs, reports and sides of comparisons, to plans and facts of the service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srbench.v1 import plan_pb2, report_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.values import Json

from srbench_accounting import report_convert, report_input, rules_input
from srbench_accounting.columns import CallColumns, OutcomeColumns, PlanColumns
from srbench_accounting.compare import RunFigures
from srbench_accounting.derived import LoadedRun
from srbench_accounting.lineage import Attempt, Merged, merge
from srbench_accounting.report import ChildAttempt, make_report
from srbench_accounting.routing import RoutingColumns

MAX_PLANS = 16


class CoreFigures:
    """Makes reports and figures. The columns of the last plans are kept, since a plan never changes."""

    def __init__(self) -> None:
        self._plans: dict[str, PlanColumns] = {}

    def report(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
        *,
        correction: Json,
        recoveries: Sequence[planner_pb.Run],
        routings: RoutingColumns | None,
    ) -> report_pb2.Report:
        """The report of a run. `correction`: what it says of the one in force. `recoveries` are named, not counted.
        `routings`: its answered previews."""
        facts = report_input.run_facts(run)
        facts = replace(facts, accounting_correction=correction, child_attempts=_attempts(recoveries))
        return report_convert.report(make_report(facts, self.plan(run.plan, cases), outcomes, calls, routings))

    def merged_report(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> report_pb2.Report:
        """The report of a run together with its recoveries."""
        plan = self.plan(runs[0].run.plan, cases)
        found = merged_run(runs, plan)
        return report_convert.report(make_report(found.facts, plan, found.outcomes, found.calls))

    def merged_figures(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> RunFigures:
        """The figures of a run together with its recoveries, as one side of a comparison."""
        first = runs[0].run
        plan = self.plan(first.plan, cases)
        found = merged_run(runs, plan)
        return RunFigures(
            plan=plan,
            outcomes=found.outcomes,
            report=make_report(found.facts, plan, found.outcomes, found.calls),
            singles=rules_input.singles(first.plan),
            rules=rules_input.rules(first.plan),
            calls=found.calls,
            claims=report_input.claims(first),
        )

    def figures(
        self, run: planner_pb.Run, cases: Sequence[plan_pb2.PlanCase], outcomes: OutcomeColumns, calls: CallColumns
    ) -> RunFigures:
        """The same figures as one side of a comparison."""
        plan = self.plan(run.plan, cases)
        return RunFigures(
            plan=plan,
            outcomes=outcomes,
            report=make_report(report_input.run_facts(run), plan, outcomes, calls),
            singles=rules_input.singles(run.plan),
            rules=rules_input.rules(run.plan),
            calls=calls,
            claims=report_input.claims(run),
        )

    def plan(self, plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
        """The columns of a plan."""
        found = self._plans.get(plan.plan_sha256)
        if found is None:
            while len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans)))
            found = self._plans[plan.plan_sha256] = report_input.plan_columns(plan, cases)
        return found


def merged_run(runs: Sequence[LoadedRun], plan: PlanColumns) -> Merged:
    """A run and its recoveries as one evaluation of `plan`, the first one's: what reports and comparisons take."""
    attempts = [
        Attempt(report_input.run_facts(one.run), [target.id for target in one.run.plan.targets], one.outcomes, one.calls)
        for one in runs
    ]
    found = merge(attempts, plan)
    return replace(found, facts=replace(found.facts, child_attempts=_attempts([one.run for one in runs[1:]])))


def _attempts(recoveries: Sequence[planner_pb.Run]) -> tuple[ChildAttempt, ...]:
    return tuple(report_input.child_attempt(run) for run in recoveries)
