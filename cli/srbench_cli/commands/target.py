"""`target …`: the operator's registry of endpoints."""

from __future__ import annotations

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.values import Json, to_value

from srbench_cli import manifests, printing, tables
from srbench_cli.context import Session, pass_session, shared_options


@click.group()
def target() -> None:
    """Registers and lists endpoints."""


@target.command("list")
@shared_options
@pass_session
def list_(session: Session) -> None:
    """Lists the registered targets."""
    found = session.door.call(session.door.planner.ListTargets, pb.ListTargetsRequest())
    printing.show(
        {"targets": [views.target(item) for item in found.targets]},
        lambda: tables.targets(found.targets),
        as_json=session.as_json,
    )


@target.command()
@click.option("--file", "source", required=True, help="A list of targets, or an object with `targets`; - reads stdin.")
@shared_options
@pass_session
def register(session: Session, source: str) -> None:
    """Replaces the registry by a file; nothing changes when any target is invalid."""
    request = pb.RegisterTargetsRequest(document=to_value(manifests.read_document(source)))
    found = session.door.call(session.door.planner.RegisterTargets, request)
    shown: dict[str, Json] = {"targets": [views.target(item) for item in found.targets], "registered": len(found.targets)}
    printing.show(shown, lambda: tables.targets(found.targets), as_json=session.as_json)
