"""The services as real processes for tests: started, watched, started again when they die, ended by their own pids."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import planner_service_pb2_grpc as planner_rpc

SERVICES = ("planner", "accounting", "grader", "executor")
TOKEN = "internal-token-of-a-test-run"


@dataclass
class Child:
    """One process and how to start it again."""

    name: str
    command: list[str]
    env: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.starts += 1

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Stubs:
    """Stubs of running services, whose addresses a subclass knows."""

    def address(self, name: str) -> str:
        raise NotImplementedError

    @contextmanager
    def channel(self, name: str, role: str = "gateway") -> Iterator[grpc.Channel]:
        """A channel to a service with the internal token."""
        with grpc.insecure_channel(self.address(name)) as plain:
            yield grpc.intercept_channel(plain, _Metadata({"authorization": f"Bearer {TOKEN}", "x-srbench-role": role}))

    @contextmanager
    def planner(self) -> Iterator[planner_rpc.PlannerServiceStub]:
        with self.channel("planner") as channel:
            yield planner_rpc.PlannerServiceStub(channel)

    @contextmanager
    def accounting(self) -> Iterator[accounting_rpc.AccountingServiceStub]:
        with self.channel("accounting") as channel:
            yield accounting_rpc.AccountingServiceStub(channel)


@dataclass
class Processes(Stubs):
    """Planner, accounting, grader and executor over one store; a dead one is started again."""

    store: Path
    env: dict[str, str] = field(default_factory=dict)
    crash: dict[str, str | Sequence[str]] = field(default_factory=dict)
    """Service → crash points, one a start, see `srbench_kit.crashpoints`; all but the first wait for `arm`."""

    def __post_init__(self) -> None:
        # Unix socket paths are short-lived and short: the kernel allows 107 bytes.
        self._sockets = Path(tempfile.mkdtemp(prefix="srb-"))
        self.store.mkdir(parents=True, exist_ok=True)
        self._stopping = threading.Event()
        self.children = {name: self._child(name) for name in SERVICES}
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def address(self, name: str) -> str:
        return f"unix:{self._sockets / name}"

    def _child(self, name: str) -> Child:
        folder = ["--spool", str(self.store / "spool" / "0")] if name == "executor" else ["--store", str(self.store)]
        command = [sys.executable, "-m", f"srbench_{name}", "--listen", self.address(name)]
        env = os.environ | {f"SR_BENCH_{peer.upper()}_ADDRESS": self.address(peer) for peer in SERVICES[:3]}
        env |= {"SR_BENCH_INTERNAL_TOKEN": TOKEN} | self.env
        return Child(name, command + (folder if name != "grader" else []), env, self.store / f"{name}.log")

    def _start(self, child: Child) -> None:
        """Starts a child with the crash point that is its next."""
        found = self.crash.get(child.name, ())
        points = [found] if isinstance(found, str) else found
        if child.starts < len(points):
            mark = self._mark(child.name, child.starts)
            child.env |= {"SR_BENCH_CRASH": points[child.starts], "SR_BENCH_CRASH_MARK": str(mark)}
            if child.starts:
                mark.touch()
        child.start()

    def _mark(self, name: str, number: int) -> Path:
        return self.store / f"crashed-{name}-{number}"

    def crashed(self, name: str, number: int = 0) -> bool:
        """Whether a crash point was reached."""
        return self._mark(name, number).exists()

    def arm(self, name: str, number: int) -> None:
        """From now on a service that has been started for it counts towards its crash point."""
        self._mark(name, number).unlink()

    def _watch(self) -> None:
        while not self._stopping.wait(0.05):
            for child in self.children.values():
                if child.process is not None and child.process.poll() is not None and not self._stopping.is_set():
                    self._start(child)

    def start(self) -> None:
        for child in self.children.values():
            self._start(child)
        for name in SERVICES:
            self.wait_healthy(name)
        self._watcher.start()

    def wait_healthy(self, name: str, timeout_s: float = 90) -> None:
        deadline = time.monotonic() + timeout_s
        with grpc.insecure_channel(self.address(name)) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            while True:
                try:
                    answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        return
                except grpc.RpcError as error:
                    if time.monotonic() > deadline:
                        log = (self.store / f"{name}.log").read_text()[-3000:]
                        raise TimeoutError(f"{name} is not healthy: {log}") from error
                time.sleep(0.05)

    def stop(self) -> None:
        self._stopping.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for name in ("executor", "grader", "planner", "accounting"):
            self.children[name].end()
        shutil.rmtree(self._sockets, ignore_errors=True)


class _Metadata(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Adds metadata to each call and waits for a service that is being started again."""

    def __init__(self, metadata: dict[str, str]) -> None:
        self._metadata = tuple(metadata.items())

    def _details(self, details: grpc.ClientCallDetails) -> grpc.ClientCallDetails:
        merged = (*(details.metadata or ()), *self._metadata)
        return _Details(details.method, details.timeout, merged, details.credentials, True, details.compression)

    def intercept_unary_unary(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return continuation(self._details(client_call_details), request)

    def intercept_unary_stream(self, continuation, client_call_details, request):  # type: ignore[no-untyped-def]
        return continuation(self._details(client_call_details), request)


@dataclass
class _Details(grpc.ClientCallDetails):
    method: str
    timeout: float | None
    metadata: tuple[tuple[str, str], ...]
    credentials: object
    wait_for_ready: bool
    compression: object


@contextmanager
def running(store: Path, **options: object) -> Iterator[Processes]:
    """Started processes, ended afterwards whatever happens."""
    processes = Processes(store, **options)  # type: ignore[arg-type]
    try:
        processes.start()
        yield processes
    finally:
        processes.stop()
