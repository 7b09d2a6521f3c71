"""The API document is valid, complete, and tells the truth about the service that serves it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from srbench_gateway import openapi
from srbench_gateway.app import TABLE
from srbench_gateway.routes import PREFIX

ROOT = Path(__file__).parent.parent.parent.parent
DOCUMENT: dict[str, Any] = json.loads(openapi.encoded(TABLE))
OPERATIONS = [(path, method) for path, operations in DOCUMENT["paths"].items() for method in operations]


async def test_the_api_document_is_served(stand: Any) -> None:
    answer = await stand.http.get("/openapi.json")
    assert answer.json() == DOCUMENT


def test_the_api_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_it_has_every_route_under_a_name_of_its_own() -> None:
    assert {(PREFIX + route.path, route.method.lower()) for route in TABLE.routes} == set(OPERATIONS)
    names = [DOCUMENT["paths"][path][method]["operationId"] for path, method in OPERATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "route",
    [
        "get /health",
        "get /catalog",
        "get /targets",
        "get /datasets",
        "get /datasets/selection",
        "post /datasets/compose",
        "get /datasets/{dataset_id}",
        "get /datasets/{dataset_id}/cases",
        "get /dataset-preparations/options",
        "get /dataset-preparations",
        "post /dataset-preparations",
        "get /dataset-preparations/{preparation_id}",
        "post /plans",
        "get /runs",
        "post /runs",
        "get /runs/{run_id}",
        "get /runs/{run_id}/results",
        "get /runs/{run_id}/calls",
        "get /runs/{run_id}/calls/{call_id}",
        "get /runs/{run_id}/events",
        "get /runs/{run_id}/report",
        "post /runs/{run_id}/cancel",
        "post /runs/{run_id}/reconcile-usage",
        "post /runs/{run_id}/regrade",
        "post /runs/{run_id}/export",
        "post /comparisons",
        "get /comparison-options",
    ],
)
def test_it_has_the_routes_of_released_clients(route: str) -> None:
    method, path = route.split()
    assert method in DOCUMENT["paths"][PREFIX + path]


def test_unknown_is_nullable_and_comments_are_descriptions() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["Call"]["properties"]["cost_usd"]["type"] == ["number", "null"]
    assert schemas["Run"]["properties"]["error"]["type"] == ["string", "null"]
    assert schemas["Spend"]["description"] == "A run's money."
    assert schemas["Progress"]["properties"]["interrupted"]["description"].startswith("Cells whose end is unknown")


def test_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    text = json.dumps(DOCUMENT)
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= set(schemas)
    assert set(schemas) == used, "no schema is left over"


def test_the_committed_comments_are_those_of_the_protos() -> None:
    spec = importlib.util.spec_from_file_location("proto_comments", ROOT / "gateway" / "tools" / "proto_comments.py")
    assert spec is not None
    assert spec.loader is not None
    tool: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert json.loads(tool.TARGET.read_text()) == tool.comments(tool.descriptors()), "run `make proto`"


def example(schema: dict[str, Any], data: Any) -> Any:
    """A value of `schema`, or nearly: what a curious client would try."""
    odd = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2))
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if "enum" in schema:
        return data.draw(st.sampled_from(schema["enum"]) | odd)
    match kind:
        case "integer":
            return data.draw(st.integers(schema.get("minimum", -5), min(schema.get("maximum", 5), 5)) | odd)
        case "boolean":
            return data.draw(st.booleans() | odd)
        case "array":
            return [example(schema["items"], data) for _ in range(data.draw(st.integers(0, 2)))]
        case "object":
            names = [name for name in schema.get("properties", {}) if data.draw(st.booleans())]
            return {name: example(schema["properties"][name], data) for name in names} | data.draw(
                st.dictionaries(st.text(max_size=3), odd, max_size=1)
            )
        case _:
            return data.draw(st.text(max_size=5) | odd)


def as_text(value: Any) -> str:
    return json.dumps(value) if not isinstance(value, str) else value


@pytest.mark.parametrize(("path", "method"), [item for item in OPERATIONS if not item[0].endswith("/watch")])
async def test_whatever_is_sent_the_answer_is_one_that_the_document_gives(stand: Any, path: str, method: str) -> None:
    operation = DOCUMENT["paths"][path][method]
    run_id, requests = await stand.run(), []

    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def collect(data: Any) -> None:
        query = {
            parameter["name"]: as_text(example(parameter["schema"], data))
            for parameter in operation["parameters"]
            if parameter["in"] == "query" and (parameter["required"] or data.draw(st.booleans()))
        }
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        known = data.draw(st.booleans())
        requests.append((known, query, None if body is None else example(body, data)))

    collect()
    for known, query, body in requests:
        ids = {"run_id": run_id, "call_id": f"call-{1:032x}", "dataset_id": "d" * 64, "preparation_id": "prep-" + "a" * 32}
        ids["experiment_id"] = "exp-" + "a" * 32
        target = path.format(**(ids if known else dict.fromkeys(ids, "none")))
        answer = await stand.http.request(method, target, params=query, json=body)
        described = operation["responses"].get(str(answer.status_code), operation["responses"]["default"])
        assert answer.status_code < 500, (target, query, body, answer.text)
        kind = answer.headers["content-type"].partition(";")[0]
        schema = described["content"][kind]["schema"]
        if kind == "application/json":
            Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(answer.json())
