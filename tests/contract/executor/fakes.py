"""Planner, accounting and grader as an executor meets them: they answer what a test says, and remember what came."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import zstandard
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import recipe_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.accounting_service_pb2_grpc import (
    AccountingServiceServicer,
)
from srbench.v1.grader_service_pb2_grpc import (
    GraderServiceServicer,
)
from srbench.v1.work_queue_service_pb2_grpc import (
    WorkQueueServiceServicer,
)
from srbench_kit.values import to_value


class FakeQueue(WorkQueueServiceServicer):
    """A planner that hands out the leases it was given and remembers what came back."""

    def __init__(self) -> None:
        self.waiting: list[queue_pb.Lease] = []
        self.context = queue_pb.RunContext(run_id="run-1", plan_sha256="p", case_sha256="c")
        self.completions: list[queue_pb.Completion] = []
        self.incarnations: set[str] = set()
        self.stopped: list[queue_pb.StoppedRun] = []
        self.lost: list[queue_pb.LeaseRef] = []
        self.changed = asyncio.Event()
        self.lease_calls = 0
        self.captures: list[recipe_pb2.RecipeCapture] = []
        self.drivers: set[str] = set()
        self.capabilities: list[str] = []
        self.runner_reports: list[queue_pb.ReportRunnersRequest] = []
        self.reports: list[recipe_pb2.ReportRecipeCaptureRequest] = []

    async def TakeRecipeCaptures(self, request: Any, context: Any) -> recipe_pb2.TakeRecipeCapturesResponse:
        while not self.captures:
            self.changed.clear()
            await self.changed.wait()
        taken, self.captures = self.captures, []
        return recipe_pb2.TakeRecipeCapturesResponse(captures=taken)

    async def ReportRecipeCapture(self, request: Any, context: Any) -> recipe_pb2.ReportRecipeCaptureResponse:
        self.reports.append(request)
        self.changed.set()
        return recipe_pb2.ReportRecipeCaptureResponse()

    async def LeaseCells(self, request: queue_pb.LeaseCellsRequest, context: Any) -> queue_pb.LeaseCellsResponse:
        self.incarnations.add(request.incarnation)
        self.drivers |= set(request.drivers)
        self.capabilities = list(request.capabilities)
        self.lease_calls += 1

        def fitting() -> list[queue_pb.Lease]:
            return [lease for lease in self.waiting if lease.driver in request.drivers][: request.max_cells]

        while not fitting():
            self.changed.clear()
            await self.changed.wait()
        leases = fitting()
        self.waiting = [lease for lease in self.waiting if lease not in leases]
        return queue_pb.LeaseCellsResponse(leases=leases)

    async def ReportRunners(self, request: Any, context: Any) -> queue_pb.ReportRunnersResponse:
        self.runner_reports.append(request)
        return queue_pb.ReportRunnersResponse()

    async def RenewLeases(self, request: queue_pb.RenewLeasesRequest, context: Any) -> queue_pb.RenewLeasesResponse:
        return queue_pb.RenewLeasesResponse(lost=self.lost, stopped_runs=self.stopped)

    async def CompleteCells(self, request: queue_pb.CompleteCellsRequest, context: Any) -> queue_pb.CompleteCellsResponse:
        self.completions += request.completions
        self.changed.set()
        return queue_pb.CompleteCellsResponse()

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        return self.context

    def add(self, *leases: queue_pb.Lease) -> None:
        self.waiting += leases
        self.changed.set()


class FakeLedger(AccountingServiceServicer):
    """An accounting that remembers facts. `refusals` gives answers to dispatches by (cell, offer), `known` by ordinal."""

    def __init__(self) -> None:
        self.dispatches: list[accounting_pb.Dispatch] = []
        self.settles: list[accounting_pb.Settle] = []
        self.evidence: dict[bytes, bytes] = {}
        self.outcomes: list[accounting_pb.CellOutcome] = []
        self.activity: list[accounting_pb.ActivityReport] = []
        self.refusals: dict[tuple[int, int], accounting_pb.FactAck] = {}
        self.known: dict[int, accounting_pb.FactAck] = {}
        self.settle_reason = ""
        self.break_after = 0
        self.streams = 0
        self.batches: list[int] = []

    async def RecordFacts(self, requests: Any, context: Any) -> AsyncIterator[accounting_pb.RecordFactsResponse]:
        self.streams += 1
        async for batch in requests:
            self.batches.append(len(batch.facts))
            acks = [ack for fact in batch.facts if (ack := self._take(fact)) is not None]
            if self.break_after and len(self.batches) >= self.break_after:
                # What was taken is recorded, but nobody is told: the executor has to say it again.
                self.break_after = 0
                await context.abort(grpc.StatusCode.UNAVAILABLE, "gone for a moment")
            yield accounting_pb.RecordFactsResponse(acks=acks)

    def _take(self, fact: accounting_pb.Fact) -> accounting_pb.FactAck | None:
        ack = accounting_pb.FactAck(sequence=fact.sequence)
        match fact.WhichOneof("fact"):
            case "dispatch":
                found = self.refusals.get((fact.dispatch.key.cell, fact.dispatch.key.offer))
                found = found or self.known.get(fact.dispatch.key.ordinal)
                if found is not None:
                    ack.MergeFrom(found)
                self.dispatches.append(fact.dispatch)
            case "evidence":
                key = fact.evidence.key.SerializeToString()
                held = self.evidence.get(key, b"")
                self.evidence[key] = held[: fact.evidence.offset] + fact.evidence.data
                return None
            case "settle":
                self.settles.append(fact.settle)
                ack.reason = self.settle_reason
            case "outcome":
                self.outcomes.append(fact.outcome)
            case "activity":
                self.activity.append(fact.activity)
                return None
        return ack

    def saved(self, settle: accounting_pb.Settle) -> accounting_pb.Evidence:
        packed = self.evidence[settle.key.SerializeToString()]
        assert hashlib.sha256(packed).hexdigest() == settle.evidence_sha256
        assert len(packed) == settle.evidence_byte_count
        return accounting_pb.Evidence.FromString(zstandard.decompress(packed, max_output_size=1 << 26))


class FakeGrader(GraderServiceServicer):
    """Finds `B` right and all else wrong."""

    def __init__(self) -> None:
        self.answers: list[grader_pb.Answer] = []
        self.failure = ""
        self.capabilities = ["sandbox"]

    async def GetCapabilities(self, request: Any, context: Any) -> grader_pb.GraderCapabilities:
        return grader_pb.GraderCapabilities(names=self.capabilities)

    async def Grade(self, requests: Any, context: Any) -> AsyncIterator[grader_pb.GradeResponse]:
        async for batch in requests:
            grades = []
            for answer in batch.answers:
                self.answers.append(answer)
                right = answer.text == "B"
                grade = grader_pb.Grade(
                    sequence=answer.sequence,
                    correct=right,
                    score=float(right),
                    extracted=to_value(answer.text),
                    answer_status="parsed",
                    strict_format=True,
                    grader_version="fake-1",
                )
                if self.failure:
                    grade = grader_pb.Grade(sequence=answer.sequence, failure_reason=self.failure, failure_message="no")
                grades.append(grade)
            yield grader_pb.GradeResponse(grades=grades)
