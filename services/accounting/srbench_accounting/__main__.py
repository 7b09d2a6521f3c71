"""Starts the accounting service: options and wiring, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import click
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench_kit import logs, serving, settings
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, SrBenchError

from srbench_accounting.client import GraderClient, PlannerClient
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.ledger_servicer import LedgerServicer
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
    logs.configure("accounting")
    try:
        serving.run(lambda: _serve(listen, store, planner, grader))
    except SrBenchError as error:
        click.echo(f"accounting: {error.message} ({error.reason})", err=True)
        raise SystemExit(EXIT_CODES.get(error.kind, EXIT_BUG)) from None


async def _serve(listen: str, folder: Path, planner_address: str, grader_address: str) -> None:
    server = serving.Server(listen)
    grader = GraderClient(grader_address)
    async with PlannerClient(planner_address) as planner:
        store = open_store(folder, settings.database_url("accounting", folder), planner, CoreDeriving())
        try:
            server.add(
                Accounting(store, planner, grader),
                rpc.add_AccountingServiceServicer_to_server,
                "srbench.v1.AccountingService",
            )
            server.add(LedgerServicer(store), ledger_rpc.add_LedgerServiceServicer_to_server, "srbench.v1.LedgerService")
            await serving.serve(server)
        finally:
            store.close()
            await grader.close()


if __name__ == "__main__":
    main()
