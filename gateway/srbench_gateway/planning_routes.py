"""Routes about what can be run: health, catalog, targets, datasets, preparations, plans."""

from __future__ import annotations

import asyncio

from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, to_value
from starlette.responses import Response

from srbench_gateway import answers
from srbench_gateway.auth import check_operator
from srbench_gateway.bodies import BIG_BYTES, kind_of
from srbench_gateway.fields import fill, unknown
from srbench_gateway.params import Param
from srbench_gateway.routes import Ask, Body, Object, Route, check_required, same_fields
from srbench_gateway.schema import BOOLEAN, INTEGER, NO_MODEL_REQUESTS, TEXT, listed, mapped, nullable, record, ref

VERSION = "sr-bench-1.0"
PROFILES = ("smoke", "quick", "standard")
FREEZE_TIMEOUT_S = 120.0
AFTER = Param("after", "text", "`next_cursor` of the page before.")
# Where released clients know integers alone; 0 is the beginning.
AFTER_NUMBER = Param("after", "int", "`next_cursor` of the page before.", default=0)


def cursor(token: str) -> str | None:
    """A page token as a text cursor; null at the end."""
    return token or None


async def health(ask: Ask) -> Response:
    """Ready only when everything a caller needs answers."""
    services = await ask.backends.health()
    ready = all(services.values())
    body: Object = {
        "version": VERSION,
        "status": "ready" if ready else "unavailable",
        "store_id": ask.identity.store_id,
        "grpc_port": ask.identity.grpc_port,
        "services": dict(services),
    }
    if not ready:
        away = " and ".join(name for name, well in services.items() if not well)
        body |= {"error": f"{away} does not answer", "code": "service_away", "reason": "SERVICE_AWAY"}
    return answers.answer(body, 200 if ready else 503)


async def catalog(ask: Ask) -> Object:
    return views.catalog(await ask.planner(ask.plans.GetCatalog, planner.GetCatalogRequest()))


async def preparation_options(ask: Ask) -> Object:
    request = planner.GetCatalogRequest()
    return views.preparation_options(await ask.planner(ask.plans.GetCatalog, request))


async def targets(ask: Ask) -> Response:
    """With the registry's revision as the entity tag, which registering by gRPC takes as the expected one."""
    found = await ask.planner(ask.plans.ListTargets, planner.ListTargetsRequest())
    shown: list[Json] = [views.target(item) for item in found.targets]
    return answers.answer({"targets": shown}, headers={"etag": f'"{found.revision}"'})


async def datasets(ask: Ask) -> Object:
    request = planner.ListDatasetsRequest(page_size=ask.number("limit"), page_token=ask.text("after"))
    found = await ask.planner(ask.plans.ListDatasets, request)
    return {"datasets": [views.dataset(item) for item in found.datasets], "next_cursor": cursor(found.next_page_token)}


async def dataset_selection(ask: Ask) -> Object:
    request = planner.GetDatasetSelectionRequest(profile=ask.text("profile"))
    return views.selection(await ask.planner(ask.plans.GetDatasetSelection, request))


async def compose_datasets(ask: Ask) -> Object:
    timeout_s = FREEZE_TIMEOUT_S
    found = await ask.planner(ask.plans.ComposeDatasets, ask.body, timeout_s)
    return {"dataset": views.dataset(found)}


async def dataset(ask: Ask) -> Object:
    request = planner.GetDatasetRequest(id=ask.ids["dataset_id"])
    found = await ask.planner(ask.plans.GetDataset, request)
    known = await ask.planner(ask.plans.GetCatalog, planner.GetCatalogRequest())
    return views.dataset_detail(found, {item.id: item.title for item in known.benchmarks})


async def dataset_cases(ask: Ask) -> Object:
    request = planner.ListDatasetCasesRequest(
        dataset_id=ask.ids["dataset_id"],
        page_size=ask.number("limit"),
        cursor=ask.number("cursor"),
        benchmark=ask.text("benchmark"),
        category=ask.text("category"),
        query=ask.text("q"),
        case_id=ask.text("case_id"),
    )
    found = await ask.planner(ask.plans.ListDatasetCases, request)
    return {**views.plain(found), "cases": [views.dataset_case(item) for item in found.cases]}


