"""The command line `vllm-sr`: `benchmark`, `serve`, `stop` and parts of `config` are ours, all else is the released one's.

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

from srbench_cli import discovery, lifecycle, printing, router_config, service_files
from srbench_cli.commands.config import ENDPOINT, TIMEOUT_S, router
from srbench_cli.commands.config import config as config_command
from srbench_cli.commands.serve import DRAIN_S, MAX_EXECUTORS
from srbench_cli.context import Session
from srbench_cli.main import benchmark, guarded

RELEASED = "vllm-sr"
OURS = ("benchmark", "serve", "stop")
# Of the released `config`, what the loop needs; its other commands stay the released program's.
CONFIG_COMMANDS = ("validate", "plan", "apply")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def vllm_sr() -> None:
    """The benchmark service of a workspace and the benchmarks. Other commands belong to the released `vllm-sr`."""


vllm_sr.add_command(benchmark, "benchmark")
vllm_sr.add_command(config_command, "config")


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
@click.option("--replace-active-config", is_flag=True, help="Instead: restart the router with --config.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The new configuration of the router.")
@ENDPOINT
@click.option("--timeout", "timeout_s", type=click.FloatRange(0, 3600), default=TIMEOUT_S, show_default=True,
              help="With --replace-active-config: seconds to wait for the router to run it.")  # fmt: skip
@click.pass_obj
def serve(
    session: Session,
    port: int | None,
    executors: int,
    drain_s: float,
    replace_active_config: bool,
    path: Path | None,
    endpoint: str | None,
    timeout_s: float,
) -> None:
    """Starts the stack of this workspace in the background, or hands a configuration over to the router."""
    if replace_active_config != (path is not None):
        raise InvalidInput("MISSING_OPTION", "--replace-active-config and --config belong together; give both or neither")
    if path is not None:
        replace_active(session, path, endpoint, timeout_s)
        return
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


def replace_active(session: Session, path: Path, endpoint: str | None, timeout_s: float) -> None:
    """Restarts the router with a configuration that a running one cannot take, and waits until it runs it.

    Raises: `NotFound` (`NOT_OFFERED`) when the router's API has no restart; then whoever deployed it must restart it.
    """
    api = router(session, endpoint, None)
    change = router_config.read_change(path, "replace")
    found = router_config.replace_by_restart(api, change, timeout_s, printing.notice)
    printing.print_json(found)


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


def _is_ours(arguments: list[str]) -> bool:
    """Whether we answer: for our own words, and for what the released program does only where it is deployed."""
    word, second = (*arguments, "", "")[:2]
    if word == "config":
        return second in CONFIG_COMMANDS
    if word == "serve" and "--replace-active-config" in arguments:
        # A router that the released program runs in a container is restarted by it; one named by address, by its API.
        named = any(argument.partition("=")[0] == "--endpoint" for argument in arguments)
        return named or released_program() is None
    return word in (*OURS, "", "-h", "--help")


def main() -> None:
    """Runs `vllm-sr` and exits."""
    word = next(iter(sys.argv[1:]), "--help")
    if not _is_ours(sys.argv[1:]):
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
