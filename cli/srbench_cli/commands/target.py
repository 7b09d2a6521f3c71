"""`target …`: the operator's registry of endpoints."""

from __future__ import annotations

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.values import Json, object_of, to_value

from srbench_cli import manifests, printing, tables
from srbench_cli.context import Session, pass_session, shared_options

expecting = click.option(
    "--expect",
    metavar="REVISION",
    default="",
    help="Only if the registry is still at this revision, as the list told it; else nothing changes.",
)


@click.group()
def target() -> None:
    """Registers and lists endpoints."""


@target.command("list")
@shared_options
@pass_session
def list_(session: Session) -> None:
    """Lists the registered targets."""
    found = session.door.call(session.door.planner.ListTargets, pb.ListTargetsRequest())
    shown: dict[str, Json] = {"targets": [views.target(item) for item in found.targets], "revision": found.revision}
    printing.show(shown, lambda: tables.targets(found.targets), as_json=session.as_json)
    printing.notice(f"revision {found.revision}")


@target.command()
@click.option("--file", "source", required=True, help="A list of targets, or an object with `targets`; - reads stdin.")
@expecting
@shared_options
@pass_session
def register(session: Session, source: str, expect: str) -> None:
    """Replaces the registry by a file; nothing changes when any target is invalid."""
    request = pb.RegisterTargetsRequest(document=to_value(_document(source)), expected_revision=expect)
    found = session.door.call(session.door.planner.RegisterTargets, request)
    shown: dict[str, Json] = {"targets": [views.target(item) for item in found.targets], "registered": len(found.targets)}
    shown["revision"] = found.revision
    printing.show(shown, lambda: tables.targets(found.targets), as_json=session.as_json)


@target.command()
@click.option("--file", "source", help="Replaces them by this object of options by benchmark; - reads stdin.")
@expecting
@shared_options
@pass_session
def options(session: Session, source: str | None, expect: str) -> None:
    """Shows or replaces the benchmark options: which targets judge or simulate, pins of harnesses."""
    planner = session.door.planner
    if source is None:
        found = session.door.call(planner.GetBenchmarkOptions, pb.GetBenchmarkOptionsRequest())
    else:
        document = to_value(manifests.read_document(source))
        request = pb.RegisterBenchmarkOptionsRequest(document=document, expected_revision=expect)
        found = session.door.call(planner.RegisterBenchmarkOptions, request)
    shown = object_of(found.options)
    rows = [
        (f"{benchmark} {key}", value)
        for benchmark, given in shown.items()
        if isinstance(given, dict)
        for key, value in given.items()
    ]
    body: dict[str, Json] = {"benchmark_options": shown, "revision": found.revision}
    printing.show(body, lambda: tables.pairs(rows), as_json=session.as_json)
    printing.notice(f"revision {found.revision}")


def _document(source: str) -> Json:
    """What a registration takes of `source`; a saved list (`target list --json`) names its revision, which is no target."""
    document = manifests.read_document(source)
    if not isinstance(document, dict):
        return document
    return {name: value for name, value in document.items() if name != "revision"}
