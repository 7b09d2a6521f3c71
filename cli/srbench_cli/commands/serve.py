"""`serve` and `stop`: the local stack in the foreground, and the end of one in the background."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import click
from srbench_kit import settings
from srbench_kit.errors import InvalidInput

from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.discovery import DEFAULT_PORT, Location

DRAIN_S = 30.0
MAX_EXECUTORS = 64
_IDENTITY = re.compile(r"[0-9a-f]{64}\Z")


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; another than loopback needs a token."
)
@click.option(
    "--port", type=click.IntRange(0, 65_534), help=f"HTTP port; gRPC takes the next. 0: any.  [default: {DEFAULT_PORT}]"
)
@click.option("--store-identity", default="", help="64 hex digits to report as store_id instead of the store's own.")
@click.option(
    "--executors", type=click.IntRange(1, MAX_EXECUTORS), default=1, show_default=True, help="Executor processes."
)
@click.option(
    "--capacity", type=click.IntRange(1, 100_000), default=1024, show_default=True, help="Cells an executor holds at once."
)
@click.option("--harness-cells", type=click.IntRange(0, 1024), envvar="SR_BENCH_HARNESS_CELLS",
              help="Agents of harnesses at once, with their containers.  [default: one a processor and 4 GiB]")  # fmt: skip
@click.option("--drain", "drain_s", type=click.FloatRange(0, 3600), default=DRAIN_S, show_default=True,
              help="Seconds that calls in flight get to end when the stack stops.")  # fmt: skip
@shared_options
@pass_session
def serve(
    session: Session, host: str, port: int | None, store_identity: str, executors: int, capacity: int,
    harness_cells: int | None, drain_s: float,
) -> None:  # fmt: skip
    """Runs the stack in the foreground until Ctrl-C or SIGTERM; a second one ends it at once."""
    if session.url:
        raise InvalidInput("URL_NOT_ALLOWED", "--url names a running service; `serve` takes --host and --port")
    if store_identity and not _IDENTITY.match(store_identity):
        raise InvalidInput(
            "BAD_STORE_IDENTITY", f"--store-identity is {store_identity!r}; expected 64 lower-case hex digits"
        )
    from srbench_cli import supervisor
    from srbench_cli.stack import StackOptions

    location = _local(session)
    chosen = port if port is not None else urlsplit(location.url).port or DEFAULT_PORT
    options = StackOptions(
        store=location.store,
        host=host,
        port=chosen,
        executors=executors,
        capacity=capacity,
        harness_cells=harness_cells,
        token=service_token(location),
        store_identity=store_identity,
        drain_s=drain_s,
    )
    supervisor.serve(options, os.environ)


def _local(session: Session) -> Location:
    """The location that options and environment give without any address of a running service."""
    from srbench_cli import discovery

    environment = {name: value for name, value in os.environ.items() if name != "SR_BENCH_URL"}
    return discovery.locate(url=None, store=session.store, environment=environment, directory=Path.cwd())


def local_store(session: Session) -> Path:
    """The store that options and environment name, whether or not a service runs on it."""
    return _local(session).store


def service_token(location: Location) -> str:
    """What the service asks of callers: the environment's token, or the private one of a workspace's stack."""
    from srbench_cli import service_files

    token = settings.public_token()
    return token or (service_files.read_token(location.token_file) if location.managed else "")


@click.command()
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, 3600), default=60.0, show_default=True, help="Seconds to wait."
)
@shared_options
@pass_session
def stop(session: Session, timeout_s: float) -> None:
    """Stops the local stack on the store and keeps all evidence."""
    from srbench_cli import lifecycle, printing

    location = _local(session)
    record = lifecycle.stop(location.store, timeout_s)
    printing.notice(f"stopped the service at {record.url}; the evidence stays in {location.store}")
