"""Starts the accounting service: options and wiring, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import click
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench_kit import logs, secret_files, serving, settings, tracing
from srbench_kit import looks as looking
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, SrBenchError
from srbench_kit.operations import Operations, disk

from srbench_accounting import garbage, measuring
from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.column_keeping import ColumnKeeper
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.ledger_servicer import LedgerServicer
from srbench_accounting.schema import HEAD
from srbench_accounting.servicer import Accounting
from srbench_accounting.store import open_store


@click.command()
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Address: host:port, or unix:/path.")
@click.option("--store", type=click.Path(path_type=Path), required=True, help="Folder of the store.")
@click.option("--planner", envvar="SR_BENCH_PLANNER_ADDRESS", required=True, help="Address of the planner.")
@click.option("--grader", envvar="SR_BENCH_GRADER_ADDRESS", default="", help="Address of the grader, for regrading.")
def main(listen: str, store: Path, planner: str, grader: str) -> None:
    """Runs the accounting service until it is told to stop."""
    os.umask(0o077)
    secret_files.read_or_exit("accounting")
    logs.configure("accounting")
    try:
        tracing.start("accounting")
        serving.run(lambda: _serve(listen, store, planner, grader))
    except SrBenchError as error:
        click.echo(f"accounting: {error.message} ({error.reason})", err=True)
        raise SystemExit(EXIT_CODES.get(error.kind, EXIT_BUG)) from None


async def _serve(listen: str, folder: Path, planner_address: str, grader_address: str) -> None:
    server = serving.Server(listen)
    grader = GraderClient(grader_address)
    async with PlannerClient(planner_address) as planner:
        urls = settings.database_url("accounting", folder), settings.objects_url(folder)
        store = open_store(folder, urls[0], planner, CoreDeriving(), urls[1])
        try:
            server.add(
                Accounting(store, planner, grader),
                rpc.add_AccountingServiceServicer_to_server,
                "srbench.v1.AccountingService",
            )
            server.add(LedgerServicer(store), ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
            measuring.watch(store)
            looks = [
                disk(folder),
                looking.database(store.engine, HEAD),
                looking.object_store(urls[1], store.evidence.depot),
            ]
            collector = garbage.collector(urls[1], store.evidence, store.engine)
            Operations("accounting", looks, collector).add_to(server)
            sealing = [store.seal_for_ever(settings.seal_s())] if store.evidence.depot is not None else []
            sharing = [store.activities.share_for_ever(store.writer)] if store.activities.shared else []
            await serving.serve(server, [*sealing, *sharing, ColumnKeeper(store).keep_for_ever()])
        finally:
            store.close()
            await grader.close()


if __name__ == "__main__":
    main()
