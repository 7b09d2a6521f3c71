"""Endpoints that nobody here wrote, evaluated for real.

`llmock` comes from PyPI and always runs. Others are named in `SR_BENCH_FOREIGN_ENDPOINTS`, a JSON list such as
`[{"base_url": "http://127.0.0.1:4000/v1", "model": "mock-gpt"}]`, with `"usage": false` where none is reported and
`api_key_env` where a key is asked for. `tests/foreign` prepares two of its own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from srbench_kit.values import Json

from tests.e2e.evaluations import calls, finish, manifest, outcomes, start, target
from tests.e2e.processes import Processes, running
from tests.ports import free_port

pytestmark = pytest.mark.e2e
OTHERS = json.loads(os.environ.get("SR_BENCH_FOREIGN_ENDPOINTS", "[]"))


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("foreign") / "store") as started:
        yield started


@pytest.fixture(scope="module")
def llmock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    command = [str(Path(sys.executable).parent / "llmock"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path_factory.mktemp("llmock") / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "llmock did not start"
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(60)


def evaluate(processes: Processes, base_url: str, model: str, *, usage: bool, **more: Json) -> None:
    one = target(model, base_url, **more)
    run_id = start(processes, manifest(5, [one], concurrency=2, max_output_tokens=64), f"{base_url} {model}")
    run = finish(processes, run_id)
    assert (run.status, run.progress.completed) == ("completed", 5)
    assert {row.status for row in outcomes(processes, run_id)} == {"completed"}
    for call in calls(processes, run_id):
        assert call.ttft_s > 0
        assert call.finish_reason
        # What an endpoint does not report stays unknown.
        assert call.usage.HasField("output_tokens") is usage


def test_a_plan_runs_against_llmock(processes: Processes, llmock: str) -> None:
    evaluate(processes, llmock, "gpt-4o-mini", usage=True)


if OTHERS:

    @pytest.mark.parametrize("endpoint", OTHERS, ids=[entry["model"] for entry in OTHERS])
    def test_a_plan_runs_against_a_named_endpoint(processes: Processes, endpoint: dict[str, Any]) -> None:
        given = {"usage": True} | endpoint
        evaluate(processes, **given)