async def preparations(ask: Ask) -> Object:
    request = planner.ListDatasetPreparationsRequest(page_size=ask.number("limit"), page_token=ask.text("after"))
    found = await ask.planner(ask.plans.ListDatasetPreparations, request)
    shown: list[Json] = [views.preparation(item) for item in found.preparations]
    return {"preparations": shown, "next_cursor": cursor(found.next_page_token)}


async def create_preparation(ask: Ask) -> Object:
    check_preparation(ask.body, ask)
    found = await ask.planner(ask.plans.CreateDatasetPreparation, ask.body)
    return {"preparation": views.preparation(found)}


def check_preparation(request: planner.CreateDatasetPreparationRequest, ask: Ask) -> None:
    """A source path is read on the planner's machine, by the planner's rights."""
    if request.source_path:
        check_operator(ask.actor, "source_path")


async def preparation(ask: Ask) -> Object:
    request = planner.GetDatasetPreparationRequest(id=ask.ids["preparation_id"])
    found = await ask.planner(ask.plans.GetDatasetPreparation, request)
    return {"preparation": views.preparation(found)}


async def check_plan(ask: Ask) -> Object:
    plan = await ask.planner(ask.plans.FreezePlan, ask.body, FREEZE_TIMEOUT_S)
    if plan.ByteSize() > BIG_BYTES:
        return await asyncio.to_thread(views.plan_checked, plan)
    return views.plan_checked(plan)


def _preparation_body(body: Object) -> planner.CreateDatasetPreparationRequest:
    """Released clients name one `benchmark`, or several `benchmarks`."""
    known = planner.CreateDatasetPreparationRequest.DESCRIPTOR.fields_by_name
    unknown(body, [*known, "benchmark"], "field")
    if ("benchmark" in body) == ("benchmarks" in body):
        raise InvalidInput("MISSING_FIELD", "give either benchmark or benchmarks", field="benchmark")
    rest = {key: value for key, value in body.items() if key != "benchmark"}
    if "benchmark" in body:
        rest["benchmarks"] = [body["benchmark"]]
    return fill(planner.CreateDatasetPreparationRequest(), rest)


def _plan_body(body: Object) -> planner.FreezePlanRequest:
    """Either a manifest, or an object that holds one and nothing else."""
    if "manifest" not in body:
        return planner.FreezePlanRequest(manifest=to_value(body))
    unknown(body, ["manifest"], "field")
    check_required(body, ["manifest"])
    if not isinstance(body["manifest"], dict):
        raise InvalidInput("BAD_TYPE", f"manifest is {kind_of(body['manifest'])}; expected an object", field="manifest")
    return planner.FreezePlanRequest(manifest=to_value(body["manifest"]))


COMPOSE = same_fields(planner.ComposeDatasetsRequest, required=("dataset_ids",))
PREPARE = Body(
    message=planner.CreateDatasetPreparationRequest,
    make=_preparation_body,
    extra={"benchmark": {**TEXT, "description": "One benchmark; instead of `benchmarks`."}},
)
PLAN = Body(
    message=planner.FreezePlanRequest,
    make=_plan_body,
    carries_plan=True,
    schema={"type": "object", "description": "A manifest, or an object with nothing but `manifest`."},
)
HEALTH = record(
    version=TEXT,
    status={"enum": ["ready", "unavailable"]},
    store_id=TEXT,
    grpc_port=INTEGER,
    services=mapped(BOOLEAN),
)
CHECKED_PLAN = record(
    manifest=ref("Manifest"),
    plan_sha256=TEXT,
    case_sha256=TEXT,
    total=INTEGER,
    case_count=INTEGER,
    case_counts=mapped(INTEGER),
    worst_case_cost_usd=nullable({"type": "number"}),
    worst_case_gaps=listed(ref(plan_pb2.SpendGap)),
    most_calls=INTEGER,
    status={"const": "validated"},
    model_requests=NO_MODEL_REQUESTS,
)
_LIMIT_500 = Param("limit", "int", "Most to return.", 1, 500, default=500)
_LIMIT_100 = Param("limit", "int", "Most to return.", 1, 100, default=100)

