"""Starts the planner: options and wiring, nothing else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench.v1 import work_queue_service_pb2_grpc as queue_rpc
from srbench_kit import logs, secret_files, serving, settings, tracing
from srbench_kit import looks as looking
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, SrBenchError
from srbench_kit.operations import Operations, disk

from srbench_planner import catalog, executor_look, garbage, measuring
from srbench_planner.accounting_client import AccountingClient
from srbench_planner.assembly import PlanService, assemble, preparation_records
from srbench_planner.benchmarks import BUILT_IN
from srbench_planner.bound_files import BoundFiles
from srbench_planner.datasets import DatasetStore
from srbench_planner.forwarding import Forwarding
from srbench_planner.grader_client import GraderClient
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.planner_servicer import PlannerServicer
from srbench_planner.ports import Benchmarks
from srbench_planner.preparation import PreparationJobs
from srbench_planner.store import HEAD


@click.command()
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Address: host:port, or unix:/path.")
@click.option("--store", type=click.Path(path_type=Path), required=True, help="Folder of the store.")
@click.option("--accounting", envvar="SR_BENCH_ACCOUNTING_ADDRESS", required=True, help="Address of accounting.")
@click.option(
    "--advertise",
    envvar="SR_BENCH_ADVERTISE_ADDRESS",
    default="",
    help="Address under which other planners reach this one; the machine's name and the port when it listens everywhere.",
)
@click.option("--read-only", is_flag=True, help="Answer what only reads; never take the queue.")
def main(listen: str, store: Path, accounting: str, advertise: str, read_only: bool) -> None:
    """Runs the planner until it is told to stop."""
    os.umask(0o077)
    secret_files.read_or_exit("planner")
    logs.configure("planner")
    try:
        tracing.start("planner")
        serving.run(lambda: _serve(listen, store, accounting, advertise, read_only=read_only))
    except SrBenchError as error:
        click.echo(f"planner: {error.message} ({error.reason})", err=True)
        raise SystemExit(EXIT_CODES.get(error.kind, EXIT_BUG)) from None


async def _background(service: PlanService, server: serving.Server, advertise: str) -> None:
    """Tells other planners where this one is, and does its work."""
    host, _, port = server.listening.rpartition(":")
    everywhere = host in ("0.0.0.0", "[::]", "::")
    service.ownership.announce(advertise or (f"{socket.gethostname()}:{port}" if everywhere else server.listening))
    await service.background()


async def _serve(listen: str, folder: Path, accounting_address: str, advertise: str, *, read_only: bool) -> None:
    facts = AccountingClient(accounting_address)
    grader = GraderClient(os.environ.get("SR_BENCH_GRADER_ADDRESS", ""))
    known, datasets = catalog.load(), DatasetStore(folder)
    benchmarks = Benchmarks(
        specs={spec.id: spec for spec in known.benchmarks}, built_in=frozenset(spec.id for spec in BUILT_IN)
    )
    place = "" if listen.endswith(":0") else f"{socket.gethostname()} {listen}"
    service = assemble(folder, benchmarks, BoundFiles(datasets), facts, place)
    jobs = PreparationJobs(folder, known, datasets, preparation_records(service, folder))
    service.when_owner.append(jobs.begin)
    forwarding = Forwarding(service.ownership, service.ready)
    try:
        server = serving.Server(listen, [] if read_only else [forwarding])
        # A planner alone is ready before it listens; one of several listens, and passes calls on until it is its turn.
        if not read_only and await service.ownership.take():
            await service.start()
        parts = service.registry, service.freezer, service.plans, service.runs, service.scheduler
        needs = benchmarks, HiddenParts(folder), grader, service.runners
        servicer = PlannerServicer(parts, (known, datasets, jobs), needs, service.loop)
        server.add(servicer, planner_rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
        server.add(service.work_queue, queue_rpc.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
        server.add(service.recoveries, recovery_rpc.add_RecoveryServiceServicer_to_server, "srbench.v1.RecoveryService")
        measuring.watch(service.scheduler.queue)
        url = settings.objects_url(folder)
        looks = [disk(folder), looking.database(service.engine, HEAD), looking.object_store(url)]
        looks.append(executor_look.look(service.scheduler, service.ready))
        Operations("planner", looks, garbage.collector(url, service.engine)).add_to(server)
        await serving.serve(server, [] if read_only else [_background(service, server, advertise)])
    finally:
        await forwarding.close()
        await jobs.close()
        await facts.close()
        await grader.close()
        service.close()


if __name__ == "__main__":
    main()
