"""`python -m srbench_executor`: options and wiring."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import click
from srbench.v1 import executor_service_pb2_grpc
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub
from srbench.v1.grader_service_pb2_grpc import GraderServiceStub
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit import auth, logs, serving, settings, wire
from srbench_kit.errors import EXIT_CODES, InvalidInput, SrBenchError

from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.servicer import Executor
from srbench_executor.spool import Spool
from srbench_executor.worker import Worker

DRAIN_S = 30.0


def drain_seconds() -> float:
    """How long calls in flight may still take after SIGTERM: `SR_BENCH_DRAIN_S`."""
    text = os.environ.get("SR_BENCH_DRAIN_S", "")
    try:
        value = float(text) if text else DRAIN_S
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        message = f"SR_BENCH_DRAIN_S is {text!r}; expected seconds from 0 to 3600"
        raise InvalidInput("BAD_DRAIN", message, field="SR_BENCH_DRAIN_S")
    return value


def raise_file_limit() -> None:
    """A connection is a file: takes as many as the system gives."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(listen: str, spool_folder: Path, capacity: int) -> None:
    """Runs the executor until a signal."""
    addresses = settings.Addresses.from_environment()
    drain_s = drain_seconds()
    spool = Spool(spool_folder)
    metadata = auth.service_metadata("executor")
    planner, accounting, grader = (
        wire.channel(address, metadata) for address in (addresses.planner, addresses.accounting, addresses.grader)
    )
    worker = Worker(
        spool,
        FactStream(AccountingServiceStub(accounting)),
        GradeStream(GraderServiceStub(grader)),
        WorkQueueServiceStub(planner),
        capacity,
    )
    server = serving.Server(listen)
    server.add(
        Executor(worker),
        executor_service_pb2_grpc.add_ExecutorServiceServicer_to_server,
        "srbench.v1.ExecutorService",
    )
    await serving.serve(server, [worker.run(drain_s)])
    for channel in (planner, accounting, grader):
        await channel.close()


@click.command()
@click.option("--listen", required=True, envvar="SR_BENCH_LISTEN", help="host:port or unix:/path.")
@click.option(
    "--spool",
    required=True,
    envvar="SR_BENCH_SPOOL",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the journal; one per executor, the same at every start.",
)
@click.option(
    "--capacity",
    default=1024,
    show_default=True,
    envvar="SR_BENCH_CAPACITY",
    type=click.IntRange(1, 100_000),
    help="Most cells in hand.",
)
def main(listen: str, spool: Path, capacity: int) -> None:
    """Calls models for the cells that the planner hands out."""
    logs.configure("executor", os.environ.get("SR_BENCH_LOG_LEVEL", "INFO"))
    raise_file_limit()
    try:
        serving.run(lambda: serve(listen, spool, capacity))
    except SrBenchError as error:
        click.echo(error.message, err=True)
        sys.exit(EXIT_CODES.get(error.kind, 70))


if __name__ == "__main__":
    main()
