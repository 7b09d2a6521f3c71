"""`experiment …`: a name for runs that answer one question together."""

from __future__ import annotations

import click
from srbench.v1 import experiment_pb2 as pb
from srbench_kit import views
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json

from srbench_cli import loop_tables, printing
from srbench_cli.context import Session, pass_session, shared_options

_PAGE = (
    click.option("--after", default="", help="`next_cursor` of the page before."),
    click.option("--limit", type=click.IntRange(1, 50), default=20, show_default=True, help="At most so many."),
)


@click.group()
def experiment() -> None:
    """Groups runs; the runs themselves are never changed by it."""


@experiment.command()
@click.argument("name")
@click.option("--idempotency-key", help="The same key with the same name gives the experiment that exists.")
@shared_options
@pass_session
def create(session: Session, name: str, idempotency_key: str | None) -> None:
    """Creates an experiment."""
    request = pb.CreateExperimentRequest(name=name, idempotency_key=idempotency_key or f"cli-{uuid7_hex()}")
    _show(session, session.door.call(session.door.planner.CreateExperiment, request))


@experiment.command("list")
@_PAGE[0]
@_PAGE[1]
@shared_options
@pass_session
def list_(session: Session, after: str, limit: int) -> None:
    """Lists experiments, newest first."""
    request = pb.ListExperimentsRequest(page_size=limit, page_token=after)
    found = session.door.call(session.door.planner.ListExperiments, request)
    token = found.next_page_token
    rows: list[Json] = [views.plain(item) for item in found.experiments]
    shown: dict[str, Json] = {"experiments": rows, "next_cursor": token or None, "has_more": bool(token)}
    printing.show(shown, lambda: loop_tables.experiments(found.experiments), as_json=session.as_json)


@experiment.command()
@click.argument("experiment_id", metavar="ID")
@_PAGE[0]
@_PAGE[1]
@shared_options
@pass_session
def show(session: Session, experiment_id: str, after: str, limit: int) -> None:
    """Shows an experiment with its runs, newest link first."""
    request = pb.ListExperimentRunsRequest(id=experiment_id, page_size=limit, page_token=after)
    found = session.door.call(session.door.planner.ListExperimentRuns, request)
    token = found.next_page_token
    members: list[Json] = [views.experiment_member(item) for item in found.members]
    shown: dict[str, Json] = {
        "experiment": views.plain(found.experiment),
        "members": members,
        "next_cursor": token or None,
        "has_more": bool(token),
    }
    printing.show(shown, lambda: loop_tables.members(found), as_json=session.as_json)


@experiment.command()
@click.argument("experiment_id", metavar="ID")
@click.option("--run", "run_id", required=True, help="The run.")
@click.option("--role", required=True, help="Its role, which must fit the run.")
@click.option("--hypothesis", default="", help="What it is to show.")
@shared_options
@pass_session
def attach(session: Session, experiment_id: str, run_id: str, role: str, hypothesis: str) -> None:
    """Links a run to an experiment; the same link again changes nothing."""
    request = pb.AttachExperimentRunRequest(id=experiment_id, run_id=run_id, role=role, hypothesis=hypothesis)
    found = session.door.call(session.door.planner.AttachExperimentRun, request)
    printing.show(views.experiment_member(found), lambda: loop_tables.member_rows([found]), as_json=session.as_json)


@experiment.command()
@click.argument("experiment_id", metavar="ID")
@shared_options
@pass_session
def delete(session: Session, experiment_id: str) -> None:
    """Deletes an experiment and keeps its runs."""
    found = session.door.call(session.door.planner.DeleteExperiment, pb.DeleteExperimentRequest(id=experiment_id))
    printing.show(views.experiment_deletion(found), lambda: loop_tables.deleted(found), as_json=session.as_json)


def _show(session: Session, found: pb.Experiment) -> None:
    printing.show(views.plain(found), lambda: loop_tables.experiments([found]), as_json=session.as_json)
