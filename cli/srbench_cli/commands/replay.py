"""`replay` and `replay-options`: saved single answers that a preview selects. No model is called."""

from __future__ import annotations

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import replay_pb2
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.ids import uuid7_hex

from srbench_cli import loop_tables, printing
from srbench_cli.commands.run import check_key, show_report
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


@click.command()
@click.option("--baseline", required=True, metavar="RUN", help="Completed live run with the saved answers.")
@click.option("--preview", "preview_id", required=True, metavar="RUN", help="Completed preview of the same cases.")
@click.option("--idempotency-key", help="The same key with the same runs is the same replay, however often it is sent.")
@shared_options
@pass_session
def replay(session: Session, baseline: str, preview_id: str, idempotency_key: str | None) -> None:
    """Estimates a router from saved answers. Every figure is an estimate; nothing is sent and nothing is spent.

    When it is not possible, every reason is printed, case by case, and the exit code is 2.
    """
    check_key(idempotency_key)
    try:
        ended = start_replay(session, baseline, preview_id, idempotency_key)
    except InvalidInput as error:
        if error.reason == "REPLAY_INELIGIBLE":
            _show_reasons(session, baseline, preview_id)
        raise
    show_report(session, ended)


def start_replay(session: Session, baseline: str, preview_id: str, key: str | None) -> pb.Run:
    """The replay, which has ended when this returns. Raises: `InvalidInput` (`REPLAY_INELIGIBLE`), `NotFound`."""
    request = replay_pb2.CreateReplayRequest(
        baseline_run_id=baseline, preview_run_id=preview_id, idempotency_key=key or f"cli-{uuid7_hex()}"
    )
    made = session.door.call(session.door.planner.CreateReplay, request, SLOW_CALL_TIMEOUT_S)
    printing.notice(f"replay {made.id} ({made.progress.total} cells, 0 model requests)")
    return made


@click.command("replay-options")
@click.argument("baseline", metavar="[BASELINE]", required=False, default="")
@click.option("--after", default="", help="`next_cursor` of the page before.")
@click.option("--limit", type=click.IntRange(1, 25), default=10, show_default=True, help="At most so many.")
@shared_options
@pass_session
def replay_options(session: Session, baseline: str, after: str, limit: int) -> None:
    """Lists baselines that a preview fits or, for one BASELINE, the previews that fit it."""
    request = pb.ListReplayOptionsRequest(baseline_run_id=baseline, page_size=limit, page_token=after)
    found = session.door.call(session.door.planner.ListReplayOptions, request, SLOW_CALL_TIMEOUT_S)
    printing.show(views.replay_options(found), lambda: loop_tables.replay_options(found), as_json=session.as_json)


def _show_reasons(session: Session, baseline: str, preview_id: str) -> None:
    request = replay_pb2.CheckReplayRequest(baseline_run_id=baseline, preview_run_id=preview_id)
    found = session.door.call(session.door.planner.CheckReplay, request, SLOW_CALL_TIMEOUT_S)
    printing.show(views.replay_check(found), lambda: loop_tables.replay_reasons(found), as_json=session.as_json)
