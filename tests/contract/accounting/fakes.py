"""What accounting asks of others: a planner that answers what a test says, and the core, of which the columns are kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, planner_service_pb2_grpc, report_pb2, target_pb2, work_queue_service_pb2_grpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting.columns import CallColumns, OutcomeColumns
from srbench_accounting.derived import Derived
from srbench_accounting.routing import RoutingColumns
from srbench_kit import auth
from srbench_kit.errors import NotFound

from tests.contract.accounting.facts import RUN


class FakePlanner(planner_service_pb2_grpc.PlannerServiceServicer, work_queue_service_pb2_grpc.WorkQueueServiceServicer):
    """Knows the runs that it is given; counts what it is asked."""

    def __init__(self) -> None:
        self.contexts: dict[str, queue_pb.RunContext] = {}
        self.cases: list[plan_pb2.PlanCase] = []
        self.asked: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def add_run(
        self, run_id: str = RUN, *, max_cost: int = 1000, max_calls: int = 4, policy: str = "require_priced"
    ) -> None:
        """Adds a run of two targets, `fast` and `slow`, and a judge."""
        limits = plan_pb2.Limits(max_cost_picodollars=max_cost, max_calls_per_case=max_calls)
        self.contexts[run_id] = queue_pb.RunContext(
            run_id=run_id,
            plan_sha256="p" * 64,
            limits=limits,
            targets=[target_pb2.Target(id="fast"), target_pb2.Target(id="slow")],
            auxiliary_targets=[target_pb2.Target(id="judge")],
            cost_policy=policy,
        )

    def add_cases(self, count: int) -> None:
        """Adds cases of two benchmarks in turn."""
        names = ("mmlu-pro", "arc-agi-2")
        self.cases = [
            plan_pb2.PlanCase(index=n, case_id=f"case-{n}", benchmark=names[n % 2], target_indexes=[0, 1])
            for n in range(count)
        ]

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        auth.require_role(context, "accounting")
        self.asked.append(request.run_id)
        if request.run_id in self.gates:
            await self.gates[request.run_id].wait()
        if request.run_id not in self.contexts:
            raise NotFound("NO_SUCH_RUN", "no such run")
        return self.contexts[request.run_id]

    async def GetRun(self, request: planner_pb.GetRunRequest, context: Any) -> planner_pb.Run:
        if request.id not in self.contexts:
            raise NotFound("NO_SUCH_RUN", "no such run")
        return planner_pb.Run(id=request.id, status="running", create_time=Timestamp(seconds=1000))

    async def StreamPlanCases(
        self, request: planner_pb.StreamPlanCasesRequest, context: Any
    ) -> AsyncIterator[planner_pb.StreamPlanCasesResponse]:
        for start in range(0, len(self.cases), 1000):
            yield planner_pb.StreamPlanCasesResponse(cases=self.cases[start : start + 1000])


class FakeTarget:
    """Costs what the usage object says, or what its tokens cost at a price; reserves one picodollar an output token."""

    def __init__(self, target: target_pb2.Target) -> None:
        self._prices = dict(target.prices)

    def price(self, receipt: pb.Receipt) -> Derived:
        usage = json.loads(receipt.usage_json or b"{}")
        if usage and (price := self._prices.get(receipt.response_model)):
            usage["cost"] = usage["in"] * price.input_picodollars + usage["out"] * price.output_picodollars
        flags = () if usage else ("no_usage",)
        return Derived(
            input_tokens=usage.get("in"),
            output_tokens=usage.get("out"),
            cost=usage.get("cost"),
            cost_lower=None if "cost" in usage else 0,
            usage_flags=flags,
            cache_read_reported=bool(usage) if usage else None,
            inference_call_count=1,
        )

    def reserve(self, *, body_byte_count: int, message_count: int, max_output_tokens: int) -> int | None:
        return max_output_tokens if body_byte_count else None


@dataclass
class FakeDeriving:
    """The core's place: keeps the columns it was last given."""

    outcomes: OutcomeColumns | None = None
    calls: CallColumns | None = None

    def target(self, target: target_pb2.Target) -> FakeTarget:
        return FakeTarget(target)

    def report(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
        *,
        recoveries: Sequence[planner_pb.Run] = (),
        correction: Any = None,
        routings: RoutingColumns | None = None,
    ) -> report_pb2.Report:
        self.outcomes, self.calls = outcomes, calls
        return report_pb2.Report(run_id=run.id, status=run.status)
