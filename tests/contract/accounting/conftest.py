"""A real accounting service in this process, and a fake planner behind real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench.v1 import planner_service_pb2_grpc, work_queue_service_pb2_grpc
from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.ledger_servicer import LedgerServicer
from srbench_accounting.servicer import Accounting
from srbench_accounting.store import Store, open_store
from srbench_kit import auth, wire
from srbench_kit.serving import Server

from tests.conftest import on_both_databases
from tests.contract.accounting.facts import RUN, Facts, FactWriter, answer, packed_evidence
from tests.contract.accounting.fakes import FakeDeriving, FakePlanner


@dataclass
class Service:
    """A running service and stubs in the roles that may call it."""

    store: Store
    planner: FakePlanner
    executor: rpc.AccountingServiceStub
    as_planner: rpc.AccountingServiceStub
    gateway: rpc.AccountingServiceStub
    deriving: FakeDeriving
    channels: dict[str, aio.Channel]

    def ledger(self, role: str = "gateway") -> Any:
        """The whole ledger, for a service in `role`."""
        return ledger_rpc.LedgerServiceStub(self.channels[role])

    async def spend(self, run_id: str = RUN) -> pb.Spend:
        return await self.gateway.GetSpend(pb.GetSpendRequest(run_id=run_id))

    async def fence(self, cell: int, token: int, *, keep_open: bool = False, unresumable: bool = False) -> pb.CellFacts:
        fence = pb.CellFence(cell=cell, token=token, case_index=cell // 2, target_index=cell % 2, unresumable=unresumable)
        request = pb.FenceCellsRequest(run_id=RUN, fences=[fence], keep_open=keep_open)
        return (await self.as_planner.FenceCells(request)).cells[0]


@asynccontextmanager
async def planner_server(planner: FakePlanner) -> AsyncIterator[str]:
    server = Server("127.0.0.1:0")
    server.add(planner, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    server.add(planner, work_queue_service_pb2_grpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
    await server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.drain(0)


@asynccontextmanager
async def running(
    folder: Path, planner: FakePlanner, planner_address: str, database: str, objects_url: str = ""
) -> AsyncIterator[Service]:
    """The service on the store in `folder` with its tables in `database`, and its sealed evidence below `objects_url`."""
    deriving = FakeDeriving()
    async with PlannerClient(planner_address) as client:
        store = open_store(folder, database.format("accounting"), client, deriving, objects_url)
        server = Server("127.0.0.1:0")
        server.add(
            Accounting(store, client, GraderClient("")),
            rpc.add_AccountingServiceServicer_to_server,
            "srbench.v1.AccountingService",
        )
        server.add(LedgerServicer(store), ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
        await server.start()
        sharing = asyncio.ensure_future(store.activities.share_for_ever(store.writer)) if store.activities.shared else None
        address = f"127.0.0.1:{server.port}"
        channels: dict[str, aio.Channel] = {
            role: wire.channel(address, auth.service_metadata(role)) for role in ("executor", "planner", "gateway")
        }
        stubs = [rpc.AccountingServiceStub(channel) for channel in channels.values()]
        try:
            yield Service(store, planner, stubs[0], stubs[1], stubs[2], deriving, channels)
        finally:
            if sharing is not None:
                sharing.cancel()
            for channel in channels.values():
                await channel.close()
            await server.drain(0)
            store.close()


@pytest.fixture
def planner() -> FakePlanner:
    planner = FakePlanner()
    planner.add_run()
    planner.add_cases(1000)
    return planner


@pytest.fixture
async def planner_address(planner: FakePlanner) -> AsyncIterator[str]:
    async with planner_server(planner) as address:
        yield address


@pytest.fixture
async def service(tmp_path: Path, planner: FakePlanner, planner_address: str, database_of: str) -> AsyncIterator[Service]:
    async with running(tmp_path, planner, planner_address, database_of) as found:
        yield found


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
async def writer(service: Service) -> AsyncIterator[FactWriter]:
    found = FactWriter(service.executor)
    yield found
    await found.close()


@pytest.fixture
def evidence_of() -> Any:
    """Makes the compressed evidence of a whole answer with a text."""
    return lambda text: packed_evidence(answer(text))


@pytest.fixture
def other_facts(planner: FakePlanner) -> Facts:
    """Builds facts of a second run; their sequences start high."""
    planner.add_run("run-other")
    return Facts("run-other", sequence=1000)


@pytest.fixture
def stuck_planner(planner: FakePlanner) -> asyncio.Event:
    """The planner answers for the second run only once this event is set."""
    planner.gates["run-other"] = asyncio.Event()
    return planner.gates["run-other"]


@pytest.fixture
def restartable(tmp_path: Path, planner: FakePlanner, planner_address: str, database_of: str) -> Any:
    """Starts the service on the same store, as often as it is called, and with sealed evidence in an object store."""

    @asynccontextmanager
    async def start(objects_url: str = "") -> AsyncIterator[tuple[Service, FactWriter]]:
        async with running(tmp_path, planner, planner_address, database_of, objects_url) as service:
            writer = FactWriter(service.executor)
            yield service, writer
            await writer.close()

    return start


@pytest.fixture
def fact_writer(service: Service) -> Any:
    """Opens a further stream."""
    return lambda: FactWriter(service.executor)


@pytest.fixture
def facts_of() -> Any:
    """A builder of facts whose sequences start at a number."""
    return lambda sequence: Facts(sequence=sequence)


@pytest.fixture
async def both(
    tmp_path: Path, planner: FakePlanner, planner_address: str, database_of: str
) -> AsyncIterator[list[tuple[Service, FactWriter]]]:
    """Two services on one store, and a stream to each."""
    async with (
        running(tmp_path, planner, planner_address, database_of) as one,
        running(tmp_path, planner, planner_address, database_of) as other,
    ):
        found = [(service, FactWriter(service.executor)) for service in (one, other)]
        yield found
        for _, writer in found:
            await writer.close()


@pytest.fixture(autouse=True)
def quick_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a second for what calls are doing."""
    monkeypatch.setattr("srbench_accounting.shared_activity.SHARE_S", 0.02)


pytest_generate_tests = on_both_databases
