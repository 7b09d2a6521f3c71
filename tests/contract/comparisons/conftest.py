"""A real accounting service with the real core and a real grader; the planner behind them holds evaluations in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import (
    grader_service_pb2_grpc,
    plan_pb2,
    planner_service_pb2_grpc,
    work_queue_service_pb2_grpc,
)
from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.servicer import Accounting
from srbench_accounting.store import Store, open_store
from srbench_grader.references import ReferenceCache, hidden_fetch, planner_fetch
from srbench_grader.registry import load_graders
from srbench_grader.servicer import GraderServicer
from srbench_grader.workshop import Workshop
from srbench_kit import auth, wire
from srbench_kit.serving import Server
from srbench_kit.values import object_of

from tests.contract.comparisons.evaluation import Evaluation, Maker
from tests.contract.comparisons.planner import Planner


@dataclass
class Stand:
    """The running services, and what tests ask of them."""

    planner: Planner
    store: Store
    executor: rpc.AccountingServiceStub
    gateway: rpc.AccountingServiceStub
    as_planner: rpc.AccountingServiceStub
    folder: Path

    async def add(self, evaluation: Evaluation) -> None:
        """Makes the run known and records all its facts."""
        run = evaluation.planner_run()
        self.planner.runs[run.id] = run
        content = evaluation.content()
        self.planner.contents[run.plan.case_sha256] = content
        indexes = list(range(len(evaluation.targets)))
        self.planner.plan_cases[run.plan.plan_sha256] = [
            plan_pb2.PlanCase(
                index=index,
                case_id=case["id"],
                benchmark=case["benchmark"],
                stratum=case["metadata"].get("stratum", ""),
                split=case["metadata"].get("split", ""),
                target_indexes=indexes,
                grader=evaluation.grader,
            )
            for index, case in enumerate(content)
        ]
        await self.record(evaluation.facts())

    async def record(self, facts: list[pb.Fact]) -> None:
        """Sends facts and waits until each is acknowledged."""
        wanted = sum(fact.WhichOneof("fact") != "evidence" for fact in facts)
        call = self.executor.RecordFacts()
        for start in range(0, len(facts), 200):
            await call.write(pb.RecordFactsRequest(facts=facts[start : start + 200]))
        seen = 0
        while seen < wanted:
            for ack in (await call.read()).acks:
                assert not ack.reason, ack
                seen += 1
        await call.done_writing()


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    planner = Planner()
    async with AsyncExitStack() as stack:

        async def serve(*parts: tuple[Any, Callable[..., None], str]) -> str:
            server = Server("127.0.0.1:0")
            for servicer, add, name in parts:
                server.add(servicer, add, name)
            await server.start()
            stack.push_async_callback(server.drain, 0)
            return f"127.0.0.1:{server.port}"

        def channel(address: str, role: str) -> aio.Channel:
            made = wire.channel(address, auth.service_metadata(role))
            stack.push_async_callback(made.close)
            return made

        planner_address = await serve(
            (planner, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService"),
            (planner, work_queue_service_pb2_grpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService"),
        )
        to_planner = channel(planner_address, "grader")
        workshop = Workshop(hidden_fetch(to_planner))
        stack.callback(workshop.close)
        grading = GraderServicer(load_graders([]), ReferenceCache(planner_fetch(to_planner)), workshop)
        grader_address = await serve(
            (grading, grader_service_pb2_grpc.add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
        )
        client = await stack.enter_async_context(PlannerClient(planner_address))
        graders = GraderClient(grader_address)
        stack.push_async_callback(graders.close)
        store = open_store(tmp_path, f"sqlite:///{tmp_path / 'accounting.sqlite3'}", client, CoreDeriving())
        stack.callback(store.close)
        address = await serve(
            (
                Accounting(store, client, graders),
                rpc.add_AccountingServiceServicer_to_server,
                "srbench.v1.AccountingService",
            )
        )
        stubs = [rpc.AccountingServiceStub(channel(address, role)) for role in ("executor", "gateway", "planner")]
        yield Stand(planner, store, *stubs, tmp_path)


@pytest.fixture
def make() -> Callable[..., Evaluation]:
    """Makes an evaluation of four questions."""
    return Maker().evaluation


@pytest.fixture
def evaluation_of() -> Callable[[dict[str, Any], str], Evaluation]:
    """(golden, `baseline` or `candidate`) → the run to be made."""

    def made(golden: dict[str, Any], side: str) -> Evaluation:
        own = golden[side]
        calls = [{key: value for key, value in call.items() if key != "final"} for call in own["calls"]]
        report = own["report"]
        return Evaluation(
            side,
            own["targets"],
            golden["case_order"],
            own["results"],
            calls,
            prices=golden["prices"],
            weights=golden["weights"],
            plan={"cost_policy": report["cost_policy"], "mode": report["mode"]},
            run={"status": report["status"]},
        )

    return made


@pytest.fixture
def json_of() -> Callable[[Any], Any]:
    """The JSON of a value message."""
    return object_of
