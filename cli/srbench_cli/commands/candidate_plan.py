"""`candidate-plan`: the plan that asks registered routers exactly what a baseline asked."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, to_value

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


@click.command("candidate-plan")
@click.argument("baseline", metavar="BASELINE")
@click.option("--target", "target_ids", multiple=True, required=True, help="A registered router; may be repeated.")
@click.option("--mode", type=click.Choice(["live", "preview"]), default="live", show_default=True, help="Mode of the plan.")
@click.option("--name", default="", help="Name of the plan.")
@click.option("--experiment", help="Experiment that the run is to belong to.")
@click.option("--role", help="Its role there.  [default: preview, or candidate]")
@click.option("--hypothesis", help="What it is to show.")
@click.option("--output", type=click.Path(path_type=Path), help="New file for the frozen manifest; `run` takes it.")
@shared_options
@pass_session
def candidate_plan(
    session: Session,
    baseline: str,
    target_ids: tuple[str, ...],
    mode: str,
    name: str,
    experiment: str | None,
    role: str | None,
    hypothesis: str | None,
    output: Path | None,
) -> None:
    """Freezes a plan with the baseline's cases, parameters, limits and grading, for other routers."""
    if (role or hypothesis) and not experiment:
        raise InvalidInput("MISSING_OPTION", "--role and --hypothesis say something of an experiment; give --experiment")
    printing.check_new_file(output)
    request = pb.CreateCandidatePlanRequest(baseline_run_id=baseline, target_ids=target_ids, mode=mode, name=name)
    if experiment:
        link: dict[str, Json] = {"id": experiment, "role": role or ("preview" if mode == "preview" else "candidate")}
        request.experiment.CopyFrom(to_value(link | ({"hypothesis": hypothesis} if hypothesis else {})))
    found = session.door.call(session.door.planner.CreateCandidatePlan, request, SLOW_CALL_TIMEOUT_S)
    shown = views.plan_checked(found)
    printing.write_json(output, shown["manifest"])
    printing.show(shown, lambda: tables.plan(found), as_json=session.as_json)
