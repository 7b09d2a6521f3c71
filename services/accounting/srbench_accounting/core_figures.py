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
from srbench_accounting.report import make_report

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
    ) -> report_pb2.Report:
        """The report of a run. `correction`: what it says of the correction in force."""
        facts = replace(report_input.run_facts(run), accounting_correction=correction)
        return report_convert.report(make_report(facts, self.plan(run.plan, cases), outcomes, calls))

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
        )

    def plan(self, plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
        """The columns of a plan."""
        found = self._plans.get(plan.plan_sha256)
        if found is None:
            while len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans)))
            found = self._plans[plan.plan_sha256] = report_input.plan_columns(plan, cases)
        return found
