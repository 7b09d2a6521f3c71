"""The RPCs of `WorkQueueService`. Memory decides, one transaction saves, then the answer leaves."""

from __future__ import annotations

from typing import Any, TypeAlias

from google.protobuf.duration_pb2 import Duration
from grpc import aio
from srbench.v1 import recipe_pb2
from srbench.v1 import work_queue_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2_grpc as rpc
from srbench_kit import auth, tracing
from srbench_kit.errors import InvalidInput

from srbench_planner import convert
from srbench_planner.active import PREVIEW_DRIVER
from srbench_planner.captures import Captures
from srbench_planner.cell_reads import stored_states
from srbench_planner.cells import CellState
from srbench_planner.executors import Executors
from srbench_planner.journal import now_us
from srbench_planner.queue import Grant, Ref
from srbench_planner.run_cells import RunCells
from srbench_planner.runner_book import RunnerBook
from srbench_planner.runs import Runs
from srbench_planner.scheduler import Scheduler

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
MAX_CELLS = 1024
MAX_WAIT_S = 30.0
ENDS = frozenset(int(state) for state in CellState if state != CellState.LEASED)


class WorkQueueServicer(rpc.WorkQueueServiceServicer):
    """Leases cells, keeps leases alive and takes back what became of them."""

    def __init__(
        self,
        scheduler: Scheduler,
        executors: Executors,
        runs: Runs,
        lease_s: float,
        captures: Captures,
        runners: RunnerBook,
    ) -> None:
        self._scheduler = scheduler
        self._captures = captures
        self._runners = runners
        self._executors = executors
        self._runs = runs
        self._lease_s = lease_s
        self._duration = Duration(seconds=int(lease_s), nanos=int(lease_s % 1 * 1e9))

    async def LeaseCells(self, request: pb.LeaseCellsRequest, context: Context) -> pb.LeaseCellsResponse:
        auth.require_role(context, "executor", "accounting")
        _check_lease(request)
        holder = await self._holder(request.executor_id, request.incarnation)
        response = pb.LeaseCellsResponse(lease_duration=self._duration)
        if holder is None:
            return response
        offers = frozenset((*request.drivers, *request.capabilities))
        with self._scheduler.presence.asking(request.executor_id, request.drivers, request.capabilities):
            grants = await self._lease(holder, request, offers)
        for grant in grants:
            self._add(response, grant)
        return response

    async def RenewLeases(self, request: pb.RenewLeasesRequest, context: Context) -> pb.RenewLeasesResponse:
        auth.require_role(context, "executor", "accounting")
        holder = self._executors.number(request.executor_id, request.incarnation) or 0
        self._scheduler.presence.heard(request.executor_id)
        refs = [Ref(lease.run_id, lease.cell, lease.token) for lease in request.leases]
        renewal = self._scheduler.queue.renew(holder, refs, self._scheduler.clock(), self._lease_s)
        named = {ref.run_id for ref in refs}
        return pb.RenewLeasesResponse(
            lost=[_ref(ref) for ref in renewal.lost],
            stopped_runs=[
                pb.StoppedRun(run_id=run.run_id, reason=run.stop_reason) for run in renewal.stopped if run.run_id in named
            ],
        )

    async def CompleteCells(self, request: pb.CompleteCellsRequest, context: Context) -> pb.CompleteCellsResponse:
        auth.require_role(context, "executor", "accounting")
        for completion in request.completions:
            if int(completion.state) not in ENDS:
                raise InvalidInput(
                    "BAD_STATE", f"state is {completion.state}; expected QUEUED or a terminal state", field="state"
                )
        queue = self._scheduler.queue
        outrun: list[tuple[Ref, int]] = []
        touched: dict[str, RunCells] = {}
        for completion in request.completions:
            ref = Ref(completion.lease.run_id, completion.lease.cell, completion.lease.token)
            if not queue.complete(ref, CellState(completion.state), completion.reason):
                outrun.append((ref, int(completion.state)))
            elif ref.run_id not in touched:
                touched[ref.run_id] = queue.runs[ref.run_id]
        for run in touched.values():
            self._scheduler.consider(run)
        if touched:
            self._scheduler.wake()
            await self._scheduler.save()
        return pb.CompleteCellsResponse(outrun=[_ref(ref) for ref in await self._really_outrun(outrun)])

    async def GetRunContext(self, request: pb.GetRunContextRequest, context: Context) -> pb.RunContext:
        auth.require_role(context, "executor", "accounting")
        row = await self._runs.row(None, request.run_id)
        cells, clock = self._scheduler.queue.runs.get(row.id), self._scheduler.clock
        left_s = cells.deadline - clock() if cells is not None else (row.deadline_us - now_us()) / 1e6
        return convert.run_context(row.id, self._runs.message(row).plan, row.deadline_us, left_s)

    async def TakeRecipeCaptures(
        self, request: recipe_pb2.TakeRecipeCapturesRequest, context: Context
    ) -> recipe_pb2.TakeRecipeCapturesResponse:
        auth.require_role(context, "executor")
        return recipe_pb2.TakeRecipeCapturesResponse(captures=await self._captures.take())

    async def ReportRecipeCapture(
        self, request: recipe_pb2.ReportRecipeCaptureRequest, context: Context
    ) -> recipe_pb2.ReportRecipeCaptureResponse:
        auth.require_role(context, "executor")
        self._captures.report(request)
        return recipe_pb2.ReportRecipeCaptureResponse()

    async def ReportRunners(self, request: pb.ReportRunnersRequest, context: Context) -> pb.ReportRunnersResponse:
        auth.require_role(context, "executor")
        self._runners.report(request.executor_id, request.runners, request.variable_digests)
        return pb.ReportRunnersResponse()

    async def _holder(self, executor_id: str, incarnation: str) -> int | None:
        """The number of the calling process; `None` for one that a newer process of the same executor has replaced."""
        holder = self._executors.number(executor_id, incarnation)
        if holder is not None or self._executors.known(executor_id, incarnation):
            return holder
        holder, former = await self._executors.register(executor_id, incarnation)
        self._scheduler.judge(self._scheduler.queue.retire(former))
        return holder

    async def _lease(self, holder: int, request: pb.LeaseCellsRequest, offers: frozenset[str]) -> list[Grant]:
        scheduler = self._scheduler
        until = scheduler.clock() + min(request.wait.seconds + request.wait.nanos / 1e9, MAX_WAIT_S)
        while True:
            now = scheduler.clock()
            grants, scheduler.next_due = scheduler.queue.lease(holder, offers, request.max_cells, now, self._lease_s)
            if grants:
                for run in {id(grant.run): grant.run for grant in grants}.values():
                    scheduler.begin(run)
                # A token must never be given out twice, so the lease is durable before it leaves.
                await scheduler.save()
                return grants
            if now >= until:
                return grants
            await scheduler.wait_for_work(until - now)

    def _add(self, response: pb.LeaseCellsResponse, grant: Grant) -> None:
        # A run with a leased cell has its cases and does not end, not even by a cancel while the lease was saved.
        active = self._scheduler.active[grant.run.run_id]
        cases = active.cases
        assert cases is not None
        case, target = grant.run.matrix.pair(grant.cell)
        lease = response.leases.add()
        lease.MergeFromString(cases.lease_payload(case))
        lease.run_id, lease.cell, lease.token = grant.run.run_id, grant.cell, grant.token
        lease.case_index, lease.target_index = case, target
        if active.previews:
            lease.driver, lease.grader = PREVIEW_DRIVER, ""
        if tracing.ON:
            # The first span of the cell's trace; it points at whoever asked for the run.
            named = {"run_id": lease.run_id, "cell": lease.cell, "token": lease.token}
            lease.traceparent = tracing.mark("lease", "", named, links=[tracing.asked_by(lease.run_id)])

    async def _really_outrun(self, refused: list[tuple[Ref, int]]) -> list[Ref]:
        """Of the completions that changed nothing, those that say something else than what is saved for runs that ended."""
        outrun = [ref for ref, _ in refused if ref.run_id in self._scheduler.active]
        ended = [(ref, state) for ref, state in refused if ref.run_id not in self._scheduler.active]
        if ended:
            saved = await self._runs.reader.run(lambda c: stored_states(c, [ref for ref, _ in ended]))
            outrun.extend(ref for ref, state in ended if saved.get(ref) != state)
        return outrun


def _check_lease(request: pb.LeaseCellsRequest) -> None:
    if not request.executor_id or not request.incarnation:
        raise InvalidInput("MISSING_FIELD", "executor_id and incarnation are required; expected both", field="executor_id")
    if not 1 <= request.max_cells <= MAX_CELLS:
        raise InvalidInput("BAD_FIELD", f"max_cells is {request.max_cells}; expected 1 to {MAX_CELLS}", field="max_cells")


def _ref(ref: Ref) -> pb.LeaseRef:
    return pb.LeaseRef(run_id=ref.run_id, cell=ref.cell, token=ref.token)