ROUTES = [
    Route(
        method="GET",
        path="/health",
        about="Says whether the service and what stands behind it are ready; 503 when they are not.",
        answer=health,
        shows=HEALTH,
    ),
    Route(
        method="GET",
        path="/catalog",
        about="Gives the benchmarks, profiles and modes.",
        answer=catalog,
        shows=ref(planner.Catalog),
    ),
    Route(
        method="GET",
        path="/targets",
        about="Lists registered targets as manifests write them.",
        answer=targets,
        shows=record(targets=listed(ref("ManifestTarget"))),
    ),
    Route(
        method="GET",
        path="/datasets",
        about="Lists frozen datasets, newest first.",
        answer=datasets,
        params=(AFTER, _LIMIT_500),
        shows=record(datasets=listed(ref(planner.Dataset)), next_cursor=nullable(TEXT)),
    ),
    Route(
        method="GET",
        path="/datasets/selection",
        about="Says, by benchmark, which dataset of a profile would be used.",
        answer=dataset_selection,
        params=(Param("profile", "text", "The profile.", choices=PROFILES, required=True),),
        shows=ref(planner.DatasetSelection),
    ),
    Route(
        method="POST",
        path="/datasets/compose",
        about="Joins datasets into one.",
        answer=compose_datasets,
        body=COMPOSE,
        shows=record(dataset=ref(planner.Dataset)),
    ),
    Route(
        method="GET",
        path="/datasets/{dataset_id}",
        about="Gives one dataset with its counts.",
        answer=dataset,
        shows=ref("DatasetDetail"),
    ),
    Route(
        method="GET",
        path="/datasets/{dataset_id}/cases",
        about="Lists a dataset's questions, without answers.",
        answer=dataset_cases,
        params=(
            Param("cursor", "int", "Offset of the first case.", high=10**9, default=0),
            Param("limit", "int", "Most to return.", 1, 100, default=25),
            Param("benchmark", "text", "Only this benchmark.", high=200),
            Param("category", "text", "Only this category.", high=200),
            Param("q", "text", "Only cases whose text holds this.", high=200),
            Param("case_id", "text", "Only the case with this id.", high=500),
        ),
        shows=ref(planner.ListDatasetCasesResponse),
    ),
    Route(
        method="GET",
        path="/dataset-preparations",
        about="Lists preparation jobs, newest first.",
        answer=preparations,
        params=(AFTER, _LIMIT_100),
        shows=record(preparations=listed(ref(planner.DatasetPreparation)), next_cursor=nullable(TEXT)),
    ),
    Route(
        method="POST",
        path="/dataset-preparations",
        about="Starts preparing datasets in the background.",
        answer=create_preparation,
        body=PREPARE,
        status=202,
        shows=record(preparation=ref(planner.DatasetPreparation)),
    ),
    Route(
        method="GET",
        path="/dataset-preparations/options",
        about="Says what can be prepared.",
        answer=preparation_options,
        shows=record(
            benchmarks=listed(
                record(
                    id=TEXT,
                    name=TEXT,
                    profiles=mapped(INTEGER),
                    source_url=TEXT,
                    revision=TEXT,
                    access_note=TEXT,
                    dependencies=listed(TEXT),
                    available=BOOLEAN,
                )
            )
        ),
    ),
    Route(
        method="GET",
        path="/dataset-preparations/{preparation_id}",
        about="Gives one preparation job.",
        answer=preparation,
        shows=record(preparation=ref(planner.DatasetPreparation)),
    ),
    Route(
        method="POST",
        path="/plans",
        about="Checks a manifest and freezes it. The body is the manifest itself, or an object that holds it.",
        answer=check_plan,
        body=PLAN,
        shows=CHECKED_PLAN,
    ),
]
