"""A service with canned answers: real HTTP health, real gRPC, so that commands are tried over the wire."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_cli.service_files import store_id

from tests import commands
from tests.contract.cli.fakes import (
    FakeAccounting,
    FakePlanner,
    FakeService,
)


@pytest.fixture
def serve_fake(tmp_path: Path) -> Iterator[Callable[..., FakeService]]:
    """Starts a fake service on a store: `serve_fake(store=…, token=…)`."""
    ends: list[Callable[[], object]] = []

    def start(store: Path | None = None, token: str = "") -> FakeService:
        fake = FakeService(store or tmp_path / "store")
        server = grpc.server(futures.ThreadPoolExecutor(4))
        planner_rpc.add_PlannerServiceServicer_to_server(FakePlanner(fake), server)
        accounting_rpc.add_AccountingServiceServicer_to_server(FakeAccounting(fake), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        body = {"version": "sr-bench-1.0", "status": "ready", "store_id": store_id(fake.store), "grpc_port": port}

        class Health(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = not token or self.headers.get("authorization") == f"Bearer {token}"
                self.send_response(200 if allowed else 401)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode() if allowed else b"{}")

            def log_message(self, format: str, *args: object) -> None:
                pass

        face = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health)
        threading.Thread(target=face.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        fake.url = f"http://127.0.0.1:{face.server_address[1]}"
        ends.extend([lambda: server.stop(None).wait(), face.shutdown, face.server_close])
        return fake

    yield start
    for end in ends:
        end()


@pytest.fixture
def service(serve_fake: Callable[..., FakeService]) -> FakeService:
    """A fake service without a token."""
    return serve_fake()


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `sr-bench …` in this test's folder with an empty environment of sr-bench variables."""

    def run(*arguments: str, stdin: str = "", module: str = "srbench_cli", **environment: str) -> Ran:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SR_BENCH_", "VLLM_SR_"))}
        variables = inherited | {"HOME": str(tmp_path / "home")} | environment
        done = commands.run(module, *arguments, env=variables, cwd=tmp_path, stdin=stdin)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"version": "sr-bench-1.0", "targets": [], "cases": []}))
    return path
