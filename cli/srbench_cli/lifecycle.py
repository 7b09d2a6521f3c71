"""Starting a stack in the background and stopping it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from srbench_kit.errors import Conflict, NotFound, Unreachable

from srbench_cli import service_files
from srbench_cli.child_process import die_with_parent
from srbench_cli.service_files import ServiceRecord

START_TIMEOUT_S = 60.0
POLL_S = 0.02


def start(
    store: Path, arguments: Sequence[str], environment: dict[str, str], *, with_parent: bool = False
) -> ServiceRecord:
    """Starts `sr-bench serve` on `store` and returns its record when it is ready.

    Several callers may start at once: one stack comes up and all get its record. With `with_parent` the stack stops in
    order when the caller dies. Raises: `Unreachable` (`START_FAILED`).
    """
    service_files.make_store(store)
    log = store / "logs" / "service.log"
    argv = [sys.executable, "-m", "srbench_cli", "--store", str(store), "serve", *arguments]
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM) if with_parent else None,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        record = service_files.running(store)
        if record is not None:
            return record
        if process.poll() is not None and not service_files.is_locked(store):
            raise Unreachable("START_FAILED", f"the service did not start: {_reason(log, begin)}; see {log}", log=log)
        time.sleep(POLL_S)
    process.terminate()
    raise Unreachable("START_FAILED", f"the service was not ready within {START_TIMEOUT_S:.0f} s; see {log}", log=log)


def _reason(log: Path, begin: int) -> str:
    """The last error that the service wrote after `begin`."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if line.startswith("error ")]
    last = (errors or lines or ["it said nothing"])[-1]
    return (last.partition("]: ")[2] or last)[:500]


def stop(store: Path, timeout_s: float) -> ServiceRecord:
    """Stops the stack on `store` in order and returns the record it had. Evidence stays.

    Raises: `NotFound` (`NOT_RUNNING`) when none runs; `Conflict` (`NOT_OURS`) when the store is held by something that the
    record does not name; `Unreachable` (`STILL_STOPPING`) when it has not stopped after `timeout_s`.
    """
    record = service_files.running(store)
    if record is None:
        if service_files.is_locked(store):
            raise Conflict(
                "NOT_OURS", f"the store {store} is held by a process that its service.json does not name; try again"
            )
        raise NotFound("NOT_RUNNING", f"no service runs on the store {store}", store=store)
    os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while service_files.is_locked(store):
        if time.monotonic() > deadline:
            raise Unreachable(
                "STILL_STOPPING", f"the service (process {record.pid}) still finishes its calls; it will stop"
            )
        time.sleep(POLL_S)
    return record
