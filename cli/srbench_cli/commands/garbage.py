"""`store gc`: what a deployment keeps and nothing refers to."""

from __future__ import annotations

import click
from srbench.v1 import operations_service_pb2 as pb
from srbench_kit import jsonview
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


@click.command()
@click.option(
    "--older-than",
    "hours",
    type=click.FloatRange(min=1),
    default=24.0,
    show_default=True,
    help="Only objects written at least so many hours ago.",
)
@click.option("--delete", is_flag=True, help="Delete what is listed; otherwise nothing is changed.")
@shared_options
@pass_session
def gc(session: Session, hours: float, delete: bool) -> None:
    """Lists stored objects that no plan and no call refers to, and deletes them with --delete.

    Datasets and hidden tests are never garbage: somebody asked for them.
    """
    request = pb.CollectGarbageRequest(delete=delete)
    request.min_age.FromNanoseconds(int(hours * 3600 * 1e9))
    found = session.door.call(session.door.deployment.CollectGarbage, request, SLOW_CALL_TIMEOUT_S)
    shown: Json = {
        "objects": [jsonview.to_json(item) for item in found.objects],
        "object_count": found.object_count,
        "byte_count": found.byte_count,
        "kept_count": found.kept_count,
        "deleted": found.deleted,
    }
    rows = [(item.path, item.byte_count, jsonview.to_json(item)["write_time"]) for item in found.objects]
    printing.show(
        shown, lambda: tables.table(("object", "bytes", "written"), rows, right=("bytes",)), as_json=session.as_json
    )
    what = "deleted" if found.deleted else "would be deleted with --delete"
    printing.notice(f"{found.object_count} objects of {found.byte_count} bytes {what}; {found.kept_count} are kept")
