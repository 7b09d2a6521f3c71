"""`report`: the figures of a run, computed now from its plan and its facts."""

from __future__ import annotations

from pathlib import Path

import click
from srbench_kit import views

from srbench_cli import printing
from srbench_cli.commands.run import get_report
from srbench_cli.context import Session, pass_session, shared_options


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--output", type=click.Path(path_type=Path), help="New file for the report as JSON.")
@click.option("--lineage", is_flag=True, help="Merge the run with its recoveries; the report says so.")
@shared_options
@pass_session
def report(session: Session, run_id: str, output: Path | None, lineage: bool) -> None:
    """Shows quality, tokens, cost, times, failures and what the figures do not say."""
    from srbench_cli import report_table

    printing.check_new_file(output)
    found = get_report(session, run_id, lineage=lineage)
    shown = views.report(found)
    printing.write_json(output, shown)
    printing.show(shown, lambda: report_table.report(found), as_json=session.as_json)
