"""The API document, derived from the protos and the table of routes by the rules that make the answers."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import metadata, resources
from typing import Any

import orjson
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import (
    comparison_pb2,
    experiment_pb2,
    judging_pb2,
    plan_pb2,
    power_pb2,
    price_estimate_pb2,
    recipe_pb2,
    report_pb2,
    routing_flow_pb2,
    run_times_pb2,
    target_pb2,
)
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import recovery_service_pb2 as recovery
from srbench_kit.jsonview import enum_name, json_name
from srbench_kit.views import CALL_TEXTS, NULL_WHEN_EMPTY, SUMMARY

from srbench_gateway.params import Param
from srbench_gateway.routes import MAX_ID_CHARS, PREFIX, Body, Route, Table
from srbench_gateway.schema import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NO_MODEL_REQUESTS,
    NUMBER,
    TEXT,
    Schema,
    listed,
    mapped,
    nullable,
    record,
    ref,
)

Properties = dict[str, Any]
_MESSAGES: tuple[type[Message], ...] = (
    planner.Catalog,
    planner.Dataset,
    planner.DatasetSelection,
    planner.ListDatasetCasesResponse,
    planner.DatasetPreparation,
    planner.Run,
    planner.RunEvent,
    planner.Cell,
    planner.ExperimentMember,
    experiment_pb2.Experiment,
    experiment_pb2.DeletedExperiment,
    recipe_pb2.RunRecipe,
    plan_pb2.Limits,
    accounting.Outcome,
    accounting.Call,
    accounting.Spend,
    recovery.RecoveryPlan,
    report_pb2.Report,
    price_estimate_pb2.PriceEstimate,
    routing_flow_pb2.RoutingFlow,
    run_times_pb2.RunTimes,
    target_pb2.Target,
    comparison_pb2.ComparisonReport,
    comparison_pb2.ComparePairsResponse,
    comparison_pb2.ListComparisonOptionsResponse,
    comparison_pb2.Regrading,
    comparison_pb2.ExportHeader,
    comparison_pb2.ExportTarget,
    comparison_pb2.AccountingCorrection,
    judging_pb2.Judging,
    power_pb2.PowerEstimate,
)
_VALUE, _TIME, _DURATION = "srbench.v1.Value", "google.protobuf.Timestamp", "google.protobuf.Duration"
_INTEGERS = frozenset({FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64})
_FLOATS = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})


@cache
def encoded(table: Table) -> bytes:
    """The document as JSON."""
    return orjson.dumps(document(table), option=orjson.OPT_INDENT_2)


def document(table: Table) -> Schema:
    """The OpenAPI 3.1 document of all routes."""
    paths: dict[str, Any] = {}
    for route in table.routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sr-bench",
            "version": metadata.version("sr-bench"),
            "description": "Compares a Mixture-of-Models router with single models on frozen tasks. "
            "Unknown numbers are null. Money is in US dollars, times are seconds since 1970.",
        },
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def components() -> dict[str, Any]:
    """All named schemas: messages by the rules, then what views make of them."""
    found: dict[str, Any] = {}
    for message in _MESSAGES:
        _collect(message.DESCRIPTOR, found)
    _apply_views(found)
    return dict(sorted(found.items()))


def _collect(message: Any, found: dict[str, Any]) -> None:
    if message.name in found:
        return
    found[message.name] = _message(message)
    for field in message.fields:
        for inner in _inner(field):
            _collect(inner, found)


def _inner(field: Any) -> list[Any]:
    """The messages of ours that `field` refers to."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        message = message.fields_by_name["value"].message_type
    ours = message is not None and message.full_name not in (_VALUE, _TIME, _DURATION)
    return [message] if ours else []


def _message(message: Any) -> Schema:
    blanks = NULL_WHEN_EMPTY.get(message.full_name, frozenset())
    properties: Properties = {}
    for field in message.fields:
        schema = _field(field)
        if json_name(field) in blanks:
            schema = nullable(schema)
        properties[json_name(field)] = _described(schema, f"{message.full_name}.{field.name}")
    return _described(record(**properties), message.full_name)


def _field(field: Any) -> Schema:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return mapped(_single(message.fields_by_name["value"]))
    single = _single(field)
    if field.is_repeated:
        return listed(single)
    return nullable(single) if field.has_presence else single


