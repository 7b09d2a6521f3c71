"""The gateway as an operator starts it: its one line, its refusals, and its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from typing import Any

import grpc
import httpx
import pytest
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import planner_service_pb2_grpc as planner_rpc

from tests.ports import free_ports
from tests.waiting import until

pytestmark = pytest.mark.e2e


def refused(variables: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SR_BENCH_")}
    command = [sys.executable, "-m", "srbench_gateway", *options]
    return subprocess.run(command, env=clean | variables, capture_output=True, text=True, timeout=60, check=False)


def test_both_faces_answer_and_sigterm_ends_them_in_order(backends: dict[str, str], start_gateway: Any) -> None:
    with start_gateway(backends, "--store-identity", "a" * 64) as gateway:
        # The services behind it are asked with little patience.
        until(lambda: httpx.get(gateway.http + "/health", timeout=60).json()["status"] == "ready")
        health = httpx.get(gateway.http + "/health", timeout=60).json()
        assert health["store_id"] == "a" * 64
        assert gateway.grpc.endswith(f":{health['grpc_port']}")
        with grpc.insecure_channel(gateway.grpc) as channel:
            catalog = planner_rpc.PlannerServiceStub(channel).GetCatalog(planner.GetCatalogRequest(), timeout=60)
        assert catalog.version == "sr-bench-1.0"
        code, logged = gateway.stop()
    assert code == 0
    assert "Traceback" not in logged


def test_a_watcher_does_not_hold_up_the_end(backends: dict[str, str], start_gateway: Any) -> None:
    with start_gateway(backends) as gateway:
        body = {"manifest": {"version": "sr-bench-1.0"}}
        run = httpx.post(gateway.http + "/api/sr-bench/v1/runs", json=body, timeout=60).json()
        began = threading.Event()

        def watch() -> None:
            with httpx.stream("GET", f"{gateway.http}/api/sr-bench/v1/runs/{run['id']}/watch", timeout=60) as answer:
                for _ in answer.iter_lines():
                    began.set()

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert began.wait(60)
        code, _ = gateway.stop()
        watcher.join(60)
    assert code == 0


def test_the_front_door_is_on_the_next_port(backends: dict[str, str], start_gateway: Any) -> None:
    with start_gateway(backends, "--port", str(free_ports(2)[0])) as gateway:
        port = int(gateway.http.rpartition(":")[2])
        assert gateway.grpc == f"127.0.0.1:{port + 1}"


def test_the_front_door_can_be_told_its_own_port(backends: dict[str, str], start_gateway: Any) -> None:
    http, door = free_ports(2)
    with start_gateway(backends, "--port", str(http), "--grpc-port", str(door + 1)) as gateway:
        assert gateway.grpc == f"127.0.0.1:{door + 1}"


def test_a_taken_port_is_one_sentence(backends: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        seen = refused(backends, "--port", str(taken.getsockname()[1]))
    assert seen.returncode == 2
    assert "PORT_TAKEN" in seen.stderr
    assert "Traceback" not in seen.stderr


@pytest.mark.parametrize(
    ("variables", "options", "reason"),
    [
        ({}, ["--host", "0.0.0.0"], "TOKEN_REQUIRED"),
        ({}, ["--host", "::"], "TOKEN_REQUIRED"),
        ({"SR_BENCH_PLANNER_ADDRESS": ""}, [], "NO_ADDRESS"),
        ({"SR_BENCH_TOKEN_ENV": "NOT_SET_ANYWHERE"}, [], "BAD_TOKEN_ENV"),
        ({}, ["--store-identity", "xyz"], "BAD_STORE_IDENTITY"),
    ],
)
def test_a_bad_start_is_one_sentence_with_a_reason(
    backends: dict[str, str], variables: dict[str, str], options: list[str], reason: str
) -> None:
    seen = refused(backends | variables, "--port", "0", *options)
    assert (seen.returncode, seen.stdout) == (2, "")
    assert reason in seen.stderr
    assert "Traceback" not in seen.stderr


def test_a_token_that_was_set_is_asked_for_and_never_logged(backends: dict[str, str], start_gateway: Any) -> None:
    token = "a-token-that-must-not-be-logged"
    with start_gateway(backends | {"SR_BENCH_TOKEN_ENV": "MY_TOKEN", "MY_TOKEN": token}) as gateway:
        assert httpx.get(gateway.http + "/health", timeout=60).status_code == 401
        shown = {"authorization": f"Bearer {token}"}
        assert httpx.get(gateway.http + "/health", headers=shown, timeout=60).status_code == 200
        _, logged = gateway.stop()
    assert token not in logged


def test_in_ci_the_released_client_is_driven_too() -> None:
    assert not os.environ.get("CI") or os.environ.get("SR_BENCH_RELEASED_CLI"), (
        "install vllm-sr==0.4.0 into an environment of its own and set SR_BENCH_RELEASED_CLI to its `vllm-sr`"
    )
