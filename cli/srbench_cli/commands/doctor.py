"""`doctor`: what is wrong with a deployment and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from srbench.v1 import deployment_service_pb2 as deployment
from srbench.v1 import operations_service_pb2 as pb
from srbench_kit.errors import SrBenchError
from srbench_kit.jsonview import enum_name
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options

if TYPE_CHECKING:
    from rich.console import RenderableType

INSPECT_S = 60.0
FAILED = 1
_MARKS = {"ok": "ok", "warning": "look", "failed": "BROKEN"}


@click.command()
@click.option(
    "--targets",
    is_flag=True,
    help="Also ask each registered target's endpoint for its list of models, which nobody charges for.",
)
@shared_options
@pass_session
def doctor(session: Session, targets: bool) -> int:
    """Checks a deployment and says what is wrong and how to mend it. Exits with 1 when something is broken."""
    session.no_autostart = True
    try:
        door = session.door
        # A deployment that is not ready is what this command is for.
        door.takes_unready = True
        request = deployment.InspectDeploymentRequest(connect_targets=targets)
        found = door.call(door.deployment.InspectDeployment, request, INSPECT_S)
    except SrBenchError as error:
        found = _unreachable(error)
    checks = [(f"{one.service} {one.address}".strip(), check) for one in found.processes for check in one.checks]
    checks += [("deployment", check) for check in found.checks]
    broken = sum(check.status == pb.INSPECTION_STATUS_FAILED for _, check in checks)
    doubtful = sum(check.status == pb.INSPECTION_STATUS_WARNING for _, check in checks)
    shown: Json = {"healthy": not broken, "failed": broken, "warnings": doubtful, "checks": [_json(*one) for one in checks]}
    printing.show(shown, lambda: _table(checks), as_json=session.as_json)
    printing.notice(f"{len(checks)} checks: {broken} broken, {doubtful} to look at")
    return FAILED if broken else 0


def _unreachable(error: SrBenchError) -> deployment.DeploymentInspection:
    remedy = "start it with `sr-bench serve` or your orchestrator; check --url"
    if error.reason in ("BAD_TOKEN", "OPERATOR_ONLY"):
        remedy = "set SR_BENCH_TOKEN to the gateway's token, as an admin"
    check = pb.InspectionCheck(
        name="health", status=pb.INSPECTION_STATUS_FAILED, detail=f"{error.message} ({error.reason})", remedy=remedy
    )
    return deployment.DeploymentInspection(processes=[pb.ProcessInspection(service="gateway", checks=[check])])


def _status(check: pb.InspectionCheck) -> str:
    return enum_name(pb.InspectionStatus.DESCRIPTOR, check.status) or "unknown"


def _json(where: str, check: pb.InspectionCheck) -> Json:
    return {
        "process": where,
        "check": check.name,
        "status": _status(check),
        "detail": check.detail,
        "remedy": check.remedy,
    }


def _table(checks: Sequence[tuple[str, pb.InspectionCheck]]) -> RenderableType:
    rows = [
        (_MARKS.get(_status(check), ""), where, check.name, check.detail, check.remedy)
        for where, check in sorted(checks, key=lambda item: -item[1].status)
    ]
    return tables.table(("", "process", "check", "found", "mend it so"), rows)
