"""Routes whose answer is a page that stands alone: to be read, saved and printed without this service."""

from __future__ import annotations

import asyncio

from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from starlette.responses import Response

from srbench_gateway.answers import API_HEADERS
from srbench_gateway.comparison_routes import COMPARE_TIMEOUT_S, COMPARED, asked_for
from srbench_gateway.paper import comparison_page, markup, run_page
from srbench_gateway.reading_routes import REPORT_TIMEOUT_S
from srbench_gateway.routes import Ask, Route
from srbench_gateway.schema import TEXT

_MEDIA_TYPE = "text/html; charset=utf-8"
_HEADERS = API_HEADERS | {"content-type": _MEDIA_TYPE, "content-security-policy": markup.CONTENT_SECURITY_POLICY}


async def report_page(ask: Ask) -> Response:
    request = planner.GetRunRequest(id=ask.ids["run_id"], summary=True)
    found = await ask.planner(ask.plans.GetRun, request)
    asked = accounting.GetReportRequest(run_id=found.id)
    report = await ask.accounting(ask.facts.GetReport, asked, REPORT_TIMEOUT_S)
    return Response(await asyncio.to_thread(run_page.page, found, report), headers=_HEADERS)


async def comparison_report_page(ask: Ask) -> Response:
    request = asked_for(ask)
    runs = (request.baseline_run_id, *request.candidate_run_ids)
    names = {name: await _name(ask, name) for name in dict.fromkeys(runs)}
    report = await ask.accounting(ask.facts.CompareRuns, request, COMPARE_TIMEOUT_S)
    return Response(await asyncio.to_thread(comparison_page.page, report, names), headers=_HEADERS)


async def _name(ask: Ask, run_id: str) -> str:
    """A run's name; that the planner tells it says that the actor may see the run."""
    found = await ask.planner(ask.plans.GetRun, planner.GetRunRequest(id=run_id, summary=True))
    return found.plan.name


ROUTES = [
    Route(
        method="GET",
        path="/runs/{run_id}/report.html",
        about="The report of a run as a page that stands alone: figures and names, no texts of cases or answers.",
        answer=report_page,
        shows=TEXT,
        media_type="text/html",
    ),
    Route(
        method="GET",
        path="/comparisons/report.html",
        about="A comparison as a page that stands alone: figures and names, no texts of cases or answers.",
        answer=comparison_report_page,
        params=COMPARED,
        shows=TEXT,
        media_type="text/html",
    ),
]
