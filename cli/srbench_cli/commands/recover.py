"""`recover-plan` and `recover`: which cells of a run can be tried again, and trying them in a child run."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import recovery_service_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.values import Json

from srbench_cli import manifests, printing, recovery_tables, tables
from srbench_cli.commands.run import MAX_KEY_CHARS, show_report, wait
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

MODES = ("undispatched", "failed")


@click.command("recover-plan")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="undispatched",
    show_default=True,
    help="Cells of which no call was ever accepted, or cells that were sent and gave no answer.",
)
@click.option("--output", type=click.Path(path_type=Path), help="New file for the plan; `recover` takes it.")
@shared_options
@pass_session
def recover_plan(session: Session, run_id: str, mode: str, output: Path | None) -> None:
    """Says which cells of a run that has ended can be tried again, and why the others cannot. Sends nothing.

    To try only some, put them as `selected_cells` into the plan file: a list like `eligible_cells`.
    """
    printing.check_new_file(output)
    request = pb.PlanRecoveryRequest(run_id=run_id, mode=mode)
    found = session.door.call(session.door.recovery.PlanRecovery, request, SLOW_CALL_TIMEOUT_S)
    shown = views.plain(found)
    printing.write_json(output, shown)
    printing.show(shown, lambda: recovery_tables.recovery_plan(found), as_json=session.as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--plan", "plan_file", required=True, help="What `recover-plan --output` wrote, reviewed; - reads stdin.")
@click.option("--idempotency-key", required=True, help="The same key with the same cells is the same child run.")
@click.option("--acknowledge-new-attempt", is_flag=True, help="For mode failed: the cells are sent, and paid for, again.")
@click.option("--wait", "waits", is_flag=True, help="Wait for the child run and print its report.")
@shared_options
@pass_session
def recover(
    session: Session, run_id: str, plan_file: str, idempotency_key: str, acknowledge_new_attempt: bool, waits: bool
) -> None:
    """Starts a child run of the reviewed cells. The parent stays as it is; `report RUN --lineage` shows both as one."""
    if not 1 <= len(idempotency_key) <= MAX_KEY_CHARS or not idempotency_key.strip():
        raise InvalidInput("BAD_IDEMPOTENCY_KEY", f"--idempotency-key must have 1 to {MAX_KEY_CHARS} characters")
    request = read_plan(manifests.read_document(plan_file), run_id)
    request.idempotency_key, request.acknowledge_new_attempt = idempotency_key, acknowledge_new_attempt
    try:
        started = session.door.call(session.door.recovery.RecoverRun, request, SLOW_CALL_TIMEOUT_S)
    except Unreachable as error:
        hint = f"the child may exist; ask again with --idempotency-key {idempotency_key}, which starts nothing twice"
        raise Unreachable(error.reason, f"{error.message}; {hint}", **error.facts) from None
    printing.notice(f"run {started.id} tries {len(request.cells)} cells of {run_id} again")
    if waits:
        show_report(session, wait(session, started))
        return
    printing.show(views.run_row(started), lambda: tables.run(started), as_json=session.as_json)


def read_plan(document: Json, run_id: str) -> pb.RecoverRunRequest:
    """The request that a reviewed plan stands for. Raises: `InvalidInput` (`BAD_RECOVERY_PLAN`)."""
    if not isinstance(document, dict):
        raise _bad("it is no object")
    for name in ("parent_run_id", "mode", "plan_sha256"):
        if not isinstance(document.get(name), str):
            raise _bad(f"{name} is missing or no text")
    if document["parent_run_id"] != run_id:
        raise _bad(f"it is of run {str(document['parent_run_id'])[:100]}, not of {run_id}")
    name = "selected_cells" if "selected_cells" in document else "eligible_cells"
    cells = document.get(name)
    if not isinstance(cells, list) or not cells:
        raise _bad(f"{name} is no list of at least one cell; there is nothing to try again")
    request = pb.RecoverRunRequest(run_id=run_id, mode=str(document["mode"]), plan_sha256=str(document["plan_sha256"]))
    for index, cell in enumerate(cells):
        pair = [cell.get(key) for key in ("case_id", "target_id")] if isinstance(cell, dict) else [None]
        if not all(isinstance(value, str) for value in pair):
            raise _bad(f"{name}[{index}] has no case_id and target_id")
        request.cells.add(case_id=str(pair[0]), target_id=str(pair[1]))
    return request


def _bad(why: str) -> InvalidInput:
    return InvalidInput("BAD_RECOVERY_PLAN", f"the file given with --plan is no recovery plan for this run: {why}")
