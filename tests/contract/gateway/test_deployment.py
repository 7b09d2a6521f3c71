"""The doctor's view of deployments that are broken in one way each: what is said, and what is said to do about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import deployment_service_pb2 as deployment
from srbench.v1 import deployment_service_pb2_grpc as deployment_rpc
from srbench.v1 import operations_service_pb2 as pb
from srbench.v1 import operations_service_pb2_grpc as rpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import target_pb2
from srbench_executor import inspecting
from srbench_gateway.auth import Gate
from srbench_gateway.backends import Backends
from srbench_gateway.deployment import Deployment
from srbench_gateway.front_door import FrontDoorServer
from srbench_kit import db, looks, operations, wire
from srbench_kit.operations import Look, Operations, disk
from srbench_kit.serving import Server
from srbench_kit.settings import Addresses
from srbench_kit.times import fill_time

FAILED, WARNING = pb.INSPECTION_STATUS_FAILED, pb.INSPECTION_STATUS_WARNING


class Targets(planner_rpc.PlannerServiceServicer):
    """A planner that knows one target."""

    async def ListTargets(self, request: Any, context: Any) -> planner_pb.ListTargetsResponse:
        target = target_pb2.Target(id="fast", base_url="http://127.0.0.1:1/v1", api_key_env="FLEET_TEST_KEY")
        return planner_pb.ListTargetsResponse(targets=[target])


class Odd(rpc.OperationsServiceServicer):
    """A process of another version whose clock is ahead."""

    async def InspectProcess(self, request: Any, context: Any) -> pb.ProcessInspection:
        found = pb.ProcessInspection(service="grader", version="0.9.0")
        fill_time(found.time, time.time_ns() + 30_000_000_000)
        return found


@asynccontextmanager
async def process(*servicers: tuple[Any, Any, str], looking: list[tuple[str, Look]], name: str) -> AsyncIterator[str]:
    server = Server("127.0.0.1:0")
    for servicer, register, service in servicers:
        server.add(servicer, register, service)
    if not any(isinstance(servicer, Odd) for servicer, _, _ in servicers):
        Operations(name, looking).add_to(server)
    await server.start()
    yield f"127.0.0.1:{server.port}"
    await server.drain(0)


@asynccontextmanager
async def inspected(
    tmp_path: Path, *, connect: bool = False, token: str = "", **broken: Any
) -> AsyncIterator[dict[str, pb.InspectionCheck]]:
    """The checks by process and name, of a deployment that is well but for `broken`."""
    store = tmp_path / "store"
    store.mkdir(exist_ok=True)
    engine = db.create_engine(f"sqlite:///{store}/tables.sqlite3")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS alembic_version (version_num TEXT)")
        connection.exec_driver_sql("DELETE FROM alembic_version")
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{broken.get('revision', 'head')}')")
    keeping = [disk(broken.get("disk", store)), looks.database(broken.get("engine", engine), "head")]
    keeping.append(looks.object_store(broken.get("objects", str(store))))
    planner = (Targets(), planner_rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    odd = (Odd(), rpc.add_OperationsServiceServicer_to_server, operations.NAME)
    async with (
        process(planner, looking=keeping, name="planner") as planner_at,
        process(looking=keeping, name="accounting") as accounting_at,
        process(*([odd] if broken.get("odd") else []), looking=[], name="grader") as grader_at,
        process(looking=[disk(store), ("targets", inspecting.targets)], name="executor") as executor_at,
    ):
        addresses = Addresses(
            planner=planner_at,
            accounting=broken.get("accounting", accounting_at),
            grader=grader_at,
            executors=broken.get("executors", (executor_at,)),
        )
        backends, gate = Backends(addresses), Gate("")
        door = FrontDoorServer(backends, gate, Deployment(backends, addresses, gate))
        port = await door.start("127.0.0.1", 0)
        async with wire.channel(f"127.0.0.1:{port}") as channel:
            stub = deployment_rpc.DeploymentServiceStub(channel)
            found = await stub.InspectDeployment(deployment.InspectDeploymentRequest(connect_targets=connect))
        checks = {f"{one.service}.{check.name}": check for one in found.processes for check in one.checks}
        yield checks | {check.name: check for check in found.checks}
        await door.stop(0)
        await backends.close()
    engine.dispose()


def bad(checks: dict[str, pb.InspectionCheck]) -> set[str]:
    """The checks that failed or warn; each says what to do."""
    found = {name: check for name, check in checks.items() if check.status in (FAILED, WARNING)}
    assert all(check.detail and check.remedy for check in found.values()), found
    return set(found)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_TEST_KEY", "sk-not-to-be-shown")


async def test_a_deployment_that_is_well_has_nothing_to_mend(tmp_path: Path) -> None:
    async with inspected(tmp_path) as checks:
        assert bad(checks) == set()
        assert {"planner.database", "planner.migrations", "accounting.object_store", "executor.key:fast"} <= set(checks)
        assert {"versions", "clocks"} <= set(checks)
        assert "sk-not-to-be-shown" not in str(checks)


async def test_a_process_that_is_away_is_named(tmp_path: Path) -> None:
    async with inspected(tmp_path, accounting="127.0.0.1:1") as checks:
        assert bad(checks) == {"accounting.health"}
        assert checks["accounting.health"].remedy == "start it, and see its log"


async def test_no_executor_is_said(tmp_path: Path) -> None:
    async with inspected(tmp_path, executors=()) as checks:
        assert bad(checks) == {"executors"}


async def test_other_versions_and_clocks_are_found(tmp_path: Path) -> None:
    async with inspected(tmp_path, odd=True) as checks:
        assert bad(checks) == {"versions", "clocks"}
        assert "0.9.0: grader" in checks["versions"].detail
        assert "is off by 30.0 s" in checks["clocks"].detail or "is off by 29" in checks["clocks"].detail


async def test_tables_of_another_version_are_found(tmp_path: Path) -> None:
    async with inspected(tmp_path, revision="0001") as checks:
        assert bad(checks) == {"planner.migrations", "accounting.migrations"}
        assert "tables are at 0001; this version expects head" in checks["planner.migrations"].detail


async def test_a_database_that_is_away_is_found(tmp_path: Path) -> None:
    gone = db.create_engine(f"sqlite:///{tmp_path}/other/none.sqlite3")
    async with inspected(tmp_path, engine=gone) as checks:
        assert bad(checks) == {"planner.database", "accounting.database"}
    gone.dispose()


async def test_an_object_store_that_cannot_be_written_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    async with inspected(tmp_path, objects=str(tmp_path / "file" / "objects")) as checks:
        assert bad(checks) == {"planner.object_store", "accounting.object_store"}


async def test_a_folder_that_is_gone_is_found(tmp_path: Path) -> None:
    async with inspected(tmp_path, disk=tmp_path / "gone") as checks:
        assert bad(checks) == {"planner.disk", "accounting.disk"}


async def test_a_key_that_is_not_set_is_found_by_the_name_of_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLEET_TEST_KEY")
    async with inspected(tmp_path) as checks:
        assert bad(checks) == {"executor.key:fast"}
        assert checks["executor.key:fast"].detail == "FLEET_TEST_KEY is not set in this executor"


async def test_endpoints_are_asked_only_when_that_is_wanted(tmp_path: Path) -> None:
    async with inspected(tmp_path, connect=True) as checks:
        assert bad(checks) == {"executor.target:fast"}


async def test_an_endpoint_is_asked_for_its_models_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    probe = pb.TargetProbe(target_id="t", base_url=f"http://127.0.0.1:{port}/v1", api_key_env="FLEET_TEST_KEY")
    checks = await inspecting.targets(pb.InspectProcessRequest(targets=[probe], connect=True))
    server.close()
    assert [check.status for check in checks] == [pb.INSPECTION_STATUS_OK, FAILED]
    assert asked[0].startswith(b"GET /v1/models HTTP/1.1")
    assert len(asked) == 1
    assert "sk-not-to-be-shown" not in str(checks)
