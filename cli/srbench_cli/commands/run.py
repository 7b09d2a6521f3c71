"""`run`: start an evaluation and wait for its report."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import report_pb2
from srbench_kit import views
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.ids import uuid7_hex
from srbench_kit.values import Json, to_value

from srbench_cli import manifests, printing, tables, watch
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

MAX_KEY_CHARS = 200
EXIT_INCOMPLETE = 1
EXIT_INTERRUPTED = 130


@click.command()
@click.option("--manifest", required=True, help="Manifest or frozen plan (.json, .yaml, .yml, .jsonl); - reads stdin.")
@click.option("--detach", is_flag=True, help="Print the run and return at once.")
@click.option("--idempotency-key", help="The same key with the same manifest is the same run, however often it is sent.")
@shared_options
@pass_session
def run(session: Session, manifest: str, detach: bool, idempotency_key: str | None) -> None:
    """Starts an evaluation and prints its report. Ctrl-C ends only the wait.

    Exits with 1 when the run did not complete, or when a target gave no answer at all; the report is printed all the same.
    """
    check_key(idempotency_key)
    started = start(session, manifests.read_manifest(manifest, Path.cwd()), idempotency_key)
    if detach:
        printing.show(
            views.run(started, views.frozen_manifest(started)), lambda: tables.run(started), as_json=session.as_json
        )
        return
    ended = wait(session, started)
    show_report(session, ended)


def check_key(key: str | None) -> None:
    """Raises: `InvalidInput` (`BAD_IDEMPOTENCY_KEY`) for a key that no service takes."""
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise InvalidInput("BAD_IDEMPOTENCY_KEY", f"--idempotency-key must have 1 to {MAX_KEY_CHARS} characters")


def start(session: Session, manifest: dict[str, Json], key: str | None) -> pb.Run:
    """Starts a run. The key is chosen before the first try, so that no repeat of the request can pay twice."""
    chosen = key or f"cli-{uuid7_hex()}"
    request = pb.CreateRunRequest(manifest=to_value(manifest), idempotency_key=chosen)
    try:
        started = session.door.call(session.door.planner.CreateRun, request, SLOW_CALL_TIMEOUT_S)
    except Unreachable as error:
        hint = f"the run may exist; ask again with --idempotency-key {chosen}, which starts nothing twice"
        raise Unreachable(error.reason, f"{error.message}; {hint}", **error.facts) from None
    printing.notice(f"run {started.id} ({started.progress.total or started.plan.total} cells)")
    return started


def wait(session: Session, started: pb.Run) -> pb.Run:
    """The run once it has ended; Ctrl-C leaves it running and says how to come back."""
    try:
        return watch.run_to_end(session.door, started)
    except KeyboardInterrupt:
        show, report, cancel = (session.hint(word, started.id) for word in ("show", "report", "cancel"))
        printing.notice(f"stopped waiting; the run goes on. Look at it with {show},")
        printing.notice(f"read its report with {report}, stop it with {cancel}")
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None


def get_report(session: Session, run_id: str, *, lineage: bool = False) -> report_pb2.Report:
    """The report of a run, computed now; with `lineage` merged with its recoveries."""
    request = accounting_pb.GetReportRequest(run_id=run_id, lineage=lineage)
    return session.door.call(session.door.accounting.GetReport, request, SLOW_CALL_TIMEOUT_S)


def show_report(session: Session, ended: pb.Run) -> report_pb2.Report:
    """Prints the report of an ended run; exits with 1 when it did not complete."""
    from srbench_cli import report_table

    report = get_report(session, ended.id)
    printing.show(views.report(report), lambda: report_table.report(report), as_json=session.as_json)
    fault = incompleteness(ended, report)
    if fault:
        printing.print_error("RUN_INCOMPLETE", fault)
        raise click.exceptions.Exit(EXIT_INCOMPLETE)
    return report


def incompleteness(ended: pb.Run, report: report_pb2.Report) -> str:
    """Why a run is no success, in a sentence; empty when it is one."""
    if ended.status != "completed":
        why = ended.error or ended.reason
        return f"the run {ended.id} ended as {ended.status}" + (f": {why}" if why else "")
    silent = [row.id for row in report.summary.targets if row.total and not row.completed]
    return f"no answer at all came from {', '.join(silent)}" if silent else ""
