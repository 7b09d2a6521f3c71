"""`python -m srbench_executor`: options and wiring."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from srbench.v1 import executor_service_pb2_grpc
from srbench.v1 import operations_service_pb2 as pb
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub
from srbench.v1.grader_service_pb2_grpc import GraderServiceStub
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit import auth, logs, machine, secret_files, serving, settings, tracing, wire
from srbench_kit.errors import EXIT_CODES, InvalidInput, SrBenchError
from srbench_kit.operations import Operations, disk

from srbench_executor import measuring
from srbench_executor.capabilities import Capabilities
from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.harness.runners import load_runners
from srbench_executor.servicer import Executor
from srbench_executor.spool import Spool
from srbench_executor.spool_slots import take
from srbench_executor.worker import Worker

DRAIN_S = 30.0


def drain_seconds() -> float:
    """How long calls in flight may still take after SIGTERM: `SR_BENCH_DRAIN_S`."""
    return settings.seconds("SR_BENCH_DRAIN_S", DRAIN_S, 0, 3600, "BAD_DRAIN")


def raise_file_limit() -> None:
    """A connection is a file: takes as many as the system gives."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _spool(folder: Path | None, root: Path | None) -> Spool:
    if (folder is None) == (root is None):
        raise InvalidInput("BAD_SPOOL", "give either --spool or --spool-root", field="spool")
    return take(root) if root is not None else Spool(folder or Path())


async def _targets(request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
    # httpx takes long to import, and is for the rare look alone.
    from srbench_executor import inspecting

    return await inspecting.targets(request)


async def serve(listen: str, spool: Spool, capacity: int, harness_cells: int) -> None:
    """Runs the executor until a signal."""
    addresses = settings.Addresses.from_environment()
    drain_s = drain_seconds()
    metadata = auth.service_metadata("executor")
    planner, accounting, grader = (
        wire.channel(address, metadata) for address in (addresses.planner, addresses.accounting, addresses.grader)
    )
    judging = GraderServiceStub(grader)
    worker = Worker(
        spool,
        FactStream(AccountingServiceStub(accounting)),
        GradeStream(judging),
        WorkQueueServiceStub(planner),
        capacity,
        harness_cells,
        load_runners(),
        Capabilities(judging),
    )
    measuring.watch(worker)
    server = serving.Server(listen)
    server.add(
        Executor(worker),
        executor_service_pb2_grpc.add_ExecutorServiceServicer_to_server,
        "srbench.v1.ExecutorService",
    )
    Operations("executor", [disk(spool.folder), ("targets", _targets)]).add_to(server)
    await serving.serve(server, [worker.run(drain_s)])
    for channel in (planner, accounting, grader):
        await channel.close()


@click.command()
@click.option("--listen", required=True, envvar="SR_BENCH_LISTEN", help="host:port or unix:/path.")
@click.option(
    "--spool",
    envvar="SR_BENCH_SPOOL",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the journal; one per executor, the same at every start.",
)
@click.option(
    "--spool-root",
    envvar="SR_BENCH_SPOOL_ROOT",
    type=click.Path(file_okay=False, path_type=Path),
    help="Instead: folder of such folders, of which a free one is taken; for executors in any number.",
)
@click.option(
    "--capacity",
    default=1024,
    show_default=True,
    envvar="SR_BENCH_CAPACITY",
    type=click.IntRange(1, 100_000),
    help="Most cells in hand, those of harnesses apart.",
)
@click.option(
    "--harness-cells",
    envvar="SR_BENCH_HARNESS_CELLS",
    type=click.IntRange(0, 1024),
    help="Most cells of harnesses in hand.  [default: one a processor and 4 GiB of memory]",
)
def main(listen: str, spool: Path | None, spool_root: Path | None, capacity: int, harness_cells: int | None) -> None:
    """Calls models for the cells that the planner hands out."""
    secret_files.read_or_exit("executor")
    logs.configure("executor", os.environ.get("SR_BENCH_LOG_LEVEL", "INFO"))
    raise_file_limit()
    harnesses = machine.usual_harness_cells() if harness_cells is None else harness_cells
    try:
        tracing.start("executor")
        serving.run(lambda: serve(listen, _spool(spool, spool_root), capacity, harnesses))
    except SrBenchError as error:
        click.echo(error.message, err=True)
        sys.exit(EXIT_CODES.get(error.kind, 70))


if __name__ == "__main__":
    main()
