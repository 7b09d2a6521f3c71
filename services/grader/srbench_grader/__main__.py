"""`python -m srbench_grader --listen ADDRESS`: the grader service."""

from __future__ import annotations

import os
import sys

import click
from srbench.v1.grader_service_pb2_grpc import add_GraderServiceServicer_to_server
from srbench_kit import auth, logs, secret_files, serving, tracing, wire
from srbench_kit.errors import EXIT_CODES, InvalidInput, SrBenchError
from srbench_kit.operations import Operations

from srbench_grader.references import ReferenceCache, hidden_fetch, planner_fetch
from srbench_grader.registry import load_graders
from srbench_grader.servicer import GraderServicer
from srbench_grader.setup import sandbox
from srbench_grader.workshop import Workshop


@click.command(context_settings={"auto_envvar_prefix": "SR_BENCH_GRADER"})
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="host:port or unix:/path to listen on.")
@click.option("--log-level", default="INFO", show_default=True, type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
def main(listen: str, log_level: str) -> None:
    """Judges answers. SR_BENCH_PLANNER_ADDRESS says where references come from."""
    secret_files.read_or_exit("grader")
    logs.configure("grader", log_level)
    try:
        tracing.start("grader")
        serving.run(lambda: _serve(listen))
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))


async def _serve(listen: str) -> None:
    planner = os.environ.get("SR_BENCH_PLANNER_ADDRESS", "")
    if not planner:
        raise InvalidInput("NO_ADDRESS", "SR_BENCH_PLANNER_ADDRESS is not set; expected host:port or unix:/path")
    server = serving.Server(listen)
    async with wire.channel(planner, auth.service_metadata("grader")) as channel:
        workshop = Workshop(hidden_fetch(channel))
        servicer = GraderServicer(load_graders(), ReferenceCache(planner_fetch(channel)), workshop)
        server.add(servicer, add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
        Operations("grader", [("sandbox", sandbox)]).add_to(server)
        try:
            await serving.serve(server)
        finally:
            workshop.close()


if __name__ == "__main__":
    main()
