"""compose.yaml on a real engine: built, started with four executors, an evaluation run through it, and taken down again."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.whole_stack import manifest, mmlu_cases, until
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
FILES = ("-f", "compose.yaml", "-f", "tests/fleet/compose.test.yaml")
CASES, EXECUTORS, GRADERS = 80, 4, 2
OURS = ("gateway", "planner", "accounting", "grader", "executor")


@dataclass
class Fleet:
    """A fleet that runs under a project name of its own."""

    project: str
    environment: dict[str, str]
    token: str
    port: int

    def compose(self, *arguments: str, timeout_s: float = 900, check: bool = True) -> str:
        command = ["docker", "compose", "-p", self.project, *FILES, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if check and done.returncode:
            logs = subprocess.run(
                [*command[:4], *FILES, "logs", "--tail", "15"],
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                text=True,
            )
            raise AssertionError(f"{arguments}: {done.stdout[-2000:]} {done.stderr[-3000:]}\n{logs.stdout[-6000:]}")
        return done.stdout

    def cli(self, *arguments: str, check: bool = True) -> Any:
        """What a command of ours prints inside the gateway's container."""
        inside = ("exec", "-T", "gateway", "sr-bench", *arguments, "--url", "http://127.0.0.1:8090")
        return json.loads(self.compose(*inside, check=check))

    def api(self, method: str, path: str, **options: Any) -> Any:
        answer = httpx.request(
            method,
            f"http://127.0.0.1:{self.port}/api/sr-bench/v1{path}",
            headers={"authorization": f"Bearer {self.token}"},
            timeout=60,
            trust_env=False,
            **options,
        )
        assert answer.is_success, answer.text
        return answer.json()

    def sent(self) -> Counter[str]:
        """How often each request came, by the testbed's own ledger."""
        ask = (
            "import urllib.request as u; "
            "print(u.urlopen('http://127.0.0.1:9100/testbed/ledger?limit=10000').read().decode())"
        )
        rows = [json.loads(line) for line in self.compose("exec", "-T", "testbed", "python", "-c", ask).split("\n") if line]
        return Counter(row["identity"] for row in rows if row["path"].endswith("/chat/completions"))

    def calls_of(self, index: int) -> int:
        """The calls that one executor made, by its own metrics."""
        ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
        text = self.compose("exec", "-T", "--index", str(index), "executor", "python", "-c", ask)
        return sum(int(float(line.split()[-1])) for line in text.split("\n") if line.startswith("srbench_calls_total"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    assert shutil.which("docker"), "this test needs a Docker engine: tools/start-docker && tools/make-base-images"
    folder = tmp_path_factory.mktemp("secrets")
    subprocess.run([str(ROOT / "deploy" / "make-secrets"), str(folder)], check=True, capture_output=True)
    port = free_port()
    environment = os.environ | {
        "SR_BENCH_SECRETS": str(folder),
        "SR_BENCH_PORT": str(port),
        "SR_BENCH_GRPC_PORT": str(free_port()),
        "TEST_POSTGRES_PASSWORD": (folder / "postgres_password").read_text(),
    }
    name = f"srb-test-{secrets.token_hex(4)}"
    made = Fleet(name, environment, (folder / "SR_BENCH_TOKEN").read_text(), port)
    try:
        made.compose("build", "gateway", "objects")
        made.compose("up", "-d", "--wait", "--no-build", "--scale", f"executor={EXECUTORS}", timeout_s=240)
        yield made
    finally:
        made.compose("down", "-v", "--remove-orphans", "-t", "10", check=False)


def configured(*more: str) -> dict[str, Any]:
    """The services of compose.yaml with the files of `deploy` laid over it."""
    files = [word for name in more for word in ("-f", f"deploy/{name}")]
    command = ["docker", "compose", "-f", "compose.yaml", *files, "config", "--format", "json"]
    environment = os.environ | {"SR_BENCH_DOCKER_GROUP": "999"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    services: dict[str, Any] = json.loads(found.stdout)["services"]
    return services


def test_no_service_of_ours_is_root_writes_its_root_or_sees_an_engine() -> None:
    services = configured()
    assert set(services) == {*OURS, "postgres", "objects"}
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["init"], name
        assert service["deploy"]["resources"]["limits"]["memory"], name
        assert "docker.sock" not in json.dumps(service), name
        assert not service.get("privileged"), name
    for name in OURS:
        assert services[name]["user"] == "10001:10001"
        assert services[name]["healthcheck"]
        environment_text = json.dumps(services[name].get("environment"))
        assert "password" not in environment_text.lower(), "secrets come as files"
    reaching_out = {name for name in services if "outside" in services[name]["networks"]}
    assert reaching_out == {"executor"}


def test_graders_with_a_sandbox_see_no_engine_and_keep_their_bounds() -> None:
    services, plain = configured("compose.sandbox.yaml"), configured()
    assert {name for name in services if services[name] != plain.get(name)} == {"grader"}
    grader = services["grader"]
    assert "docker.sock" not in json.dumps(services)
    assert (grader["build"]["target"], grader["user"]) == ("sandbox", "10002:10002")
    assert set(grader["networks"]) == {"inside"}
    assert "no-new-privileges:true" in grader["security_opt"]
    for kept in ("read_only", "cap_drop", "init", "secrets", "healthcheck", "tmpfs"):
        assert grader[kept] == plain["grader"][kept], kept
    (profile,) = [option.partition(":")[2] for option in grader["security_opt"] if option.startswith("seccomp:")]
    rules = json.loads((ROOT / profile).read_text())["syscalls"]
    refused = {name for rule in rules for name in rule["names"] if rule["action"] == "SCMP_ACT_ERRNO"}
    assert {"ptrace", "bpf", "setns", "io_uring_setup", "init_module", "clone3"} <= refused
    assert not {"unshare", "clone", "mount", "umount2", "pivot_root"} & refused


# What a graded program finds inside the grader's container.
INSIDE = """
from srbench_grader.sandbox.limits import Limits
from srbench_grader.sandbox.selection import choose
from srbench_grader.sandbox.values import Program
sandbox = choose({})
code = "import numpy, os, socket; print(os.path.exists('/run/secrets')); socket.create_connection(('10.0.0.1', 80), 2)"
ended = sandbox.start(Program(python=("-I", "-c", code)), Limits(wall_s=20)).finish()
print(sandbox.name, ended.exit_code, ended.stdout, b"Network is unreachable" in ended.stderr)
"""


def test_a_grader_with_a_sandbox_runs_programs_in_its_own_container(tmp_path: Path) -> None:
    subprocess.run([str(ROOT / "deploy" / "make-secrets"), str(tmp_path)], check=True, capture_output=True)
    environment = os.environ | {"SR_BENCH_SECRETS": str(tmp_path)}
    project = f"srb-test-{secrets.token_hex(4)}"
    compose = ["docker", "compose", "-p", project, "-f", "compose.yaml", "-f", "deploy/compose.sandbox.yaml"]
    alone = ("run", "--rm", "--no-deps", "-T", "grader", "python", "-c", INSIDE)
    try:
        for step in (("build", "grader"), alone):
            done = subprocess.run([*compose, *step], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
            assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.split("\n")[-2] == "bwrap 1 b'False\\n' True"
    finally:
        subprocess.run([*compose, "down", "-v"], cwd=ROOT, env=environment, capture_output=True, timeout=120)


def test_the_executor_for_harnesses_alone_sees_the_engine() -> None:
    services, plain = configured("compose.harness.yaml"), configured()
    assert set(services) == {*plain, "executor-harness"}
    assert {name for name in services if "docker.sock" in json.dumps(services[name])} == {"executor-harness"}
    harness = services["executor-harness"]
    for kept in ("read_only", "cap_drop", "init", "secrets", "user", "security_opt", "networks"):
        assert harness[kept] == plain["executor"][kept], kept
    paths = {volume["source"]: volume["target"] for volume in harness["volumes"]}
    assert all(source == target for source, target in paths.items()), "the engine mounts by the machine's own paths"
    assert any(harness["command"][-1].startswith(path) for path in paths)
    assert "executor-harness:7004" in services["gateway"]["environment"]["SR_BENCH_EXECUTOR_ADDRESSES"]


def test_the_doctor_finds_every_process_well(fleet: Fleet) -> None:
    found = fleet.cli("doctor")
    assert found["healthy"], [check for check in found["checks"] if check["status"] == "failed"]
    processes = Counter(check["process"].split()[0] for check in found["checks"] if check["check"] in ("disk", "sandbox"))
    assert processes == {"planner": 1, "accounting": 1, "grader": GRADERS, "executor": EXECUTORS}
    checks = {check["check"]: check["detail"] for check in found["checks"]}
    assert checks["database"].startswith("postgresql")
    assert {"versions", "clocks", "object_store", "migrations"} <= set(checks)


def test_an_evaluation_runs_through_four_executors_and_nothing_is_sent_twice(fleet: Fleet) -> None:
    targets = [
        {
            "id": name,
            "kind": "single",
            "model": name,
            "base_url": "http://testbed:9101/v1",
            "prices": {name: {"input": 1, "cached_input": 1, "cache_write": 1, "output": 2}},
        }
        for name in ("small", "medium")
    ]
    body = {"manifest": manifest(mmlu_cases(CASES), targets, concurrency=32)}
    run_id = str(fleet.api("POST", "/runs", json=body)["id"])
    until(lambda: fleet.api("GET", f"/runs/{run_id}")["status"] not in ("queued", "running"), 120)
    assert fleet.api("GET", f"/runs/{run_id}")["status"] == "completed"
    sent = fleet.sent()
    assert (len(sent), set(sent.values())) == (CASES * 2, {1})
    report = fleet.cli("report", run_id)
    assert report["status"] == "completed"
    calls = fleet.api("GET", f"/runs/{run_id}/calls", params={"limit": 500})["calls"]
    assert len(calls) == CASES * 2
    shares = [fleet.calls_of(index) for index in range(1, EXECUTORS + 1)]
    assert sum(shares) == CASES * 2
    assert sum(share > 0 for share in shares) > 1, shares
    # Evidence leaves accounting's volume for the object store, and is read from there.
    deadline = time.monotonic() + 60
    while fleet.compose("exec", "-T", "accounting", "sh", "-c", "ls /var/lib/sr-bench/store/segments").strip():
        assert time.monotonic() < deadline, "the segments were not carried away"
        time.sleep(1)
    assert fleet.cli("show", run_id, "--call-id", calls[0]["id"])["final"]
    assert fleet.cli("store", "gc", "--older-than", "1")["object_count"] == 0
