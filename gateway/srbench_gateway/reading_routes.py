"""Routes that read what a run has come to: outcomes, calls, evidence, events, the report."""

from __future__ import annotations

from typing import Any

from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import report_pb2, work_queue_service_pb2
from srbench_kit import pages, views
from starlette.responses import Response

from srbench_gateway.evidence import download
from srbench_gateway.params import Param
from srbench_gateway.planning_routes import AFTER, AFTER_NUMBER, cursor
from srbench_gateway.routes import Ask, Object, Route
from srbench_gateway.schema import BOOLEAN, INTEGER, TEXT, listed, nullable, record, ref
from srbench_gateway.watch import watch

REPORT_TIMEOUT_S = 60.0
# An outcome's status in the API, and the cell's state that it stands for.
OUTCOME_STATES = {
    "completed": work_queue_service_pb2.CELL_STATE_DONE,
    "failed": work_queue_service_pb2.CELL_STATE_FAILED,
    "cancelled": work_queue_service_pb2.CELL_STATE_CANCELLED,
    "sent_unknown": work_queue_service_pb2.CELL_STATE_INTERRUPTED,
}
CELL_STATES = ("queued", "leased", "done", "failed", "cancelled", "interrupted")


async def events(ask: Ask) -> Object:
    request = planner.ListRunEventsRequest(
        run_id=ask.ids["run_id"], after=ask.number("after"), page_size=ask.number("limit"), type=ask.text("type")
    )
    found = await ask.planner(ask.plans.ListRunEvents, request)
    more = found.has_more and bool(found.events)
    return {
        "events": [views.event(item) for item in found.events],
        "has_more": found.has_more,
        "next_cursor": found.events[-1].seq if more else None,
    }


async def cells(ask: Ask) -> Object:
    state = ask.text("state")
    request = planner.ListCellsRequest(
        run_id=ask.ids["run_id"],
        page_size=ask.number("limit"),
        page_token=ask.text("after"),
        state=work_queue_service_pb2.CellState.Value(f"CELL_STATE_{(state or 'unspecified').upper()}"),
    )
    found = await ask.planner(ask.plans.ListCells, request)
    return {
        "cells": [views.plain(item) for item in found.cells],
        "limit": ask.number("limit"),
        "next_cursor": cursor(found.next_page_token),
    }