def _single(field: Any) -> Schema:
    if field.message_type is not None:
        match field.message_type.full_name:
            case "srbench.v1.Value":
                return {}
            case "google.protobuf.Timestamp" | "google.protobuf.Duration":
                return NUMBER
            case _:
                return ref(field.message_type.name)
    if field.enum_type is not None:
        names: list[Any] = [enum_name(field.enum_type, number) for number in sorted(field.enum_type.values_by_number)]
        return {"type": ["string", "null"], "enum": [*names[1:], None]}
    if field.name.endswith("_picodollars") or field.cpp_type in _FLOATS:
        return NUMBER
    if field.cpp_type in _INTEGERS:
        return INTEGER
    return {"type": "boolean"} if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else TEXT


def _apply_views(found: dict[str, Any]) -> None:
    """The differences that `views` makes."""

    def derived(name: str, without: tuple[str, ...] = (), **extra: Any) -> Schema:
        properties = {key: value for key, value in found[name]["properties"].items() if key not in without} | extra
        about = {key: found[name][key] for key in ("description",) if key in found[name]}
        return about | record(**properties)

    found["Profile"] = derived("Profile", purpose=TEXT)
    found["SelectedBenchmark"] = derived("SelectedBenchmark", id=TEXT, reason_code=nullable(TEXT))
    found["DatasetSelection"] = derived("DatasetSelection", model_requests=NO_MODEL_REQUESTS)
    found["DatasetCase"] = derived("DatasetCase", messages=listed(record(role=TEXT, content={})))
    found["Dataset"] = derived("Dataset", sources=mapped(ref("DatasetSource")))
    found["DatasetDetail"] = derived(
        "Dataset",
        benchmarks=listed(record(id=TEXT, title=TEXT, count=INTEGER)),
        provenance=record(sha256=TEXT, seed=INTEGER, selection=TEXT, sources=listed(ref("DatasetSource"))),
    )
    found["Run"] = derived("Run", ("plan",), plan_sha256=TEXT, manifest=ref("Manifest"))
    found["RunRow"] = derived("Run", manifest=ref("ManifestSummary"), manifest_summary={"const": True})
    found["RunOption"] = record(**found["RunRow"]["properties"], run_id=TEXT, name=TEXT, profile=TEXT, case_count=INTEGER)
    found["ExperimentMember"] = derived(
        "ExperimentMember", run=ref("RunRow"), run_id=TEXT, hypothesis=nullable(TEXT), linked_at=nullable(NUMBER)
    )
    found["AttachedRun"] = derived("Experiment", **found["ExperimentMember"]["properties"])
    found["DeletedExperiment"] = derived(
        "DeletedExperiment",
        deleted={"const": True},
        unlinked_runs=INTEGER,
        runs_deleted=INTEGER,
        model_requests=NO_MODEL_REQUESTS,
    )
    found["Recipe"] = _recipe(found)
    found["RunEvent"] = derived("RunEvent", at=nullable(NUMBER), kind=TEXT)
    found["CallRow"] = derived("Call", CALL_TEXTS)
    found["ManifestTarget"] = _manifest_target(found)
    found["ManifestSummary"] = _manifest_summary(found)
    found["Manifest"] = _manifest(found)
    found["PairPage"] = derived(
        "ComparePairsResponse",
        ("next_page_token",),
        limit=INTEGER,
        next_cursor=nullable(TEXT),
        model_requests=NO_MODEL_REQUESTS,
    )
    found["ComparisonOptions"] = derived("ListComparisonOptionsResponse", ("next_page_token",), next_cursor=nullable(TEXT))
    found["Export"] = derived("ExportHeader", cases=listed(_exported_case()))
    found["Error"] = _error()
    for never_shown in (
        *("Plan", "Target", "Price", "ChatMessage"),
        *("ComparePairsResponse", "ListComparisonOptionsResponse", "ExportHeader"),
    ):
        del found[never_shown]


def _exported_case() -> Schema:
    """A case as it stands in its dataset, with all answers to it."""
    return {
        "type": "object",
        "properties": {"id": TEXT, "targets": listed(ref("ExportTarget"))},
        "required": ["id", "targets"],
    }


def _recipe(found: dict[str, Any]) -> Schema:
    """A captured recipe: what it is, beside the parts of the configuration where the document is given."""
    kept = {key: value for key, value in found["Recipe"]["properties"].items() if key not in ("document", "capture_at")}
    about = {"target_id": TEXT, "config_hash": TEXT, "captured_at": nullable(NUMBER)}
    schema = record(**about, **kept, redacted=BOOLEAN, source=TEXT, scope=TEXT)
    return {**schema, "additionalProperties": True}


