"""A gateway as a process of its own, before fake services in another."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FAKES = "tests.contract.gateway.fakes"
ROOT = Path(__file__).parents[3]
# CI installs the released wheel beside the project and says where; see `test_gateway_process.py`.
collect_ignore = [] if os.environ.get("SR_BENCH_RELEASED_CLI") else ["test_released_client.py"]


@dataclass(kw_only=True)
class Process:
    """A gateway and where it listens."""

    process: subprocess.Popen[str]
    http: str
    grpc: str

    def stop(self) -> tuple[int, str]:
        """Ends it with SIGTERM and gives its exit code and what it logged."""
        self.process.send_signal(signal.SIGTERM)
        _, logged = self.process.communicate(timeout=60)
        return self.process.returncode, logged


@pytest.fixture
def backends() -> Iterator[dict[str, str]]:
    """The variables that lead to running fake services."""
    with running([sys.executable, "-m", FAKES], {"PYTHONPATH": str(ROOT)}) as process:
        assert process.stdout is not None
        planner, accounting = process.stdout.readline().split()
        yield {
            "SR_BENCH_PLANNER_ADDRESS": planner,
            "SR_BENCH_ACCOUNTING_ADDRESS": accounting,
            "SR_BENCH_GRADER_ADDRESS": "unix:/nowhere",
        }


@contextlib.contextmanager
def running(command: list[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SR_BENCH_")}
    process = subprocess.Popen(
        command, env=clean | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextlib.contextmanager
def gateway(variables: dict[str, str], *options: str) -> Iterator[Process]:
    """A started gateway on free ports."""
    with running([sys.executable, "-m", "srbench_gateway", "--port", "0", *options], variables) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"listening http=(\S+:\d+) grpc=(\S+:\d+)\n", line)
        assert found is not None, line or process.communicate()[1]
        yield Process(process=process, http=f"http://{found[1]}", grpc=found[2])


@pytest.fixture
def start_gateway() -> object:
    """`gateway`, for tests: they cannot import it."""
    return gateway
