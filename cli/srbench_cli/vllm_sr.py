"""The command line `vllm-sr`: `benchmark`, `serve` and `stop` are ours, everything else is the released program's.

Both distributions install a script of this name. Beside the released one, this script answers for both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click
from srbench_kit.errors import InvalidInput

from srbench_cli import discovery, lifecycle, printing, service_files
from srbench_cli.commands.serve import DRAIN_S, MAX_EXECUTORS
from srbench_cli.main import benchmark, guarded

RELEASED = "vllm-sr"
OURS = ("benchmark", "serve", "stop")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def vllm_sr() -> None:
    """The benchmark service of a workspace and the benchmarks. Other commands belong to the released `vllm-sr`."""


vllm_sr.add_command(benchmark, "benchmark")


def _workspace() -> discovery.Workspace:
    found = discovery.workspace(os.environ, Path.cwd())
    if os.environ.get("SR_BENCH_STORE"):
        store = (Path.cwd() / Path(os.environ["SR_BENCH_STORE"]).expanduser()).resolve()
        return discovery.Workspace(store=store, port=found.port)
    return found


@vllm_sr.command()
@click.option("--port", type=click.IntRange(0, 65_534), help="HTTP port; gRPC takes the next.  [default: 8090 + offset]")
@click.option(
    "--executors", type=click.IntRange(1, MAX_EXECUTORS), default=1, show_default=True, help="Executor processes."
)
@click.option("--drain", "drain_s", type=click.FloatRange(0, 3600), default=DRAIN_S, show_default=True,
              help="Seconds that calls in flight get to end when the stack stops.")  # fmt: skip
def serve(port: int | None, executors: int, drain_s: float) -> None:
    """Starts the stack of this workspace in the background."""
    if os.environ.get("SR_BENCH_URL"):
        raise InvalidInput(
            "URL_NOT_ALLOWED", "SR_BENCH_URL names another service; unset it to start the stack of this workspace"
        )
    workspace = _workspace()
    found = service_files.running(workspace.store)
    if found is None:
        service_files.make_store(workspace.store)
        service_files.ensure_token(workspace.token_file)
        chosen = workspace.port if port is None else port
        arguments = ["--port", str(chosen), "--executors", str(executors), "--drain", str(drain_s)]
        found = lifecycle.start(workspace.store, arguments, dict(os.environ))
    printing.notice(f"the service of this workspace runs at {found.url}, its store is {workspace.store}")
    click.echo(found.url)


@vllm_sr.command()
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, 3600), default=60.0, show_default=True, help="Seconds to wait."
)
def stop(timeout_s: float) -> None:
    """Stops the stack of this workspace and keeps all evidence."""
    store = _workspace().store
    record = lifecycle.stop(store, timeout_s)
    printing.notice(f"stopped the service at {record.url}; the evidence stays in {store}")


def released_program() -> Callable[[], object] | None:
    """The entry point of the released program; `None` when it is not installed beside us."""
    try:
        found = distribution(RELEASED)
    except PackageNotFoundError:
        return None
    for point in found.entry_points.select(group="console_scripts", name="vllm-sr"):
        if not point.value.startswith("srbench_cli."):
            program: Callable[[], object] = point.load()
            return program
    return None


def main() -> None:
    """Runs `vllm-sr` and exits."""
    word = next(iter(sys.argv[1:]), "--help")
    if word not in (*OURS, "-h", "--help"):
        program = released_program()
        if program is None:
            printing.print_error(
                "NOT_INSTALLED",
                f"`vllm-sr {word}` belongs to the released vllm-sr; install it with `pip install vllm-sr`",
            )
            sys.exit(2)
        program()
        sys.exit(0)
    sys.exit(guarded(vllm_sr, sys.argv[1:], "vllm-sr"))


if __name__ == "__main__":
    main()