def _manifest_target(found: dict[str, Any]) -> Schema:
    """A target as manifests write it: what is not set is left out, prices are per million tokens."""
    kinds = ("input", "cached_input", "cache_write", "output")
    price = record(**dict.fromkeys(kinds, NUMBER))
    price["properties"] = {**dict.fromkeys(kinds, NUMBER), "cache_write_1h": NUMBER}
    properties = {**found["Target"]["properties"], "prices": mapped(price)}
    return {"type": "object", "properties": properties, "required": ["id", "kind", "model"], "additionalProperties": False}


def _manifest_summary(found: dict[str, Any]) -> Schema:
    """The short members of a manifest, from the plan that was made of it."""
    plan: Properties = {key: value for key, value in found["Plan"]["properties"].items() if key in SUMMARY}
    summary = record(**plan, targets=listed(ref("ManifestTarget")), limits=ref("Limits"))
    properties: Properties = summary["properties"]
    return summary | {"properties": properties | {"dataset": record(sha256=TEXT, case_count=INTEGER)}}


def _manifest(found: dict[str, Any]) -> Schema:
    """A frozen manifest: what planning always writes, beside whatever else its author wrote."""
    summary = found["ManifestSummary"]["properties"]
    never_in_it = ("plan_sha256", "case_sha256", "custom_subset", "dataset")
    members: Properties = {key: value for key, value in summary.items() if key not in never_in_it}
    digests = {"plan_sha256": TEXT, "case_sha256": TEXT, "dataset": {"type": "object", "properties": {"sha256": TEXT}}}
    return {"type": "object", "properties": members | digests, "required": ["name", "mode", "targets", "limits"]}


def _error() -> Schema:
    schema = record(error=TEXT, code=TEXT, reason=TEXT)
    schema["description"] = "Why a request failed: a sentence, and a stable reason (`code` is the same in small letters)."
    extra: Properties = {
        "facts": mapped(TEXT),
        "error_id": TEXT,
        "dispatch_started": {"type": "boolean"},
        "model_requests": INTEGER,
        "reasons": listed({"type": "object"}),
    }
    properties: Any = schema["properties"]
    return schema | {"properties": properties | extra}


def _operation(route: Route) -> Schema:
    named = [segment[1:-1] for segment in route.segments if segment.startswith("{")]
    parameters: list[Any] = [_path_parameter(name) for name in named]
    parameters += [_query_parameter(param) for param in route.params]
    failed: Schema = {"description": "The request failed.", "content": {"application/json": {"schema": ref("Error")}}}
    operation: Schema = {
        "operationId": route.answer.__name__.strip("_"),
        "summary": route.about,
        "parameters": parameters,
        "responses": {
            str(route.status): {"description": "Success.", "content": {route.media_type: {"schema": route.shows}}},
            "default": failed,
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.body.may_be_empty,
            "content": {"application/json": {"schema": _body(route.body)}},
        }
    return operation


def _path_parameter(name: str) -> Schema:
    schema: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": MAX_ID_CHARS}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(param: Param) -> Schema:
    schema: Schema
    match param.kind:
        case "int":
            schema = {"type": "integer", "minimum": param.low, "maximum": param.high}
        case "bool":
            schema = {"type": "boolean"}
        case "text":
            schema = {"type": "string", "enum": list(param.choices)} if param.choices else {"type": "string"}
    if param.default is not None:
        schema["default"] = param.default
    return {"name": param.name, "in": "query", "required": param.required, "description": param.about, "schema": schema}


def _body(body: Body[Any]) -> Schema:
    """A body's fields: those of its message, by the rules, none of them required unless said so."""
    if body.schema is not None:
        return body.schema
    message = body.message.DESCRIPTOR
    properties: Properties = {}
    for field in message.fields:
        value = field.message_type is not None and field.message_type.full_name == _VALUE
        schema = ANYTHING if value else _field(field)
        properties[json_name(field)] = _described(schema, f"{message.full_name}.{field.name}")
    return {
        "type": "object",
        "properties": properties | body.extra,
        "required": list(body.required),
        "additionalProperties": False,
    }


def _described(schema: Schema, name: str) -> Schema:
    """`schema` with the comment of the proto."""
    comment = _comments().get(name)
    # Protos count picodollars; what is shown is in US dollars.
    shown = re.sub(r"(?<=_)picodollars", "usd", comment or "").replace("picodollars", "US dollars")
    return {**schema, "description": shown} if shown else schema


@cache
def _comments() -> dict[str, str]:
    text = resources.files("srbench_gateway").joinpath("proto_comments.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return found
