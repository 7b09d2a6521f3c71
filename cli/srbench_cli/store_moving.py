"""Moves a store's tables from SQLite to PostgreSQL: copies them, compares every run's report on both, then puts the copies
into place. Datasets, evidence and spools stay where they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub
from srbench.v1.planner_service_pb2_grpc import PlannerServiceStub
from srbench_kit import store_copy, wire
from srbench_kit.errors import EXIT_CODES, DataLoss, SrBenchError, Unreachable
from srbench_kit.values import Json

from srbench_cli import service_files
from srbench_cli.child_process import die_with_parent
from srbench_cli.stack import plain_environment, socket_folder
from srbench_cli.supervisor import last_words

SERVICES = ("planner", "accounting")
START_TIMEOUT_S = 60.0
REPORT_TIMEOUT_S = 300.0
Reports = dict[str, bytes]


def migrate(store: Path, url: str, notice: Callable[[str], None]) -> dict[str, Json]:
    """Moves the tables of `store` to the empty database `url`; what was moved. The SQLite files stay as they are.

    Raises: `Conflict` (`STORE_IN_USE`, `TARGET_NOT_EMPTY`), `InvalidInput` (`BAD_DATABASE_URL`), `DataLoss`
    (`REPORT_DIFFERS`, `COPY_DIFFERS`), `Unreachable`. After any of them the target is as empty as it was.
    """
    lock = service_files.take_lock(store)
    try:
        store_copy.check_empty(url, SERVICES)
        try:
            moved = {service: _copied(service, store, url) for service in SERVICES}
            run_count = _compared(store, url, notice)
            store_copy.publish(url, SERVICES)
        except BaseException:
            store_copy.discard(url, SERVICES)
            raise
    finally:
        os.close(lock)
    rows: dict[str, Json] = {service: sum(tables.values()) for service, tables in moved.items()}
    return {"store": str(store), "rows": rows, "compared_report_count": run_count}


def _environment(url: str = "") -> dict[str, str]:
    return plain_environment(os.environ) | ({"SR_BENCH_DATABASE_URL": url} if url else {})


def _copied(service: str, store: Path, url: str) -> dict[str, int]:
    """Lets the service copy its own tables; rows by table."""
    command = [sys.executable, "-m", f"srbench_{service}.moving", "--store", str(store)]
    done = subprocess.run(
        command, env=_environment(url), capture_output=True, text=True, check=False, preexec_fn=die_with_parent()
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        kinds = {EXIT_CODES[kind.kind]: kind for kind in SrBenchError.__subclasses__()}
        kind = kinds.get(done.returncode, SrBenchError)
        raise kind("COPY_FAILED", f"the tables of {service} were not copied: {said}", service=service)
    copied: dict[str, int] = json.loads(done.stdout)
    return copied


def _compared(store: Path, url: str, notice: Callable[[str], None]) -> int:
    """How many reports were compared. Raises: `DataLoss` (`REPORT_DIFFERS`)."""
    notice("comparing the reports of all runs")
    before = _reports(store, _environment())
    after = _reports(store, _environment(url) | {"SR_BENCH_DATABASE_SCHEMA_SUFFIX": store_copy.INCOMING})
    for run_id in before.keys() | after.keys():
        if before.get(run_id) != after.get(run_id):
            raise DataLoss("REPORT_DIFFERS", f"the report of {run_id} is another one in the copy", run_id=run_id)
    return len(before)


def _reports(store: Path, environment: dict[str, str]) -> Reports:
    """The report of every run, by its id, from services that read one database and change nothing."""
    with _reading(store, environment) as (plans, facts):
        return {run_id: _report(facts, run_id) for run_id in _run_ids(plans)}


def _run_ids(plans: PlannerServiceStub) -> Iterator[str]:
    request = planner.ListRunsRequest(page_size=500)
    while True:
        page = plans.ListRuns(request, timeout=REPORT_TIMEOUT_S)
        yield from (run.id for run in page.runs)
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _report(facts: AccountingServiceStub, run_id: str) -> bytes:
    try:
        found = facts.GetReport(accounting.GetReportRequest(run_id=run_id), timeout=REPORT_TIMEOUT_S)
    except grpc.RpcError as error:
        # A run whose cases are gone has none on either side; the reason must be the same on both.
        return wire.reason(error).encode()
    return found.SerializeToString(deterministic=True)


@contextmanager
def _reading(store: Path, environment: dict[str, str]) -> Iterator[tuple[PlannerServiceStub, AccountingServiceStub]]:
    with ExitStack() as stack:
        sockets = socket_folder()
        stack.callback(shutil.rmtree, sockets, ignore_errors=True)
        logs = Path(stack.enter_context(TemporaryDirectory(prefix="srb-move-")))
        addresses = {service: f"unix:{sockets / service}" for service in SERVICES}
        wiring = {f"SR_BENCH_{service.upper()}_ADDRESS": address for service, address in addresses.items()}
        channels = []
        for service, address in addresses.items():
            command = [sys.executable, "-m", f"srbench_{service}", "--listen", address, "--store", str(store)]
            command += ["--read-only"] if service == "planner" else []
            with (logs / service).open("wb") as log:
                process = subprocess.Popen(
                    command, env=environment | wiring, stdout=log, stderr=log, preexec_fn=die_with_parent()
                )
            stack.callback(_end, process)
            channels.append((service, process, stack.enter_context(grpc.insecure_channel(address))))
        for service, process, channel in channels:
            _wait(service, process, channel, logs / service)
        # No token is set for these processes: their sockets lie in a private folder.
        plans, facts = (channel for _, _, channel in channels)
        yield PlannerServiceStub(plans), AccountingServiceStub(facts)


def _wait(service: str, process: subprocess.Popen[bytes], channel: grpc.Channel, log: Path) -> None:
    """Waits until the service answers. Raises: `Unreachable` (`NOT_READY`)."""
    stub, deadline = health_pb2_grpc.HealthStub(channel), time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
            return
        except grpc.RpcError:
            time.sleep(0.05)
    raise Unreachable("NOT_READY", f"the {service} did not start for the comparison{last_words(log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
