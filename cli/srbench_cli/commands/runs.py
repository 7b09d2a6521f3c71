"""`runs` and `cancel`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import FrontDoor

PAGE = 500


def all_runs(door: FrontDoor, *, status: str = "", query: str = "", page_size: int = PAGE) -> Iterator[pb.Run]:
    """Every run that fits, newest first."""
    token = ""
    while True:
        request = pb.ListRunsRequest(page_size=page_size, page_token=token, status=status, query=query)
        page = door.call(door.planner.ListRuns, request)
        yield from page.runs
        token = page.next_page_token
        if not token:
            return


@click.command()
@click.option("--status", default="", help="Only runs with this status.")
@click.option("--query", default="", help="Only runs whose name or target ids hold this.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.  [default: all]")
@shared_options
@pass_session
def runs(session: Session, status: str, query: str, limit: int | None) -> None:
    """Lists runs, newest first."""
    page_size = min(limit or PAGE, PAGE)
    found = list(islice(all_runs(session.door, status=status, query=query, page_size=page_size), limit))
    shown: dict[str, Json] = {"runs": [views.run_row(run) for run in found]}
    printing.show(shown, lambda: tables.runs(found), as_json=session.as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def cancel(session: Session, run_id: str) -> None:
    """Stops a run and keeps all its evidence."""
    found = session.door.call(session.door.planner.CancelRun, pb.CancelRunRequest(id=run_id))
    printing.show(views.run(found, views.frozen_manifest(found)), lambda: tables.run(found), as_json=session.as_json)
