"""`catalog`: what can be run."""

from __future__ import annotations

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options


@click.command()
@shared_options
@pass_session
def catalog(session: Session) -> None:
    """Shows the benchmarks, profiles and modes."""
    found = session.door.call(session.door.planner.GetCatalog, pb.GetCatalogRequest())
    printing.show(views.catalog(found), lambda: tables.catalog(found), as_json=session.as_json)
