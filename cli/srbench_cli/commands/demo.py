"""`demo`: a whole evaluation on this machine, without keys, network and cost."""

from __future__ import annotations

import time
from pathlib import Path

import click
from srbench_kit.errors import InvalidInput

from srbench_cli import printing
from srbench_cli.context import Session, pass_session, shared_options

FOLDER = Path(".sr-bench") / "demo"
FULL_FOLDER = Path(".sr-bench") / "demo-full"


@click.command()
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path("report.json"), show_default=True, help="Report file."
)
@click.option("--keep", is_flag=True, help="Leave the stack running, to look around; the pretended models end.")
@click.option("--full", is_flag=True, help="The smoke set of all nine benchmarks; needs what `setup` lists.")
@shared_options
@pass_session
def demo(session: Session, output: Path, keep: bool, full: bool) -> None:
    """Compares three pretended models and a router over them, on real ARC-AGI-2 tasks and synthetic questions.

    Keeps its store in .sr-bench/demo of this folder; nothing leaves this machine and no model is called. With --full it
    runs all nine benchmarks (36 tasks) and prints the full smoke score.
    """
    if session.url or session.store:
        raise InvalidInput("OPTION_NOT_ALLOWED", "the demo starts a stack of its own; it takes neither --url nor --store")
    from srbench_cli.demo.full import run_full_demo
    from srbench_cli.demo.steps import Workspace, run_demo

    begun = time.monotonic()
    folder, run = (FULL_FOLDER, run_full_demo) if full else (FOLDER, run_demo)
    fault = run(session, Workspace(folder.absolute()), output, keep=keep, say=printing.notice)
    printing.notice(f"done in {time.monotonic() - begun:.0f} s")
    if fault:
        printing.print_error("RUN_INCOMPLETE", fault)
        raise click.exceptions.Exit(1)
