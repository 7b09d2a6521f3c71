"""`runs`, `cancel`, `pause`, `resume` and `concurrency`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import ANY_INT, MOST_INT, Session, pass_session, shared_options
from srbench_cli.front_door import FrontDoor

PAGE = 500
POLL_S = 0.5


def all_runs(door: FrontDoor, *, page_size: int = PAGE, **filters: str) -> Iterator[pb.Run]:
    """Every run that fits the `filters` of `ListRunsRequest`, newest first."""
    token = ""
    while True:
        request = pb.ListRunsRequest(page_size=page_size, page_token=token, **filters)
        page = door.call(door.planner.ListRuns, request)
        yield from page.runs
        token = page.next_page_token
        if not token:
            return


@click.command()
@click.option("--status", default="", help="Only runs with this status.")
@click.option("--mode", default="", help="Only runs of this mode: live, preview or replay.")
@click.option("--profile", default="", help="Only runs of this profile: smoke, quick or standard.")
@click.option("--query", default="", help="Only runs whose id or name, or a target's id, kind or model holds this.")
@click.option("--limit", type=click.IntRange(1, MOST_INT), help="At most so many.  [default: all]")
@shared_options
@pass_session
def runs(session: Session, /, limit: int | None, **filters: str) -> None:
    """Lists runs, newest first."""
    page_size = min(limit or PAGE, PAGE)
    found = list(islice(all_runs(session.door, page_size=page_size, **filters), limit))
    shown: dict[str, Json] = {"runs": [views.run_row(run) for run in found]}
    printing.show(shown, lambda: tables.runs(found), as_json=session.as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def cancel(session: Session, run_id: str) -> None:
    """Stops a run and keeps all its evidence."""
    found = session.door.call(session.door.planner.CancelRun, pb.CancelRunRequest(id=run_id))
    _show(session, found)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--wait", "wait", is_flag=True, help="Return when no cell is in hand any more.")
@shared_options
@pass_session
def pause(session: Session, run_id: str, wait: bool) -> None:
    """Lets a run's cells in hand end, and begins no others. Its time limit goes on."""
    found = session.door.call(session.door.planner.PauseRun, pb.PauseRunRequest(id=run_id))
    while wait and found.paused and found.progress.running:
        time.sleep(POLL_S)
        found = session.door.call(session.door.planner.GetRun, pb.GetRunRequest(id=run_id, without_cases=True))
    _show(session, found)


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def resume(session: Session, run_id: str) -> None:
    """Goes on with a run that was paused."""
    _show(session, session.door.call(session.door.planner.ResumeRun, pb.ResumeRunRequest(id=run_id)))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("count", metavar="N", type=ANY_INT)
@shared_options
@pass_session
def concurrency(session: Session, run_id: str, count: int) -> None:
    """Changes how many of a run's cells are worked on at once. The frozen plan keeps its number."""
    request = pb.SetRunConcurrencyRequest(id=run_id, concurrency=count)
    _show(session, session.door.call(session.door.planner.SetRunConcurrency, request))


def _show(session: Session, found: pb.Run) -> None:
    printing.show(views.run(found, views.frozen_manifest(found)), lambda: tables.run(found), as_json=session.as_json)
