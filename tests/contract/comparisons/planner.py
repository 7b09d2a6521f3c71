"""A planner that holds evaluations in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from srbench.v1 import (
    grader_service_pb2,
    plan_pb2,
    planner_service_pb2_grpc,
    work_queue_service_pb2_grpc,
)
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import fill_value


@dataclass
class Planner(planner_service_pb2_grpc.PlannerServiceServicer, work_queue_service_pb2_grpc.WorkQueueServiceServicer):
    """Holds runs, their plans and the cases of their plans."""

    runs: dict[str, planner_pb.Run] = field(default_factory=dict)
    plan_cases: dict[str, list[plan_pb2.PlanCase]] = field(default_factory=dict)
    contents: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        run = self._run(request.run_id)
        made = queue_pb.RunContext(
            run_id=run.id,
            plan_sha256=run.plan.plan_sha256,
            case_sha256=run.plan.case_sha256,
            limits=run.plan.limits,
            targets=run.plan.targets,
            auxiliary_targets=run.plan.auxiliary_targets,
            cost_policy=run.plan.cost_policy,
        )
        return made

    async def GetRun(self, request: planner_pb.GetRunRequest, context: Any) -> planner_pb.Run:
        return self._run(request.id)

    async def ListRuns(self, request: planner_pb.ListRunsRequest, context: Any) -> planner_pb.ListRunsResponse:
        who = auth.actor(context)
        found = [run for run in reversed(self.runs.values()) if who.sees_all or run.owner == who.id]
        found = [run for run in found if not request.mode or run.plan.mode == request.mode]
        start = int(request.page_token or 0)
        end = start + request.page_size
        token = str(end) if end < len(found) else ""
        return planner_pb.ListRunsResponse(runs=found[start:end], next_page_token=token, total=len(found))

    async def StreamPlanCases(
        self, request: planner_pb.StreamPlanCasesRequest, context: Any
    ) -> AsyncIterator[planner_pb.StreamPlanCasesResponse]:
        yield planner_pb.StreamPlanCasesResponse(cases=self.plan_cases[request.plan_sha256])

    async def StreamSealedCases(
        self, request: planner_pb.StreamSealedCasesRequest, context: Any
    ) -> AsyncIterator[planner_pb.StreamSealedCasesResponse]:
        auth.require_role(context, "accounting")
        for index, content in enumerate(self.contents[request.case_sha256]):
            sealed = plan_pb2.SealedCase(index=index, case_id=content["id"], sha256=digest(content))
            if not request.digests_only:
                if content["metadata"]["split"] != "dev":
                    raise InvalidInput("HOLDOUT", "never")
                fill_value(sealed.content, content)
            yield planner_pb.StreamSealedCasesResponse(cases=[sealed])

    async def StreamReferences(
        self, request: planner_pb.StreamReferencesRequest, context: Any
    ) -> AsyncIterator[planner_pb.StreamReferencesResponse]:
        auth.require_role(context, "grader")
        for index, content in enumerate(self.contents[request.case_sha256]):
            reference = grader_service_pb2.Reference(
                case_index=index, case_id=content["id"], benchmark=content["benchmark"], choice_count=4
            )
            fill_value(reference.answer, content["answer"])
            yield planner_pb.StreamReferencesResponse(references=[reference])

    async def GetCatalog(self, request: planner_pb.GetCatalogRequest, context: Any) -> planner_pb.Catalog:
        return planner_pb.Catalog(benchmarks=[planner_pb.Benchmark(id="mmlu-pro", adapter_version="installed-v3")])

    def _run(self, run_id: str) -> planner_pb.Run:
        if run_id not in self.runs:
            raise NotFound("NO_SUCH_RUN", f"there is no run {run_id!r}")
        return self.runs[run_id]
