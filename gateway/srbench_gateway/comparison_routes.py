"""Routes about comparisons and about what is done with a finished run: regrading, export, reconciling; and power."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import power_pb2
from srbench_kit import exports, views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, to_value
from starlette.responses import Response, StreamingResponse

from srbench_gateway import comparison_files, pair_files, table_files
from srbench_gateway.answers import API_HEADERS
from srbench_gateway.bodies import BIG_BYTES, kind_of
from srbench_gateway.fields import fill, unknown
from srbench_gateway.params import Param
from srbench_gateway.planning_routes import AFTER, FREEZE_TIMEOUT_S, cursor
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.run_routes import NOTHING
from srbench_gateway.schema import TEXT, listed, record, ref

COMPARE_TIMEOUT_S = 60.0
# Every saved answer of a run is read and judged again.
REGRADE_TIMEOUT_S = 600.0
OUTCOMES = ("win", "loss", "tie", "both_right", "both_wrong")
MAX_PAIRS = 200
SORTS = ("case", "outcome", "cost_delta", "latency_delta")


async def compare(ask: Ask) -> Object:
    await _check_visible(ask, ask.body.baseline_run_id, *ask.body.candidate_run_ids)
    found = await ask.accounting(ask.facts.CompareRuns, ask.body, COMPARE_TIMEOUT_S)
    return await asyncio.to_thread(views.deep, found) if found.ByteSize() > BIG_BYTES else views.deep(found)


async def pairs(ask: Ask) -> Object:
    request = pb.ComparePairsRequest(
        baseline_run_id=ask.text("baseline_run_id"),
        candidate_run_id=ask.text("candidate_run_id"),
        baseline_target_id=ask.text("baseline_target_id"),
        candidate_target_id=ask.text("candidate_target_id"),
        page_size=ask.number("limit"),
        page_token=ask.text("after"),
        outcome=ask.text("outcome"),
        benchmark=ask.text("benchmark"),
        sort=ask.text("sort"),
        descending=bool(ask.params["descending"]),
        texts=bool(ask.params["texts"]),
        offset=ask.number("offset"),
        case_id=ask.text("case_id"),
    )
    await _check_visible(ask, request.baseline_run_id, request.candidate_run_id)
    found = await ask.accounting(ask.facts.ComparePairs, request, COMPARE_TIMEOUT_S)
    shown = views.deep(found)
    shown.pop("next_page_token")
    after = cursor(found.next_page_token)
    return {**shown, "limit": ask.number("limit"), "next_cursor": after, "model_requests": 0}


async def pairs_file(ask: Ask) -> Response:
    """Every pair, read in pages like those that people see."""
    chosen, rows, token = ask.text("format"), list[table_files.Row](), ""
    await _check_visible(ask, ask.text("baseline_run_id"), ask.text("candidate_run_id"))
    while True:
        request = pb.ComparePairsRequest(
            baseline_run_id=ask.text("baseline_run_id"),
            candidate_run_id=ask.text("candidate_run_id"),
            baseline_target_id=ask.text("baseline_target_id"),
            candidate_target_id=ask.text("candidate_target_id"),
            page_size=MAX_PAIRS,
            page_token=token,
        )
        found = await ask.accounting(ask.facts.ComparePairs, request, COMPARE_TIMEOUT_S)
        sides: Object = {
            "baseline_run_id": request.baseline_run_id,
            "baseline_target_id": found.baseline_target_id,
            "candidate_run_id": request.candidate_run_id,
            "candidate_target_id": found.candidate_target_id,
        }
        rows += [pair_files.row(views.deep(pair), sides) for pair in found.pairs]
        token = found.next_page_token
        if not token:
            break
    document: Object = {"version": "sr-bench-1.0", "pairs": list[Json](rows)}
    return await _table(rows, pair_files.columns(), "pairs", chosen, document)


def asked_for(ask: Ask) -> pb.CompareRunsRequest:
    """The comparison that `COMPARED` names."""
    candidates = [name for name in ask.text("candidate_run_ids").split(",") if name]
    request = pb.CompareRunsRequest(baseline_run_id=ask.text("baseline_run_id"), candidate_run_ids=candidates)
    thousandths = ask.number("margin_thousandths")
    if thousandths:
        request.margin = thousandths / 1000
    return request


async def comparison_file(ask: Ask) -> Response:
    """A whole comparison: as a table, or as it is shown."""
    request = asked_for(ask)
    await _check_visible(ask, request.baseline_run_id, *request.candidate_run_ids)
    found = await ask.accounting(ask.facts.CompareRuns, request, COMPARE_TIMEOUT_S)
    shown = views.deep(found)
    rows = list(comparison_files.rows(shown))
    return await _table(rows, comparison_files.columns(), "comparison", ask.text("format"), shown)


async def _table(
    rows: list[table_files.Row], kinds: table_files.Kinds, name: str, chosen: str, document: Object
) -> Response:
    headers = API_HEADERS | {
        "content-type": table_files.MEDIA_TYPES[chosen],
        "content-disposition": f'attachment; filename="sr-bench-{name}.{chosen}"',
    }
    return Response(await asyncio.to_thread(table_files.encode, rows, kinds, chosen, document), headers=headers)


async def options(ask: Ask) -> Object:
    baseline = ask.text("baseline_run_id")
    if baseline:
        await _check_visible(ask, baseline)
    request = pb.ListComparisonOptionsRequest(
        baseline_run_id=baseline, page_size=ask.number("limit"), page_token=ask.text("after")
    )
    found = await ask.accounting(ask.facts.ListComparisonOptions, request, COMPARE_TIMEOUT_S)
    shown = views.deep(found)
    shown.pop("next_page_token")
    return {**shown, "next_cursor": cursor(found.next_page_token)}


async def regrade(ask: Ask) -> Object:
    request = pb.RegradeRunRequest(run_id=await ask.visible_run())
    found = await ask.accounting(ask.facts.RegradeRun, request, REGRADE_TIMEOUT_S)
    return await asyncio.to_thread(views.deep, found)


async def export(ask: Ask) -> Response:
    return await _export(ask, "json")


async def export_parquet(ask: Ask) -> Response:
    return await _export(ask, "parquet")


async def _export(ask: Ask, chosen: str) -> Response:
    run_id = await ask.visible_run()
    parts = ask.backends.accounting.stream(ask.facts.ExportRun, pb.ExportRunRequest(run_id=run_id), ask.actor)
    # A refusal comes before the first part, and must still become a status.
    first = await anext(parts)
    headers = API_HEADERS | {
        "content-type": exports.MEDIA_TYPES[chosen],
        "content-disposition": f'attachment; filename="{run_id}-export.{chosen}"',
    }
    if chosen == "json":
        return StreamingResponse(_json(first, parts), headers=headers)
    return Response(await _parquet(first, parts), headers=headers)


async def reconcile(ask: Ask) -> Object:
    request = pb.ReconcileUsageRequest(run_id=await ask.visible_run())
    found = await ask.accounting(ask.facts.ReconcileUsage, request, REGRADE_TIMEOUT_S)
    return await asyncio.to_thread(views.deep, found)


async def corrections(ask: Ask) -> Object:
    request = pb.ListCorrectionsRequest(run_id=await ask.visible_run(), calls=bool(ask.params["calls"]))
    found = await ask.accounting(ask.facts.ListCorrections, request, COMPARE_TIMEOUT_S)
    return await asyncio.to_thread(views.deep, found)


async def power(ask: Ask) -> Object:
    timeout_s = FREEZE_TIMEOUT_S
    found = await ask.planner(ask.plans.EstimatePower, ask.body, timeout_s)
    return views.deep(found)


async def _json(first: pb.ExportPart, parts: AsyncIterator[pb.ExportPart]) -> AsyncIterator[bytes]:
    writer = exports.JsonWriter()
    yield writer.add(first)
    async for part in parts:
        yield writer.add(part)
    yield writer.end()


async def _parquet(first: pb.ExportPart, parts: AsyncIterator[pb.ExportPart]) -> bytes:
    writer = await asyncio.to_thread(exports.ParquetWriter)
    writer.add(first)
    async for part in parts:
        await asyncio.to_thread(writer.add, part)
    return await asyncio.to_thread(writer.end)


async def _check_visible(ask: Ask, *run_ids: str) -> None:
    for run_id in run_ids:
        await ask.backends.check_visible(run_id, ask.actor)


def _comparison_body(body: Object) -> pb.CompareRunsRequest:
    """Released clients name one `candidate_run_id`; others a list, `candidate_run_ids`."""
    known = pb.CompareRunsRequest.DESCRIPTOR.fields_by_name
    unknown(body, [*known, "candidate_run_id"], "field")
    if "candidate_run_id" in body and "candidate_run_ids" in body:
        raise InvalidInput("TOO_MANY_FIELDS", "give either candidate_run_id or candidate_run_ids", field="candidate_run_id")
    rest = {key: value for key, value in body.items() if key != "candidate_run_id"}
    if "candidate_run_id" in body:
        check_required(body, ["candidate_run_id"])
        rest["candidate_run_ids"] = [body["candidate_run_id"]]
    check_required(rest, ["baseline_run_id"])
    if not rest.get("candidate_run_ids"):
        raise InvalidInput("MISSING_FIELD", "the field candidate_run_id is missing", field="candidate_run_id")
    return fill(pb.CompareRunsRequest(), rest)


def _power_body(body: Object) -> power_pb2.EstimatePowerRequest:
    known = power_pb2.EstimatePowerRequest.DESCRIPTOR.fields_by_name
    unknown(body, known, "field")
    check_required(body, ["manifest"])
    if not isinstance(body["manifest"], dict):
        raise InvalidInput("BAD_TYPE", f"manifest is {kind_of(body['manifest'])}; expected an object", field="manifest")
    rest = {key: value for key, value in body.items() if key != "manifest"}
    request = fill(power_pb2.EstimatePowerRequest(), rest)
    request.manifest.CopyFrom(to_value(body["manifest"]))
    return request


COMPARE = Body(
    message=pb.CompareRunsRequest,
    make=_comparison_body,
    required=("baseline_run_id",),
    extra={"candidate_run_id": {**TEXT, "description": "One candidate; instead of `candidate_run_ids`."}},
)
POWER = Body(message=power_pb2.EstimatePowerRequest, make=_power_body, carries_plan=True, required=("manifest",))
_BASELINE = Param("baseline_run_id", "text", "The run with the single models.", required=True, high=128)
COMPARED = (
    _BASELINE,
    Param("candidate_run_ids", "text", "The runs to compare with it, commas between.", required=True, high=2048),
    Param("margin_thousandths", "int", "The largest loss of quality that counts as none, in thousandths.", 0, 999),
)

ROUTES = [
    Route(
        method="POST",
        path="/comparisons",
        about="Compares every target of one or more runs with the strongest single model of a baseline run.",
        answer=compare,
        body=COMPARE,
        shows=ref(pb.ComparisonReport),
    ),
    Route(
        method="GET",
        path="/comparisons/pairs",
        about="Lists the questions of a comparison, each with both answers.",
        answer=pairs,
        params=(
            _BASELINE,
            Param("candidate_run_id", "text", "The run to compare with it.", required=True, high=128),
            Param("baseline_target_id", "text", "A target of the baseline; without it the strongest single model."),
            Param("candidate_target_id", "text", "A target of the candidate; needed when it has several."),
            Param("outcome", "text", "Only these.", choices=OUTCOMES),
            Param("benchmark", "text", "Only this benchmark."),
            Param("sort", "text", "The order.", choices=SORTS, default="case"),
            Param("descending", "bool", "The other way round.", default=False),
            Param("texts", "bool", "With the answers' final texts.", default=False),
            AFTER,
            Param("limit", "int", "Most to return.", 1, 200, default=25),
            Param("offset", "int", "Pairs to skip, for a jump into the middle.", default=0),
            Param("case_id", "text", "Only this question.", high=500),
        ),
        shows=ref("PairPage"),
    ),
    Route(
        method="GET",
        path="/comparisons/pairs/file",
        about="All questions of a comparison as a file, without texts: CSV, JSON or Parquet.",
        answer=pairs_file,
        params=(
            _BASELINE,
            Param("candidate_run_id", "text", "The run to compare with it.", required=True, high=128),
            Param("baseline_target_id", "text", "A target of the baseline; without it the strongest single model."),
            Param("candidate_target_id", "text", "A target of the candidate; needed when it has several."),
            Param("format", "text", "The kind of file.", choices=table_files.FORMATS, default="csv"),
        ),
        shows=TEXT,
        media_type="application/octet-stream",
    ),
    Route(
        method="GET",
        path="/comparisons/file",
        about="A whole comparison as a file: CSV or Parquet with a row a candidate target, or JSON as it is shown.",
        answer=comparison_file,
        params=(
            *COMPARED,
            Param("format", "text", "The kind of file.", choices=table_files.FORMATS, default="csv"),
        ),
        shows=TEXT,
        media_type="application/octet-stream",
    ),
    Route(
        method="GET",
        path="/comparison-options",
        about="Lists runs that can be compared with a baseline and why others cannot; without one, runs that can be one.",
        answer=options,
        params=(
            Param("baseline_run_id", "text", "The baseline.", high=128),
            AFTER,
            Param("limit", "int", "Most to return.", 1, 25, default=10),
        ),
        shows=ref("ComparisonOptions"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/regrade",
        about="Has the installed graders judge a run's saved answers again. Changes nothing.",
        answer=regrade,
        body=NOTHING,
        shows=ref(pb.Regrading),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/export",
        about="Exports a run over development cases with all answers. Holdout and unknown splits are refused.",
        answer=export,
        body=NOTHING,
        shows=ref("Export"),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/export/parquet",
        about="The same as a Parquet file with a row a case and target.",
        answer=export_parquet,
        body=NOTHING,
        shows=TEXT,
        media_type=exports.MEDIA_TYPES["parquet"],
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/reconcile-usage",
        about="Reads usage and cost again from a run's retained streams; the same evidence gives the same correction.",
        answer=reconcile,
        body=NOTHING,
        shows=ref(pb.AccountingCorrection),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/corrections",
        about="Lists the corrections of a run, oldest first.",
        answer=corrections,
        params=(Param("calls", "bool", "With the entry of every call.", default=False),),
        shows=record(corrections=listed(ref(pb.AccountingCorrection))),
    ),
    Route(
        method="POST",
        path="/plans/power",
        about="Says what a manifest could show and what it would cost, by profile, before anything is spent.",
        answer=power,
        body=POWER,
        shows=ref(power_pb2.PowerEstimate),
    ),
]
