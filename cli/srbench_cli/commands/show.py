"""`show`: a run, or one page of what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import pages, views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options

if TYPE_CHECKING:
    from rich.console import RenderableType

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
    if call_id is not None:
        _call(session, run_id, call_id)
    elif results:
        _results(session, run_id, _number(after), limit)
    elif calls:
        _calls(session, run_id, _number(after), limit, active)
    elif events:
        _events(session, run_id, _number(after), limit)
    elif cells:
        _cells(session, run_id, after, limit)
    else:
        # The manifest is for programs; on a terminal the summary is enough.
        request = planner_pb.GetRunRequest(id=run_id, summary=not printing.wants_json(session.as_json))
        found = session.door.call(session.door.planner.GetRun, request)
        printing.show(views.run(found, views.frozen_manifest(found)), lambda: tables.run(found), as_json=session.as_json)


def _number(after: str) -> int:
    """`--after` of the views that page by numbers."""
    if not (after.isascii() and after.isdigit() and len(after) < 19):
        raise InvalidInput(
            "BAD_AFTER", f"--after is {after!r}; expected the number that the page before called next_cursor"
        )
    return int(after)


def _page(session: Session, shown: dict[str, Json], table: Callable[[], RenderableType]) -> None:
    """Prints a page and, for people, where the next one begins."""
    printing.show(shown, table, as_json=session.as_json)
    if shown["next_cursor"] is not None:
        printing.notice(f"more with --after {shown['next_cursor']}")


def _call(session: Session, run_id: str, call_id: str) -> None:
    request = accounting_pb.GetCallRequest(run_id=run_id, call_id=call_id)
    found = session.door.call(session.door.accounting.GetCall, request)
    printing.show(views.plain(found), lambda: tables.call(found), as_json=session.as_json)


def _results(session: Session, run_id: str, after: int, limit: int) -> None:
    request = accounting_pb.ListOutcomesRequest(run_id=run_id, page_size=limit, page_token=pages.from_number(after))
    found = session.door.call(session.door.accounting.ListOutcomes, request)
    shown: dict[str, Json] = {
        "results": [views.plain(item) for item in found.results],
        "total": found.total,
        "limit": limit,
        "next_cursor": pages.as_number(found.next_page_token),
    }
    _page(session, shown, lambda: tables.outcomes(found))


def _calls(session: Session, run_id: str, after: int, limit: int, active: bool) -> None:
    token = pages.from_number(after)
    request = accounting_pb.ListCallsRequest(run_id=run_id, page_size=limit, page_token=token, active=active)
    found = session.door.call(session.door.accounting.ListCalls, request)
    shown: dict[str, Json] = {
        "calls": [views.call_row(item) for item in found.calls],
        "total": found.total,
        "limit": limit,
        "next_cursor": pages.as_number(found.next_page_token),
    }
    _page(session, shown, lambda: tables.calls(found))


def _events(session: Session, run_id: str, after: int, limit: int) -> None:
    request = planner_pb.ListRunEventsRequest(run_id=run_id, after=after, page_size=limit)
    found = session.door.call(session.door.planner.ListRunEvents, request)
    shown: dict[str, Json] = {
        "events": [views.event(item) for item in found.events],
        "has_more": found.has_more,
        "next_cursor": found.events[-1].seq if found.has_more and found.events else None,
    }
    _page(session, shown, lambda: tables.events(found))


def _cells(session: Session, run_id: str, after: str, limit: int) -> None:
    # Page tokens begin with nothing, the option with 0.
    request = planner_pb.ListCellsRequest(run_id=run_id, page_size=limit, page_token="" if after == "0" else after)
    found = session.door.call(session.door.planner.ListCells, request)
    shown: dict[str, Json] = {
        "cells": [views.plain(item) for item in found.cells],
        "limit": limit,
        "next_cursor": found.next_page_token or None,
    }
    _page(session, shown, lambda: tables.cells(found))
