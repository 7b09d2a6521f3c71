"""The command line `sr-bench`. Commands are loaded when they are used, so that none waits for what another imports."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence

import click
from srbench_kit import secret_files
from srbench_kit.errors import EXIT_BUG, EXIT_CODES, InvalidInput, SrBenchError

from srbench_cli.context import Session, program_name, shared_options
from srbench_cli.entry import EXIT_INTERRUPTED
from srbench_cli.printing import print_error

# The disk or device behind stdout is full or broken.
_OUTPUT_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
COMMANDS = {
    "agreement": "agreement:agreement",
    "audit": "agreement:audit",
    "bundle": "bundle:bundle",
    "cancel": "runs:cancel",
    "candidate-plan": "candidate_plan:candidate_plan",
    "catalog": "catalog:catalog",
    "compare": "compare:compare",
    "comparison-options": "compare:comparison_options",
    "concurrency": "runs:concurrency",
    "dataset": "dataset:dataset",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "evidence": "evidence:evidence",
    "experiment": "experiment:experiment",
    "export": "retrospect:export",
    "pairs": "compare:pairs",
    "pause": "runs:pause",
    "plan": "plan:plan",
    "preview": "preview:preview",
    "recipes": "recipes:recipes",
    "recover": "recover:recover",
    "recover-plan": "recover:recover_plan",
    "reconcile-usage": "retrospect:reconcile_usage",
    "regrade": "retrospect:regrade",
    "replay": "replay:replay",
    "replay-options": "replay:replay_options",
    "report": "report:report",
    "resume": "runs:resume",
    "run": "run:run",
    "runs": "runs:runs",
    "serve": "serve:serve",
    "settle": "settle:settle",
    "setup": "setup:setup",
    "show": "show:show",
    "stop": "serve:stop",
    "store": "store:store",
    "target": "target:target",
    "verify": "bundle:verify",
}


class LazyGroup(click.Group):
    """A group whose commands are imported by name from `srbench_cli.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"srbench_cli.commands.{module}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 1)
            ctx.fail(f"there is no command {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)


def _version() -> str:
    from importlib.metadata import version

    return version("sr-bench")


def _print_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"sr-bench {_version()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@shared_options
def benchmark() -> None:
    """Compares a Mixture-of-Models router with single models on frozen tasks.

    Data goes to stdout: a table on a terminal, JSON when piped or with --json. Everything else goes to stderr. Exit codes:
    0 success, 1 a run that did not complete or a comparison that says no, 2 bad input, 3 not found, 4 conflict, 5 used up,
    6 no answer, 7 no token, 8 forbidden, 9 damaged data, 70 a bug, 130 interrupted.
    """


def main() -> None:
    """Runs `sr-bench` and exits."""
    sys.exit(guarded(benchmark, sys.argv[1:], "sr-bench"))


def guarded(command: click.Command, arguments: Sequence[str], name: str) -> int:
    """Runs `command`; its exit code. Every error becomes one line on stderr."""
    _quiet_grpc()
    session = Session(program_name())
    try:
        return _exit_code(lambda: _run(command, arguments, name, session))
    finally:
        session.close()


def _run(command: click.Command, arguments: Sequence[str], name: str, session: Session) -> object:
    # In a container the token lies in a file.
    secret_files.read()
    try:
        result: object = command.main(list(arguments), prog_name=name, obj=session, standalone_mode=False)
    except UnicodeEncodeError:
        # A file's name may be any bytes, all else goes into messages, which are UTF-8.
        broken = next((one for one in arguments if not _is_text(one)), None)
        if broken is None:
            raise
        shown = broken.encode("utf-8", "backslashreplace").decode()
        raise InvalidInput("BAD_ENCODING", f"the argument {shown} is not UTF-8 text") from None
    return result


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quiet_grpc() -> None:
    """Must run before gRPC is imported, which the commands do."""
    # What gRPC says on stderr is of no use to people; errors come back as exceptions.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # We fork only to start programs; gRPC's handlers for forks break such a child now and then.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")


def _exit_code(run: Callable[[], object]) -> int:
    try:
        result = run()
    except SrBenchError as error:
        print_error(error.reason, error.message)
        return EXIT_CODES.get(error.kind, EXIT_BUG)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        hint = f" (see `{error.ctx.command_path} --help`)" if isinstance(error, click.UsageError) and error.ctx else ""
        print_error("USAGE", error.format_message().rstrip(".") + hint)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print_error("INTERRUPTED", "stopped at your request")
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # Of a closed pipe click makes an exit with 1, which says that a run did not complete, and a stdout of its own kind.
        if isinstance(error, SystemExit) and isinstance(sys.stdout, io.TextIOBase):
            raise
        # The reader has what it wanted.
        _drop_output()
        return 0
    except Exception as error:
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno in _OUTPUT_FAULTS:
        print_error("OUTPUT_FAILED", f"the output cannot be written: {error.strerror}")
        _drop_output()
        return EXIT_CODES["exhausted"]
    if os.environ.get("SR_BENCH_TRACEBACK"):
        raise error
    where = _place(error)
    print_error("BUG", f"{type(error).__name__} {where}; set SR_BENCH_TRACEBACK=1 to see where, and report it")
    return EXIT_BUG


def _drop_output() -> None:
    """Lets nothing be flushed at exit into an stdout that takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: BaseException) -> str:
    """File and line where `error` was raised, without its text, which might hold a secret."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"in {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
