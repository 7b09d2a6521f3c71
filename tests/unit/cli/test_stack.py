"""What each process of a local stack may see of the environment, and where its metrics are."""

from __future__ import annotations

from pathlib import Path

import pytest
from srbench_cli.stack import Child, StackOptions, children, pinned, shares
from srbench_kit.errors import InvalidInput

SECRETS = {
    "OPENAI_API_KEY": "model-key",
    "SR_BENCH_SECRETS_DIR": "/run/secrets",
    "SR_BENCH_DATABASE_URL": "postgresql://u:database-word@h/d",
    "AWS_SECRET_ACCESS_KEY": "storage-key",
}


def stack(tmp_path: Path, **environment: str) -> dict[str, Child]:
    options = StackOptions(store=tmp_path, executors=2, token="callers-token")
    return {child.name: child for child in children(options, SECRETS | environment, tmp_path, "internal")}


def test_each_process_sees_its_own_secrets_alone_and_none_the_folder_of_all(tmp_path: Path) -> None:
    def seers(value: str) -> set[str]:
        return {name for name, child in stack(tmp_path).items() if value in child.environment.values()}

    assert seers("model-key") == {"executor-0", "executor-1"}
    assert seers("postgresql://u:database-word@h/d") == {"planner", "accounting"}
    assert seers("storage-key") >= {"planner", "accounting"}
    assert "gateway" not in seers("storage-key")
    assert seers("callers-token") == {"gateway"}
    assert seers("/run/secrets") == set()


def test_metrics_have_a_port_each_from_the_one_that_is_named(tmp_path: Path) -> None:
    found = stack(tmp_path, SR_BENCH_METRICS_ADDRESS="9464")
    assert {name: child.environment["SR_BENCH_METRICS_ADDRESS"] for name, child in found.items()} == {
        "planner": "127.0.0.1:9464",
        "accounting": "127.0.0.1:9465",
        "grader": "127.0.0.1:9466",
        "executor-0": "127.0.0.1:9467",
        "executor-1": "127.0.0.1:9468",
        "gateway": "127.0.0.1:9469",
    }
    assert all("SR_BENCH_METRICS_ADDRESS" not in child.environment for child in stack(tmp_path).values())


def test_a_gateway_that_took_free_ports_is_started_again_at_them(tmp_path: Path) -> None:
    options = StackOptions(store=tmp_path, port=0)
    found = {child.name: child for child in children(options, {}, tmp_path, "internal")}
    again = pinned(found["gateway"], "http=[::1]:8123 grpc=[::1]:9001").argv
    at = again.index("--port")
    assert again[at : at + 4] == ("--port", "8123", "--grpc-port", "9001")
    assert pinned(found["planner"], "unix:/x") == found["planner"]
    fixed = stack(tmp_path)["gateway"]
    assert pinned(fixed, "http=127.0.0.1:8090 grpc=127.0.0.1:8091") == fixed


@pytest.mark.parametrize("address", ["x", "127.0.0.1:", "65533"])
def test_an_address_that_cannot_be_listened_at_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(InvalidInput, match="SR_BENCH_METRICS_ADDRESS is"):
        stack(tmp_path, SR_BENCH_METRICS_ADDRESS=address)


def test_the_executors_of_a_machine_share_its_room_for_harnesses() -> None:
    assert shares(5, 2) == [3, 2]
    assert shares(1, 3) == [1, 0, 0]
    assert shares(0, 2) == [0, 0]
    assert sum(shares(None, 4)) >= 1
