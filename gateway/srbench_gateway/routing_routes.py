"""Routes that say where a run's questions went, and how long their answers took."""

from __future__ import annotations

from srbench.v1 import routing_flow_pb2, run_times_pb2
from srbench_kit import views

from srbench_gateway.params import Param
from srbench_gateway.reading_routes import REPORT_TIMEOUT_S
from srbench_gateway.routes import Ask, Object, Route
from srbench_gateway.schema import ref


async def routing(ask: Ask) -> Object:
    run_id = await ask.visible_run()
    request = routing_flow_pb2.GetRoutingFlowRequest(run_id=run_id, target_id=ask.text("target_id"))
    found = await ask.accounting(ask.facts.GetRoutingFlow, request, REPORT_TIMEOUT_S)
    shown = views.plain(found)
    shown["rows"] = [views.plain(row) for row in found.rows]
    return shown


async def times(ask: Ask) -> Object:
    request = run_times_pb2.GetRunTimesRequest(run_id=await ask.visible_run())
    found = await ask.accounting(ask.facts.GetRunTimes, request, REPORT_TIMEOUT_S)
    return views.plain(found)


ROUTES = [
    Route(
        method="GET",
        path="/runs/{run_id}/routing",
        about="Counts a run's planned cells by target, benchmark, stratum, decision, model and outcome.",
        answer=routing,
        params=(Param("target_id", "text", "Only this target."),),
        shows=ref(routing_flow_pb2.RoutingFlow),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/times",
        about="Gives the distributions of a run's times by target: of answers, and to the first token.",
        answer=times,
        shows=ref(run_times_pb2.RunTimes),
    ),
]
