"""The command line and the real services: found, started, kept apart from secrets, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from srbench_cli import lifecycle, service_files
from srbench_cli.discovery import DEFAULT_PORT
from srbench_kit.errors import NotFound

from tests.ports import free_ports
from tests.waiting import until

pytestmark = pytest.mark.e2e


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command line in this test's folder."""

    def run(module: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SR_BENCH_", "VLLM_SR_"))}
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=inherited | {"HOME": str(tmp_path / "home")} | environment,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def stopped_at_end(tmp_path: Path) -> Iterator[Path]:
    """A store whose stack is stopped when the test ends."""
    store = tmp_path / "store"
    yield store
    try:
        lifecycle.stop(store, 120.0)
    except NotFound:
        return


@contextmanager
def guest_of_the_default_port(status: str) -> Iterator[bool]:
    """Something else answers at port 8090; false where the port is taken already, by whoever that is."""

    class Guest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(f"HTTP/1.0 {status}\r\n\r\nhello".encode())

        def log_message(self, format: str, *arguments: object) -> None: ...

    try:
        server = HTTPServer(("127.0.0.1", DEFAULT_PORT), Guest)
    except OSError:
        yield False
        return
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield True
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_missing_service_is_started_and_started_again_after_a_crash(
    call: Callable[..., subprocess.CompletedProcess[str]], stopped_at_end: Path
) -> None:
    store = stopped_at_end
    first = call("srbench_cli", "--store", str(store), "catalog")
    assert first.returncode == 0, first.stderr
    assert len(json.loads(first.stdout)["benchmarks"]) == 9
    assert "started the service at http://127.0.0.1:" in first.stderr
    again = call("srbench_cli", "--store", str(store), "catalog")
    assert (again.returncode, again.stderr) == (0, "")
    record = service_files.running(store)
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    until(lambda: not service_files.is_locked(store))
    nobodys = {"VLLM_SR_BENCH_PORT": str(free_ports(2)[0])}
    assert call("srbench_cli", "--store", str(store), "--no-autostart", "catalog", **nobodys).returncode == 6
    third = call("srbench_cli", "--store", str(store), "catalog")
    assert third.returncode == 0, third.stderr
    assert "started the service" in third.stderr


@pytest.mark.parametrize("status", ["401 Unauthorized", "200 OK"])
def test_whoever_holds_the_default_port_is_passed_by(
    call: Callable[..., subprocess.CompletedProcess[str]], stopped_at_end: Path, status: str
) -> None:
    with guest_of_the_default_port(status) as is_there:
        started = call("srbench_cli", "--store", str(stopped_at_end), "catalog")
        assert (started.returncode, "started the service at http://127.0.0.1:" in started.stderr) == (0, True), (
            started.stderr
        )
        assert not is_there or "127.0.0.1:8090 " not in started.stderr


def _environments(store: Path) -> dict[str, dict[str, str]]:
    """The variables of each process of the stack, by module."""
    record = service_files.running(store)
    assert record is not None
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            argv = (entry / "cmdline").read_text().split("\0")
            pairs = (entry / "environ").read_text(errors="replace").split("\0")
        except OSError:
            continue
        if f"PPid:\t{record.pid}\n" in status and "-m" in argv:
            found[argv[argv.index("-m") + 1]] = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return found


def test_keys_are_seen_by_the_executor_alone_and_each_secret_by_its_owner(
    call: Callable[..., subprocess.CompletedProcess[str]], stopped_at_end: Path
) -> None:
    secrets = {"MODEL_KEY": "k" * 20, "HF_TOKEN": "h" * 20, "SR_BENCH_TOKEN": "t" * 40, "HTTPS_PROXY": "http://127.0.0.1:9"}
    started = call("srbench_cli", "--store", str(stopped_at_end), "catalog", **secrets)
    assert started.returncode == 0, started.stderr
    seen = _environments(stopped_at_end)
    assert sorted(seen) == [
        "srbench_accounting",
        "srbench_executor",
        "srbench_gateway",
        "srbench_grader",
        "srbench_planner",
    ]
    holders = {name: [module for module in sorted(seen) if name in seen[module]] for name in secrets}
    assert holders == {
        "MODEL_KEY": ["srbench_executor"],
        "HF_TOKEN": ["srbench_planner"],
        "SR_BENCH_TOKEN": ["srbench_gateway"],
        "HTTPS_PROXY": sorted(seen),
    }
    tokens = {environment["SR_BENCH_INTERNAL_TOKEN"] for environment in seen.values()}
    assert len(tokens) == 1
    logs = b"".join(path.read_bytes() for path in (stopped_at_end / "logs").iterdir())
    assert not any(
        secret.encode() in logs
        for secret in [*tokens, *(secrets[name] for name in ("MODEL_KEY", "HF_TOKEN", "SR_BENCH_TOKEN"))]
    )
    assert call("srbench_cli", "--store", str(stopped_at_end), "catalog").returncode == 7


def test_vllm_sr_serves_a_workspace_whose_token_the_command_line_finds(
    call: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    port = {"VLLM_SR_BENCH_PORT": str(free_ports(2)[0])}
    store = tmp_path / ".sr-bench" / "vllm-sr" / "store"
    try:
        served = call("srbench_cli.vllm_sr", "serve", **port)
        assert served.returncode == 0, served.stderr
        assert served.stdout == f"http://127.0.0.1:{port['VLLM_SR_BENCH_PORT']}\n"
        token = store.parent / "service-token"
        assert oct(token.stat().st_mode & 0o777) == "0o600"
        assert len(token.read_text().strip()) >= 32
        found = call("srbench_cli.vllm_sr", "benchmark", "catalog", **port)
        assert found.returncode == 0, found.stderr
        without = call("srbench_cli", "--url", served.stdout.strip(), "catalog")
        assert (without.returncode, without.stderr.split(":")[0]) == (7, "error [BAD_TOKEN]")
        assert call("srbench_cli.vllm_sr", "serve", **port).stdout == served.stdout
    finally:
        ended = call("srbench_cli.vllm_sr", "stop", **port)
    assert ended.returncode == 0, ended.stderr
    assert (store / "planner.sqlite3").exists()
    gone = call("srbench_cli.vllm_sr", "benchmark", "catalog", **port)
    assert (gone.returncode, gone.stderr) == (
        6,
        "error [NO_SERVICE]: the stack of this workspace does not run; start it with `vllm-sr serve`\n",
    )
    token.chmod(0o644)
    assert call("srbench_cli", "catalog", **port).stderr.startswith("error [BAD_TOKEN_FILE]")
