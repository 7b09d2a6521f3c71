"""`plan`: check a manifest and freeze it, without calling any model."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.values import to_value

from srbench_cli import manifests, printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


@click.command()
@click.option("--manifest", required=True, help="Manifest file (.json, .yaml, .yml, .jsonl); - reads stdin.")
@click.option("--output", type=click.Path(path_type=Path), help="New file for the frozen manifest; `run` takes it.")
@shared_options
@pass_session
def plan(session: Session, manifest: str, output: Path | None) -> None:
    """Checks a manifest and freezes it."""
    printing.check_new_file(output)
    document = manifests.read_manifest(manifest, Path.cwd())
    request = pb.FreezePlanRequest(manifest=to_value(document))
    found = session.door.call(session.door.planner.FreezePlan, request, SLOW_CALL_TIMEOUT_S)
    shown = views.plan_checked(found)
    printing.write_json(output, shown["manifest"])
    printing.show(shown, lambda: tables.plan(found), as_json=session.as_json)
