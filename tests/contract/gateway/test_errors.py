"""Each way in which a request can fail: its status, one sentence, a stable reason, nothing of the inside."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from srbench_kit import errors

V1 = "/api/sr-bench/v1"
MANIFEST = {"version": "sr-bench-1.0", "cases": []}


def check(answer: Any, status: int, reason: str) -> dict[str, Any]:
    """The error in `answer`, once it is one sentence with its reason and no stack trace."""
    seen: dict[str, Any] = answer.json()
    assert (answer.status_code, seen["reason"], seen["code"]) == (status, reason, reason.lower()), answer.text
    assert isinstance(seen["error"], str)
    assert 0 < len(seen["error"]) < 400
    assert "Traceback" not in answer.text
    assert "\n" not in seen["error"]
    return seen


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.InvalidInput, 400),
        (errors.NotFound, 404),
        (errors.Conflict, 409),
        (errors.Exhausted, 429),
        (errors.Unreachable, 503),
        (errors.Unauthenticated, 401),
        (errors.Forbidden, 403),
        (errors.DataLoss, 500),
    ],
)
async def test_each_kind_of_error_has_its_status_and_keeps_reason_and_facts(stand: Any, kind: Any, status: int) -> None:
    stand.planner.failure = kind("THE_REASON", "one sentence for people", field="seed")
    seen = check(await stand.http.get(V1 + "/catalog"), status, "THE_REASON")
    assert seen["error"] == "one sentence for people"
    assert seen["facts"] == {"field": "seed"}


async def test_a_bug_in_a_service_shows_an_id_that_stands_in_the_log(stand: Any, caplog: pytest.LogCaptureFixture) -> None:
    stand.planner.failure = RuntimeError("secret path /home/somebody and sk-abcdefghijkl")
    with caplog.at_level(logging.ERROR):
        seen = check(await stand.http.get(V1 + "/catalog"), 500, "INTERNAL")
    assert "secret" not in json.dumps(seen)
    assert seen["error_id"] in caplog.text


async def test_a_bug_in_the_gateway_shows_an_id_too(
    stand: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_message: Any) -> Any:
        raise ZeroDivisionError("the inside")

    monkeypatch.setattr("srbench_kit.views.catalog", broken)
    with caplog.at_level(logging.ERROR):
        answer = await stand.http.get(V1 + "/catalog")
    seen = check(answer, 500, "INTERNAL")
    assert "the inside" not in answer.text
    assert seen["error_id"] in caplog.text
    assert (await stand.http.get(V1 + "/targets")).status_code == 200


@pytest.mark.parametrize("body", [rb'{"name": "a\ud800"}', rb'{"a\udc00": 1}', rb'{"manifest": {"x": ["\ud800"]}}'])
async def test_half_a_surrogate_pair_is_refused_and_never_replaced(stand: Any, body: bytes) -> None:
    for path in ("/plans", "/runs"):
        answer = await stand.http.post(V1 + path, content=body, headers={"content-type": "application/json"})
        check(answer, 400, "BAD_TEXT")
    assert stand.planner.requests == []


async def test_a_service_that_is_away_is_503_and_its_address_stays_inside(stand: Any) -> None:
    port = stand.planner_server.port
    await stand.planner_server.drain(0)
    answer = await stand.http.get(V1 + "/catalog")
    seen = check(answer, 503, "SERVICE_AWAY")
    assert seen["error"] == "the planner does not answer; try again later"
    assert str(port) not in answer.text
    assert answer.headers["retry-after"] == "1"


async def test_a_service_that_is_too_slow_is_504(stand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srbench_gateway.planning_routes.FREEZE_TIMEOUT_S", 0.2)
    stand.planner.pause_s = 30
    answer = await stand.http.post(V1 + "/plans", json=MANIFEST)
    assert "planner did not answer in time" in check(answer, 504, "DEADLINE_EXCEEDED")["error"]


async def test_a_start_without_an_answer_says_where_to_look_and_gives_its_key(
    stand: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srbench_gateway.run_routes.START_TIMEOUT_S", 0.2)
    stand.planner.pause_s = 30
    answer = await stand.http.post(V1 + "/runs", json={"manifest": MANIFEST})
    seen = check(answer, 504, "DEADLINE_EXCEEDED")
    assert "look at the list of runs before sending it again" in seen["error"]
    assert seen["facts"]["idempotency_key"] == stand.planner.requests[-1].idempotency_key


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        V1,
        V1 + "/nonesuch",
        V1 + "/runs/a/b/c/d",
        V1 + "/runs//results",
        V1 + "/runs/a%2Fb",
        V1 + "/runs/a%00b",
        V1 + "/runs/" + "x" * 129,
        V1 + "/experimentz",
        V1 + "/runs/run-1/degrade",
        "/api/sr-bench/v2/runs",
    ],
)
async def test_unknown_routes_are_404_in_json(stand: Any, path: str) -> None:
    check(await stand.http.get(path), 404, "NO_SUCH_ROUTE")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/runs", "GET, POST, HEAD"),
        ("PUT", "/runs", "GET, POST, HEAD"),
        ("PATCH", "/catalog", "GET, HEAD"),
        ("OPTIONS", "/runs", "GET, POST, HEAD"),
        ("GET", "/plans", "POST"),
        ("POST", "/runs/run-1", "GET, HEAD"),
        ("GET", "/runs/run-1/cancel", "POST"),
        ("POST", "/datasets/selection", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405_and_says_which_are_right(stand: Any, method: str, path: str, allow: str) -> None:
    answer = await stand.http.request(method, V1 + path)
    check(answer, 405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == allow


async def test_deleting_runs_with_a_body_creates_nothing(stand: Any) -> None:
    answer = await stand.http.request("DELETE", V1 + "/runs", json={"manifest": MANIFEST, "idempotency_key": "k"})
    check(answer, 405, "METHOD_NOT_ALLOWED")
    assert stand.planner.runs == {}


async def test_things_that_are_not_there_are_404_with_their_own_reason(stand: Any) -> None:
    run_id = await stand.run()
    for path, reason in (
        ("/runs/run-none", "NO_SUCH_RUN"),
        ("/runs/run-none/results", "NO_SUCH_RUN"),
        ("/runs/run-none/report", "NO_SUCH_RUN"),
        ("/runs/run-none/watch", "NO_SUCH_RUN"),
        (f"/runs/{run_id}/calls/call-none", "NO_SUCH_CALL"),
        (f"/runs/{run_id}/calls/call-none/evidence", "NO_EVIDENCE"),
        ("/datasets/none", "NO_SUCH_DATASET"),
        ("/dataset-preparations/none", "NO_SUCH_PREPARATION"),
    ):
        check(await stand.http.get(V1 + path), 404, reason)
    assert "ListOutcomesRequest" not in stand.accounting.asked


@pytest.mark.parametrize(
    ("query", "reason", "words"),
    [
        ("limit=0", "BAD_PARAMETER", "limit is '0'; expected a whole number from 1 to 500"),
        ("limit=501", "BAD_PARAMETER", "from 1 to 500"),
        ("limit=-1", "BAD_PARAMETER", "from 1 to 500"),
        ("limit=1.5", "BAD_PARAMETER", "from 1 to 500"),
        ("limit=%D9%A1", "BAD_PARAMETER", "from 1 to 500"),
        ("limit=" + "9" * 5000, "BAD_PARAMETER", "from 1 to 500"),
        ("limit=", "BAD_PARAMETER", "from 1 to 500"),
        ("limit=1&limit=2", "REPEATED_PARAMETER", "limit came more than once"),
        ("limt=1", "UNKNOWN_PARAMETER", "did you mean limit?"),
        ("after=1e3", "BAD_PARAMETER", "whole number"),
        ("after=" + str(2**53), "BAD_PARAMETER", "whole number"),
        ("after=77", "BAD_PAGE_TOKEN", "other filters"),
        ("active=yes", "BAD_PARAMETER", "true or false"),
        ("target_id=%FF", "BAD_PARAMETER", "UTF-8"),
        ("target_id=a%00", "BAD_PARAMETER", "NUL"),
        ("target_id=" + "a" * 2049, "BAD_PARAMETER", "at most 2048 characters"),
        ("&".join(f"a{n}=1" for n in range(30)), "BAD_PARAMETER", "at most 20"),
    ],
)
async def test_bad_parameters_are_refused_by_name(stand: Any, query: str, reason: str, words: str) -> None:
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls?{query}")
    assert words in check(answer, 400, reason)["error"]


async def test_a_missing_and_a_wrong_choice_are_refused(stand: Any) -> None:
    check(await stand.http.get(V1 + "/datasets/selection"), 400, "MISSING_PARAMETER")
    answer = await stand.http.get(V1 + "/datasets/selection?profile=huge")
    assert "smoke, quick, standard" in check(answer, 400, "BAD_PARAMETER")["error"]


@pytest.mark.parametrize(
    ("path", "body", "reason", "words"),
    [
        ("/runs", {"manifest": MANIFEST, "idempotencyKey": "k"}, "UNKNOWN_FIELD", "did you mean idempotency_key?"),
        ("/runs", {"idempotency_key": "k"}, "MISSING_FIELD", "manifest is missing"),
        ("/runs", {"manifest": None}, "MISSING_FIELD", "manifest is missing"),
        ("/runs", {"manifest": [1]}, "BAD_TYPE", "manifest is a list; expected an object"),
        ("/runs", {"manifest": "x"}, "BAD_TYPE", "manifest is text; expected an object"),
        ("/runs", {"manifest": MANIFEST, "idempotency_key": ""}, "BAD_IDEMPOTENCY_KEY", "0 characters; expected 1 to 200"),
        ("/runs", {"manifest": MANIFEST, "idempotency_key": "k" * 201}, "BAD_IDEMPOTENCY_KEY", "201 characters"),
        ("/runs", {"manifest": MANIFEST, "idempotency_key": ["k"]}, "BAD_TYPE", "idempotency_key is a list; expected text"),
        ("/runs", {"manifest": MANIFEST, "idempotency_key": 5}, "BAD_TYPE", "idempotency_key is a number; expected text"),
        ("/runs", {"manifest": MANIFEST, "idempotency_key": "a\0b"}, "BAD_TEXT", "NUL"),
        ("/runs", {"manifest": {}}, "BAD_VERSION", "version"),
        ("/plans", {"manifest": MANIFEST, "dry": True}, "UNKNOWN_FIELD", "known are manifest"),
        ("/plans", {"manifest": 1}, "BAD_TYPE", "manifest is a number"),
        ("/datasets/compose", {"dataset_ids": "d"}, "BAD_TYPE", "dataset_ids is text; expected a list"),
        ("/datasets/compose", {"dataset_ids": ["d", 1]}, "BAD_TYPE", "dataset_ids[1] is a number; expected text"),
        ("/datasets/compose", {"benchmarks": ["d"]}, "MISSING_FIELD", "dataset_ids is missing"),
        ("/dataset-preparations", {}, "MISSING_FIELD", "either benchmark or benchmarks"),
        ("/dataset-preparations", {"benchmark": "a", "benchmarks": ["a"]}, "MISSING_FIELD", "either"),
        ("/dataset-preparations", {"benchmark": ["a"]}, "BAD_TYPE", "benchmarks[0] is a list"),
        ("/dataset-preparations", {"benchmark": "a", "seed": True}, "BAD_TYPE", "seed is true or false; expected a whole"),
        ("/dataset-preparations", {"benchmark": "a", "seed": 1.0}, "BAD_TYPE", "seed is a number; expected a whole number"),
        ("/dataset-preparations", {"benchmark": "a", "seed": 2**63}, "OUT_OF_RANGE", "seed is beyond"),
        ("/dataset-preparations", {"benchmark": "a", "profil": "x"}, "UNKNOWN_FIELD", "did you mean profile?"),
        ("/dataset-preparations", {"benchmark": "nonesuch"}, "NO_SUCH_BENCHMARK", "nonesuch"),
        ("/runs/run-1/cancel", {"force": True}, "UNKNOWN_FIELD", "no field named 'force'"),
    ],
)
async def test_bad_bodies_are_refused_by_field(stand: Any, path: str, body: Any, reason: str, words: str) -> None:
    answer = await stand.http.post(V1 + path, json=body)
    assert words in check(answer, 400, reason)["error"]
    assert stand.planner.runs == {}


async def test_parameters_on_a_post_are_refused(stand: Any) -> None:
    check(await stand.http.post(V1 + "/plans?dry=1", json=MANIFEST), 400, "UNKNOWN_PARAMETER")