async def results(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request = accounting.ListOutcomesRequest(
        run_id=run_id,
        page_size=ask.number("limit"),
        page_token=pages.from_number(ask.number("after")),
        target_id=ask.text("target_id"),
        benchmark=ask.text("benchmark"),
        state=OUTCOME_STATES.get(ask.text("status"), work_queue_service_pb2.CELL_STATE_UNSPECIFIED),
        correct=bool(ask.params["correct"]) if "correct" in ask.params else None,
        cell=ask.number("cell") if "cell" in ask.params else None,
        query=ask.text("q"),
        reason=ask.text("reason"),
        model=ask.text("model"),
        decision=ask.text("decision"),
        **_order(ask),
    )
    found = await ask.accounting(ask.facts.ListOutcomes, request)
    return {
        "results": [views.plain(item) for item in found.results],
        "total": found.total,
        "limit": ask.number("limit"),
        "next_cursor": pages.as_number(found.next_page_token),
    }


async def calls(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request = accounting.ListCallsRequest(
        run_id=run_id,
        page_size=ask.number("limit"),
        page_token=pages.from_number(ask.number("after")),
        active=bool(ask.params["active"]),
        target_id=ask.text("target_id"),
        case_id=ask.text("case_id"),
        status=_enum(accounting.CallStatus, "CALL_STATUS", ask.text("status")),
        role=_enum(accounting.CallRole, "CALL_ROLE", ask.text("role")),
        reason=ask.text("reason"),
        model=ask.text("model"),
        decision=ask.text("decision"),
        finish_reason=ask.text("finish_reason"),
        unknown_cost=bool(ask.params["unknown_cost"]),
        **_order(ask),
    )
    found = await ask.accounting(ask.facts.ListCalls, request)
    return {
        "calls": [views.call_row(item) for item in found.calls],
        "total": found.total,
        "limit": ask.number("limit"),
        "next_cursor": pages.as_number(found.next_page_token),
    }


def _order(ask: Ask) -> Any:
    """The fields by which both lists are ordered and jumped in."""
    return {"offset": ask.number("offset"), "order_by": ask.text("order_by"), "descending": bool(ask.params["descending"])}


def _enum(kind: Any, prefix: str, name: str) -> Any:
    return kind.Value(f"{prefix}_{(name or 'unspecified').upper()}")


async def question(ask: Ask) -> Object:
    request = planner.GetRunCaseRequest(run_id=ask.ids["run_id"], case_id=ask.text("case_id"))
    return views.dataset_case(await ask.planner(ask.plans.GetRunCase, request))


async def call(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request = accounting.GetCallRequest(run_id=run_id, call_id=ask.ids["call_id"])
    found = await ask.accounting(ask.facts.GetCall, request)
    return views.plain(found)


async def evidence(ask: Ask) -> Response:
    run_id = await ask.visible_run()
    return await download(ask.backends, ask.actor, run_id, ask.ids["call_id"], ask.text("part"))


async def spend(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request = accounting.GetSpendRequest(run_id=run_id)
    found = await ask.accounting(ask.facts.GetSpend, request)
    return views.plain(found)


async def report(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request, timeout_s = accounting.GetReportRequest(run_id=run_id, lineage=bool(ask.params["lineage"])), REPORT_TIMEOUT_S
    return views.report(await ask.accounting(ask.facts.GetReport, request, timeout_s))


async def watch_run(ask: Ask) -> Response:
    return await watch(ask.backends, ask.actor, ask.ids["run_id"])


_LIMIT = Param("limit", "int", "Most to return.", 1, 500, default=100)
_TARGET = Param("target_id", "text", "Only this target.")
_NUMBER_CURSOR = nullable(INTEGER)
ORDERS = ("cost", "latency", "ttft")
CALL_STATUSES = ("sent", "completed", "failed", "cancelled", "sent_unknown", "not_accepted")
CALL_ROLES = ("subject", "judge", "simulator")
_NARROWED = (
    Param("reason", "text", "Only this reason.", high=200),
    Param("model", "text", "Only what this model answered.", high=256),
    Param("decision", "text", "Only what this decision routed.", high=256),
)
_ORDERED = (
    Param("offset", "int", "Rows to skip, instead of `after`, for readers that jump.", default=0),
    Param("order_by", "text", "Another order; what is unknown comes last.", choices=ORDERS),
    Param("descending", "bool", "Largest first.", default=False),
)

ROUTES = [
    Route(
        method="GET",
        path="/runs/{run_id}/results",
        about="Lists outcomes in the order in which they were recorded, or in another.",
        answer=results,
        params=(
            AFTER_NUMBER,
            _LIMIT,
            _TARGET,
            Param("benchmark", "text", "Only this benchmark."),
            Param("status", "text", "Only this status.", choices=tuple(OUTCOME_STATES)),
            Param("correct", "bool", "Only right or only wrong answers."),
            Param("cell", "int", "Only this cell."),
            Param("q", "text", "Only outcomes whose case id, extracted answer, reason or error holds this.", high=200),
            *_NARROWED,
            *_ORDERED,
        ),
        shows=record(results=listed(ref(accounting.Outcome)), total=INTEGER, limit=INTEGER, next_cursor=_NUMBER_CURSOR),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/question",
        about="Gives one question of a run, without its answer.",
        answer=question,
        params=(Param("case_id", "text", "The case.", high=500, required=True),),
        shows=ref("DatasetCase"),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/calls",
        about="Lists calls in the order of their dispatch, or in another, without texts.",
        answer=calls,
        params=(
            AFTER_NUMBER,
            _LIMIT,
            Param("active", "bool", "Only calls without an end.", default=False),
            _TARGET,
            Param("case_id", "text", "Only this case."),
            Param("status", "text", "Only this status.", choices=CALL_STATUSES),
            Param("role", "text", "Only this role.", choices=CALL_ROLES),
            Param("finish_reason", "text", "Only this finish reason.", high=256),
            Param("unknown_cost", "bool", "Only ended calls whose receipt does not say what they cost.", default=False),
            *_NARROWED,
            *_ORDERED,
        ),
        shows=record(calls=listed(ref("CallRow")), total=INTEGER, limit=INTEGER, next_cursor=_NUMBER_CURSOR),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/calls/{call_id}",
        about="Gives one call with its texts, derived again from the evidence.",
        answer=call,
        shows=ref(accounting.Call),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/calls/{call_id}/evidence",
        about="Downloads what came over the wire: the body as received, or the status, headers and trailers.",
        answer=evidence,
        params=(Param("part", "text", "What to download.", default="body", choices=("body", "headers")),),
        shows=TEXT,
        media_type="text/plain",
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/events",
        about="Lists what happened to a run, oldest first.",
        answer=events,
        params=(
            Param("after", "int", "Only events after this `seq`.", default=0),
            Param("limit", "int", "Most to return.", 1, 1000, default=1000),
            Param("type", "text", "Only this type."),
        ),
        shows=record(events=listed(ref(planner.RunEvent)), has_more=BOOLEAN, next_cursor=_NUMBER_CURSOR),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/report",
        about="Computes the report of a run.",
        answer=report,
        params=(Param("lineage", "bool", "Merge the run with its recoveries.", default=False),),
        shows=ref(report_pb2.Report),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/cells",
        about="Lists the cells of a run with their states, in dispatch order.",
        answer=cells,
        params=(
            AFTER,
            Param("limit", "int", "Most to return.", 1, 1000, default=100),
            Param("state", "text", "Only this state.", choices=CELL_STATES),
        ),
        shows=record(cells=listed(ref(planner.Cell)), limit=INTEGER, next_cursor=nullable(TEXT)),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/spend",
        about="Gives a run's known spend and what is reserved.",
        answer=spend,
        shows=ref(accounting.Spend),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/watch",
        about="Server-sent events `run` (a run in short, with its spend) each time it changes, then `end`.",
        answer=watch_run,
        shows=TEXT,
        media_type="text/event-stream",
    ),
]
