"""A gateway on real ports, before fake services on real ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from srbench_gateway.app import App
from srbench_gateway.auth import Gate
from srbench_gateway.backends import Backends
from srbench_gateway.bodies import Bounds
from srbench_gateway.dashboard import Dashboard
from srbench_gateway.deployment import Deployment
from srbench_gateway.front_door import FrontDoorServer
from srbench_gateway.http_server import HttpBounds, HttpServer, bind
from srbench_gateway.routes import Identity
from srbench_kit.settings import Addresses

from tests.contract.gateway import fakes

STORE_ID = "5" * 64
INTERNAL_TOKEN = "internal-token-of-the-services"


@dataclass(kw_only=True)
class Stand:
    """A running gateway and what stands behind it."""

    planner: Any
    accounting: Any
    planner_server: Any
    accounting_server: Any
    backends: Backends
    http: httpx.AsyncClient
    http_port: int
    grpc_port: int

    async def run(self, **headers: str) -> str:
        """Starts a run and gives its id."""
        manifest = {"version": "sr-bench-1.0", "cases": [{"id": "c1", "answer": "SECRET-ANSWER"}]}
        answer = await self.http.post("/api/sr-bench/v1/runs", json={"manifest": manifest}, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


Start = Callable[..., Awaitable[Stand]]


@asynccontextmanager
async def standing(
    token: str, bounds: Bounds, http_bounds: HttpBounds, pages: Path | None, headers: dict[str, str]
) -> AsyncIterator[Stand]:
    planner, accounting = fakes.FakePlanner(), fakes.FakeAccounting()
    planner_server = await fakes.start_planner(planner)
    accounting_server = await fakes.start_accounting(accounting)
    addresses = Addresses(
        planner=f"127.0.0.1:{planner_server.port}",
        accounting=f"127.0.0.1:{accounting_server.port}",
        grader="unix:/none",
    )
    backends, gate = Backends(addresses), Gate(token)
    door = FrontDoorServer(backends, gate, Deployment(backends, addresses, gate))
    grpc_port = await door.start("127.0.0.1", 0)
    app = App(
        backends=backends,
        identity=Identity(store_id=STORE_ID, grpc_port=grpc_port),
        gate=gate,
        bounds=bounds,
        dashboard=Dashboard(pages) if pages else None,
    )
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = HttpServer(app, http_bounds)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as http:
        yield Stand(
            planner=planner,
            accounting=accounting,
            planner_server=planner_server,
            accounting_server=accounting_server,
            backends=backends,
            http=http,
            http_port=port,
            grpc_port=grpc_port,
        )
    backends.stopping.set()
    await server.stop(running)
    await door.stop(0)
    await backends.close()
    await planner_server.drain(0)
    await accounting_server.drain(0)


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts gateways; all are stopped when the test ends."""
    monkeypatch.setenv("SR_BENCH_INTERNAL_TOKEN", INTERNAL_TOKEN)
    async with AsyncExitStack() as stack:

        async def make(
            token: str = "",
            *,
            bounds: Bounds | None = None,
            http_bounds: HttpBounds | None = None,
            pages: Path | None = None,
        ) -> Stand:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            limits = http_bounds or HttpBounds(grace_s=1)
            return await stack.enter_async_context(standing(token, bounds or Bounds(), limits, pages, headers))

        yield make


@pytest.fixture
async def stand(start: Start) -> Stand:
    """A gateway on loopback that asks for no token."""
    return await start()
