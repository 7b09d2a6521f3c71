"""`demo`: a whole evaluation on this machine, without keys, network and cost."""

from __future__ import annotations

import time
from pathlib import Path

import click
from srbench_kit.errors import InvalidInput

from srbench_cli import printing
from srbench_cli.context import Session, pass_session, shared_options

FOLDER = Path(".sr-bench") / "demo"


@click.command()
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path("report.json"), show_default=True, help="Report file."
)
@click.option("--keep", is_flag=True, help="Leave stack and testbed running, to look around.")
@shared_options
@pass_session
def demo(session: Session, output: Path, keep: bool) -> None:
    """Compares three pretended models and a router over them, on real ARC-AGI-2 tasks and synthetic questions.

    Keeps its store in .sr-bench/demo of this folder; nothing leaves this machine and no model is called.
    """
    if session.url or session.store:
        raise InvalidInput("OPTION_NOT_ALLOWED", "the demo starts a stack of its own; it takes neither --url nor --store")
    from srbench_cli.demo.steps import Workspace, run_demo

    begun = time.monotonic()
    fault = run_demo(session, Workspace(FOLDER.absolute()), output, keep=keep, say=printing.notice)
    printing.notice(f"done in {time.monotonic() - begun:.0f} s")
    if fault:
        printing.print_error("RUN_INCOMPLETE", fault)
        raise click.exceptions.Exit(1)
