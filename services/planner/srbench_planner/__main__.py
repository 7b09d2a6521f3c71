"""Starts the planner: options and wiring, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import click
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import work_queue_service_pb2_grpc as queue_rpc
from srbench_kit import logs, serving
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, SrBenchError

from srbench_planner import catalog
from srbench_planner.accounting_client import AccountingClient
from srbench_planner.assembly import assemble
from srbench_planner.benchmarks import BUILT_IN
from srbench_planner.bound_files import BoundFiles
from srbench_planner.datasets import DatasetStore
from srbench_planner.grader_client import GraderClient
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.planner_servicer import PlannerServicer
from srbench_planner.ports import Benchmarks
from srbench_planner.preparation import PreparationJobs


@click.command()
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Address: host:port, or unix:/path.")
@click.option("--store", type=click.Path(path_type=Path), required=True, help="Folder of the store.")
@click.option("--accounting", envvar="SR_BENCH_ACCOUNTING_ADDRESS", required=True, help="Address of accounting.")
def main(listen: str, store: Path, accounting: str) -> None:
    """Runs the planner until it is told to stop."""
    os.umask(0o077)
    logs.configure("planner")
    try:
        serving.run(lambda: _serve(listen, store, accounting))
    except SrBenchError as error:
        click.echo(f"planner: {error.message} ({error.reason})", err=True)
        raise SystemExit(EXIT_CODES.get(error.kind, EXIT_BUG)) from None


async def _serve(listen: str, folder: Path, accounting_address: str) -> None:
    server = serving.Server(listen)
    facts = AccountingClient(accounting_address)
    grader = GraderClient(os.environ.get("SR_BENCH_GRADER_ADDRESS", ""))
    known, datasets = catalog.load(), DatasetStore(folder)
    jobs = PreparationJobs(folder, known, datasets)
    benchmarks = Benchmarks(
        specs={spec.id: spec for spec in known.benchmarks}, built_in=frozenset(spec.id for spec in BUILT_IN)
    )
    service = assemble(folder, benchmarks, BoundFiles(datasets), facts)
    try:
        await service.start()
        parts = service.registry, service.freezer, service.plans, service.runs, service.scheduler
        needs = benchmarks, HiddenParts(folder), grader
        servicer = PlannerServicer(parts, (known, datasets, jobs), needs, service.loop)
        server.add(servicer, planner_rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
        server.add(service.work_queue, queue_rpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
        server.add(service.recoveries, recovery_rpc.add_RecoveryServiceServicer_to_server, "srbench.v1.RecoveryService")
        await serving.serve(server, [service.background()])
    finally:
        await jobs.close()
        await facts.close()
        await grader.close()
        service.close()


if __name__ == "__main__":
    main()
