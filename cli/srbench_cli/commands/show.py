"""`show`: a run, or one page of what is known of it."""

from __future__ import annotations

import click
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.errors import InvalidInput
from srbench_kit.jsonview import to_json
from srbench_kit.values import Json

from srbench_cli import printing, tables, views
from srbench_cli.context import Session, pass_session, shared_options

MAX_PAGE = 500


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--results", is_flag=True, help="Outcomes of cells.")
@click.option("--calls", is_flag=True, help="Model calls.")
@click.option("--active", is_flag=True, help="Only calls in flight; with --calls.")
@click.option("--events", is_flag=True, help="What happened, oldest first.")
@click.option("--cells", is_flag=True, help="Cells with their states.")
@click.option("--call-id", help="One call with its texts.")
@click.option("--after", default="0", show_default=True, help="Where the page begins: what the page before called next.")
@click.option("--limit", type=click.IntRange(1, MAX_PAGE), default=100, show_default=True, help="Entries a page.")
@shared_options
@pass_session
def show(
    session: Session,
    run_id: str,
    results: bool,
    calls: bool,
    active: bool,
    events: bool,
    cells: bool,
    call_id: str | None,
    after: str,
    limit: int,
) -> None:
    """Shows a run, or one page of its results, calls, events or cells, or one call."""
    if sum((results, calls, events, cells, call_id is not None)) > 1:
        raise InvalidInput("ONE_VIEW", "choose one of --results, --calls, --events, --cells and --call-id")
    if active and not calls:
        raise InvalidInput("ONE_VIEW", "--active needs --calls")
    # Released clients begin with 0; page tokens begin with nothing.
    token = "" if after == "0" else after
    if call_id is not None:
        _call(session, run_id, call_id)
    elif results:
        _results(session, run_id, token, limit)
    elif calls:
        _calls(session, run_id, token, limit, active)
    elif events:
        _events(session, run_id, after, limit)
    elif cells:
        _cells(session, run_id, token, limit)
    else:
        # The manifest is for programs; on a terminal the summary is enough.
        request = planner_pb.GetRunRequest(id=run_id, summary=not printing.wants_json(session.as_json))
        found = session.door.call(session.door.planner.GetRun, request)
        printing.show(views.run_json(found), lambda: tables.run(found), as_json=session.as_json)


def _paged(shown: dict[str, Json], limit: int) -> dict[str, Json]:
    """A page with its cursor under the name that released clients know; null at the end."""
    shown["next_cursor"] = shown.pop("next_page_token") or None
    return shown | {"limit": limit}


def _more(token: str) -> None:
    if token:
        printing.notice(f"more with --after {token}")


def _call(session: Session, run_id: str, call_id: str) -> None:
    request = accounting_pb.GetCallRequest(run_id=run_id, call_id=call_id)
    found = session.door.call(session.door.accounting.GetCall, request)
    printing.show(to_json(found), lambda: tables.call(found), as_json=session.as_json)


def _results(session: Session, run_id: str, token: str, limit: int) -> None:
    request = accounting_pb.ListOutcomesRequest(run_id=run_id, page_size=limit, page_token=token)
    found = session.door.call(session.door.accounting.ListOutcomes, request)
    printing.show(_paged(to_json(found), limit), lambda: tables.outcomes(found), as_json=session.as_json)
    _more(found.next_page_token)


def _calls(session: Session, run_id: str, token: str, limit: int, active: bool) -> None:
    request = accounting_pb.ListCallsRequest(run_id=run_id, page_size=limit, page_token=token, active=active)
    found = session.door.call(session.door.accounting.ListCalls, request)
    printing.show(_paged(to_json(found), limit), lambda: tables.calls(found), as_json=session.as_json)
    _more(found.next_page_token)


def _events(session: Session, run_id: str, after: str, limit: int) -> None:
    if not (after.isascii() and after.isdigit()):
        raise InvalidInput("BAD_AFTER", f"--after is {after!r}; with --events it is the sequence of the last event seen")
    request = planner_pb.ListRunEventsRequest(run_id=run_id, after=int(after), page_size=limit)
    found = session.door.call(session.door.planner.ListRunEvents, request)
    printing.show(to_json(found), lambda: tables.events(found), as_json=session.as_json)
    _more(str(found.events[-1].seq) if found.has_more and found.events else "")


def _cells(session: Session, run_id: str, token: str, limit: int) -> None:
    request = planner_pb.ListCellsRequest(run_id=run_id, page_size=limit, page_token=token)
    found = session.door.call(session.door.planner.ListCells, request)
    printing.show(_paged(to_json(found), limit), lambda: tables.cells(found), as_json=session.as_json)
    _more(found.next_page_token)
