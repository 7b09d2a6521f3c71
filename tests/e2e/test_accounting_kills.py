"""The accounting process is killed with SIGKILL between and during facts; what it acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import plan_pb2, planner_service_pb2, planner_service_pb2_grpc, target_pb2, usage_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1 import work_queue_service_pb2_grpc as queue_rpc
from srbench_kit import auth, wire
from srbench_kit.serving import Server

from tests.conftest import on_both_databases

pytestmark = pytest.mark.e2e
pytest_generate_tests = on_both_databases
RUN = "run-0123456789abcdef0123"
USAGE = b'{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":0}}'
COST = 10 * 3 + 5 * 7


class Planner(planner_service_pb2_grpc.PlannerServiceServicer, queue_rpc.WorkQueueServiceServicer):
    """One run of one priced target."""

    async def GetRunContext(self, request: queue_pb.GetRunContextRequest, context: Any) -> queue_pb.RunContext:
        target = target_pb2.Target(id="t", kind=target_pb2.TARGET_KIND_SINGLE, model="m")
        price = usage_pb2.Price(
            input_picodollars=3, cached_input_picodollars=1, cache_write_picodollars=3, output_picodollars=7
        )
        target.prices["m"].CopyFrom(price)
        limits = plan_pb2.Limits(max_cost_picodollars=10**12, max_calls_per_case=1)
        return queue_pb.RunContext(
            run_id=RUN, plan_sha256="p", limits=limits, targets=[target], cost_policy="require_priced"
        )

    async def GetRun(self, request: planner_service_pb2.GetRunRequest, context: Any) -> planner_service_pb2.Run:
        found = await self.GetRunContext(queue_pb.GetRunContextRequest(run_id=RUN), context)
        plan = plan_pb2.Plan(plan_sha256="p", cost_policy=found.cost_policy, targets=found.targets, profile="quick")
        plan.benchmark_weights["mmlu-pro"] = 1.0
        return planner_service_pb2.Run(id=RUN, status="running", create_time=Timestamp(seconds=1), plan=plan)

    async def StreamPlanCases(
        self, request: planner_service_pb2.StreamPlanCasesRequest, context: Any
    ) -> AsyncIterator[planner_service_pb2.StreamPlanCasesResponse]:
        cases = [
            plan_pb2.PlanCase(index=n, case_id=f"case-{n}", benchmark="mmlu-pro", target_indexes=[0]) for n in range(1000)
        ]
        yield planner_service_pb2.StreamPlanCasesResponse(cases=cases)


@pytest.fixture
async def planner_address() -> AsyncIterator[str]:
    server = Server("127.0.0.1:0")
    planner = Planner()
    server.add(planner, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    server.add(planner, queue_rpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
    await server.start()
    yield f"127.0.0.1:{server.port}"
    await server.drain(0)


class Process:
    """The accounting process on one store and database."""

    def __init__(self, store: Path, planner: str, database: str) -> None:
        self._store = store
        self._environment = {"SR_BENCH_PLANNER_ADDRESS": planner, "SR_BENCH_DATABASE_URL": database}

    async def start(self) -> None:
        command = [sys.executable, "-m", "srbench_accounting", "--listen", "127.0.0.1:0", "--store", str(self._store)]
        environment = os.environ | self._environment
        self._process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        self.address = line.decode().removeprefix("listening ").strip()

    async def stop(self, number: signal.Signals) -> int:
        if self._process.returncode is None:
            self._process.send_signal(number)
        return await self._process.wait()


@pytest.fixture
async def process(tmp_path: Path, planner_address: str, database_of: str) -> AsyncIterator[Process]:
    found = Process(tmp_path, planner_address, database_of.format("accounting"))
    await found.start()
    yield found
    await found.stop(signal.SIGKILL)


def evidence(cell: int) -> bytes:
    body = f'data: {{"choices":[{{"delta":{{"content":"answer {cell}"}}}}]}}\n\ndata: [DONE]\n\n'.encode()
    message = pb.Evidence(http_status=200, body=body, clean_end=True)
    message.headers.add(name="content-type", value="text/event-stream")
    return zstandard.compress(message.SerializeToString())


def cell_steps(cell: int) -> list[list[pb.Fact]]:
    """The messages of one cell: dispatch, evidence and settlement, outcome."""
    key = pb.CallKey(run_id=RUN, cell=cell)
    packed, stamp = evidence(cell), Timestamp(seconds=1_700_000_000 + cell)
    dispatch = pb.Dispatch(
        key=key,
        token=1,
        case_index=cell,
        role=pb.CALL_ROLE_SUBJECT,
        request_sha256="0" * 64,
        request_byte_count=10,
        message_count=1,
        max_output_tokens=5,
        dispatch_time=stamp,
        executor_id="e",
    )
    receipt = pb.Receipt(
        status=pb.CALL_STATUS_COMPLETED, response_model="m", usage_json=USAGE, usage_final=True, content_chars=8
    )
    sha256 = hashlib.sha256(packed).hexdigest()
    settle = pb.Settle(key=key, receipt=receipt, evidence_sha256=sha256, evidence_byte_count=len(packed))
    outcome = pb.CellOutcome(run_id=RUN, cell=cell, token=1, case_index=cell, state=queue_pb.CELL_STATE_DONE, correct=True)
    part = pb.EvidenceChunk(key=key, data=packed)
    return [
        [pb.Fact(sequence=3 * cell, dispatch=dispatch)],
        [pb.Fact(sequence=-1, evidence=part), pb.Fact(sequence=3 * cell + 1, settle=settle)],
        [pb.Fact(sequence=3 * cell + 2, outcome=outcome)],
    ]


async def send_until_cut(
    address: str, messages: list[list[pb.Fact]], acked: dict[int, str], enough: asyncio.Event, n: int
) -> None:
    """Sends messages as fast as they are taken, notes acknowledgements, and says when `n` have come."""
    async with wire.channel(address, auth.service_metadata("executor")) as channel:
        call = rpc.AccountingServiceStub(channel).RecordFacts()

        async def write() -> None:
            for facts in messages:
                await call.write(pb.RecordFactsRequest(facts=facts))
            await call.done_writing()

        writing = asyncio.ensure_future(write())
        try:
            async for response in call:
                acked.update({ack.sequence: ack.reason for ack in response.acks})
                if len(acked) >= n:
                    enough.set()
        except aio.AioRpcError:
            pass
        finally:
            enough.set()
            await asyncio.gather(writing, return_exceptions=True)


async def recorded(address: str) -> tuple[pb.Spend, list[pb.Call], list[pb.Outcome]]:
    """Everything that the ledger shows."""
    async with wire.channel(address, auth.service_metadata("gateway")) as channel:
        stub = rpc.AccountingServiceStub(channel)
        spend = await stub.GetSpend(pb.GetSpendRequest(run_id=RUN))
        calls = await stub.ListCalls(pb.ListCallsRequest(run_id=RUN, page_size=500))
        outcomes = await stub.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, page_size=500))
        for call in calls.calls:
            if call.status == pb.CALL_STATUS_COMPLETED:
                whole = await stub.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id))
                assert whole.final == f"answer {call.case_id.removeprefix('case-')}"
        return spend, list(calls.calls), list(outcomes.results)


def check(acked: dict[int, str], calls: list[pb.Call], outcomes: list[pb.Outcome], spend: pb.Spend) -> None:
    """No acknowledged fact is lost, none is there twice, and the money is the sum of the calls."""
    cell_of = {call.case_id: call for call in calls}
    assert len(cell_of) == len(calls)
    assert len({row.cell for row in outcomes}) == len(outcomes)
    for sequence, reason in acked.items():
        assert reason == "", reason
        cell, step = divmod(sequence, 3)
        call = cell_of[f"case-{cell}"]
        assert step < 1 or call.status == pb.CALL_STATUS_COMPLETED
        assert step < 2 or cell in {row.cell for row in outcomes}
    ended = [call for call in calls if call.status == pb.CALL_STATUS_COMPLETED]
    opened = [call for call in calls if call.status == pb.CALL_STATUS_SENT]
    assert spend.known_cost_picodollars == COST * len(ended)
    assert spend.reserved_picodollars == sum(call.reserved_picodollars for call in opened)
    assert (spend.call_count, spend.open_call_count) == (len(calls), len(opened))


@pytest.mark.parametrize("acks", [1, 2, 3, 61])
async def test_a_kill_after_any_acknowledgement_loses_no_fact_and_the_rest_can_be_sent_again(
    process: Process, acks: int
) -> None:
    messages = [step for cell in range(40) for step in cell_steps(cell)]
    acked: dict[int, str] = {}
    enough = asyncio.Event()
    sending = asyncio.ensure_future(send_until_cut(process.address, messages, acked, enough, acks))
    await enough.wait()
    assert await process.stop(signal.SIGKILL) == -signal.SIGKILL
    await sending
    assert len(acked) >= acks

    await process.start()
    spend, calls, outcomes = await recorded(process.address)
    check(acked, calls, outcomes, spend)

    unacked = [facts for facts in messages if facts[-1].sequence not in acked]
    again: dict[int, str] = {}
    await send_until_cut(process.address, unacked, again, asyncio.Event(), 10**9)
    # A dispatch whose settlement was recorded but not acknowledged is answered with what is known of it.
    assert set(again.values()) <= {"", "ALREADY_DISPATCHED"}
    spend, calls, outcomes = await recorded(process.address)
    check(acked | {sequence: "" for sequence in again}, calls, outcomes, spend)
    assert (len(calls), len(outcomes), spend.open_call_count) == (40, 40, 0)


async def test_a_stop_drains_and_ends_well(process: Process) -> None:
    acked: dict[int, str] = {}
    await send_until_cut(process.address, cell_steps(0), acked, asyncio.Event(), 10**9)
    assert acked == {0: "", 1: "", 2: ""}
    assert await process.stop(signal.SIGTERM) == 0
    await process.start()
    spend, calls, outcomes = await recorded(process.address)
    check(acked, calls, outcomes, spend)
    async with wire.channel(process.address, auth.service_metadata("gateway")) as channel:
        report = await rpc.AccountingServiceStub(channel).GetReport(pb.GetReportRequest(run_id=RUN))
    (row,) = report.summary.targets
    assert (row.total, row.completed, row.correct, row.known_cost_picodollars) == (1000, 1, 1, COST)


async def test_an_exposed_address_without_a_token_is_refused_with_a_reason(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "srbench_accounting", "--listen", "0.0.0.0:0", "--store", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != "SR_BENCH_INTERNAL_TOKEN"}
    process = await asyncio.create_subprocess_exec(
        *command, "--planner", "127.0.0.1:1", env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"TOKEN_REQUIRED" in said
    assert b"Traceback" not in said
