"""The supervisor over real processes: small scripts in place of the services."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from srbench_cli import lifecycle, service_files
from srbench_kit.errors import Conflict, NotFound

from tests.waiting import until

pytestmark = pytest.mark.e2e
SCRIPT = Path(__file__).parent / "fake_stack" / "stack.py"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def stack(store: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the supervisor with the given behaviours; kills what is left."""
    begun: list[subprocess.Popen[str]] = []

    def start(*behaviours: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(store), "0", *behaviours],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening http://127.0.0.1:"), line + (process.stderr.read() if process.stderr else "")
    return line.split()[1]


def events(store: Path) -> list[list[str]]:
    return [line.split() for line in (store / "events").read_text().splitlines()]


def pids(store: Path, what: str = "start") -> dict[str, int]:
    return {event[0]: int(event[-1]) for event in events(store) if event[1] == what}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_ready_stack_says_where_it_is_and_leaves_nothing_behind_when_it_stops(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack()
    url = ready(process)
    record = service_files.running(store)
    assert record is not None
    assert (record.url, record.pid, record.version) == (url, process.pid, "sr-bench-1.0")
    assert oct((store / "service.json").stat().st_mode & 0o777) == "0o600"
    assert oct(store.stat().st_mode & 0o777) == "0o700"
    sockets = Path(record.sockets)
    assert oct(sockets.stat().st_mode & 0o777) == "0o700"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert not (store / "service.json").exists()
    assert not sockets.exists()
    assert not service_files.is_locked(store)


def test_processes_stop_in_order_gateway_first_and_accounting_last(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack()
    ready(process)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    stops = [event[0] for event in events(store) if event[1] == "stop"]
    assert stops == ["gateway", "executor-0", "grader", "planner", "accounting"]


def test_a_process_that_dies_is_started_again(stack: Callable[..., subprocess.Popen[str]], store: Path) -> None:
    process = stack()
    ready(process)
    first = pids(store)["planner"]
    os.kill(first, signal.SIGKILL)
    until(lambda: pids(store)["planner"] != first)
    assert process.poll() is None
    assert alive(pids(store)["planner"])


def test_a_process_that_cannot_start_ends_the_stack_with_its_reason_and_its_log(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack("planner=dies")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "error [CHILD_FAILED]: the planner exited with 3 while starting" in said
    assert "the store is broken" in said
    assert str(store / "logs" / "planner.log") in said
    assert not any(alive(pid) for pid in pids(store).values())
    assert not service_files.is_locked(store)


def test_a_process_that_keeps_dying_is_given_up(stack: Callable[..., subprocess.Popen[str]], store: Path) -> None:
    process = stack("grader=dies-later")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "the grader exited with 4 5 times within seconds" in said
    assert len([event for event in events(store) if event[:2] == ["grader", "start"]]) == 5


def test_killing_the_supervisor_kills_its_processes_and_only_then_frees_the_store(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack()
    ready(process)
    running = pids(store)
    process.kill()
    process.wait()
    until(lambda: not service_files.is_locked(store))
    assert not any(alive(pid) for pid in running.values())
    # What is left of it names a dead process, and starts again.
    assert service_files.read_record(store) is not None
    assert service_files.running(store) is None
    ready(stack())


def test_a_second_stack_on_the_same_store_is_refused(stack: Callable[..., subprocess.Popen[str]], store: Path) -> None:
    url = ready(stack())
    second = stack()
    _, said = second.communicate(timeout=60)
    assert said == f"error [STORE_IN_USE]: a service already runs on the store {store} at {url}\n"
    assert service_files.running(store) is not None


def test_a_process_that_ignores_the_request_to_stop_is_killed_after_its_time(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack("executor-0=deaf")
    ready(process)
    deaf = pids(store)["executor-0"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert not alive(deaf)
    assert [event[0] for event in events(store) if event[1] == "stop"][-1] == "accounting"


def test_what_a_process_left_in_its_session_goes_with_it(stack: Callable[..., subprocess.Popen[str]], store: Path) -> None:
    process = stack("grader=parent")
    ready(process)
    left = next(int(event[2]) for event in events(store) if event[1] == "grandchild")
    assert alive(left)
    os.kill(pids(store)["grader"], signal.SIGKILL)
    until(lambda: not alive(left))


def test_stop_ends_a_running_stack_and_says_when_there_is_none(
    stack: Callable[..., subprocess.Popen[str]], store: Path
) -> None:
    process = stack()
    ready(process)
    assert lifecycle.stop(store, 60.0).pid == process.pid
    assert process.wait(timeout=60) == 0
    with pytest.raises(NotFound) as caught:
        lifecycle.stop(store, 1.0)
    assert caught.value.reason == "NOT_RUNNING"


def test_a_stale_record_never_gets_an_unrelated_process_killed(store: Path) -> None:
    service_files.make_store(store)
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        record = service_files.ServiceRecord(
            pid=bystander.pid,
            process_start="another boot:1",
            url="http://127.0.0.1:9",
            grpc_address="",
            version="",
            sockets="",
        )
        service_files.write_record(store, record)
        with pytest.raises(NotFound):
            lifecycle.stop(store, 1.0)
        # Even with the lock held by somebody, the start times do not match.
        lock = service_files.take_lock(store)
        with pytest.raises(Conflict) as caught:
            lifecycle.stop(store, 1.0)
        os.close(lock)
        assert caught.value.reason == "NOT_OURS"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_damaged_record_counts_as_none(store: Path) -> None:
    service_files.make_store(store)
    for text in ("", "{", "[]", '{"pid": 1}', '{"pid": "x"}'):
        (store / "service.json").write_text(text)
        assert service_files.read_record(store) is None
