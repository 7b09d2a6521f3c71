"""Which route a request means, who a caller is, and what an error becomes."""

from __future__ import annotations

import orjson
import pytest
from srbench_gateway import answers
from srbench_gateway.app import TABLE
from srbench_gateway.auth import Gate
from srbench_gateway.routes import WrongMethod
from srbench_kit.auth import Actor
from srbench_kit.errors import (
    Conflict,
    Exhausted,
    Forbidden,
    InvalidInput,
    NotFound,
    SrBenchError,
    Unauthenticated,
    Unreachable,
)


@pytest.mark.parametrize(
    ("path", "found", "ids"),
    [
        ("/datasets/selection", "/datasets/selection", {}),
        ("/datasets/abc", "/datasets/{dataset_id}", {"dataset_id": "abc"}),
        ("/dataset-preparations/options", "/dataset-preparations/options", {}),
        ("/runs/r/calls/c/evidence", "/runs/{run_id}/calls/{call_id}/evidence", {"run_id": "r", "call_id": "c"}),
    ],
)
def test_fixed_segments_win_over_named_ones(path: str, found: str, ids: dict[str, str]) -> None:
    route, named = TABLE.find("GET", path)
    assert (route.path, named) == (found, ids)


def test_a_fixed_path_never_falls_back_to_a_named_one_for_another_method() -> None:
    with pytest.raises(WrongMethod) as caught:
        TABLE.find("GET", "/datasets/compose")
    assert caught.value.allowed == ["POST"]


@pytest.mark.parametrize("path", ["", "/", "/runs/", "/runs/a.b/results", "/runs/ä", "/RUNS", "/runs/a b"])
def test_what_cannot_be_an_id_is_no_route(path: str) -> None:
    if path == "/runs/":
        assert TABLE.find("GET", path)[0].path == "/runs"
        return
    with pytest.raises(NotFound):
        TABLE.find("GET", path)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Conflict("IDEMPOTENCY_CONFLICT", ""), 400),
        (Conflict("REVIEWED_PLAN_CHANGED", ""), 400),
        (Conflict("PREPARATION_BUSY", ""), 409),
        (Unreachable("DEADLINE_EXCEEDED", ""), 504),
        (Unreachable("SERVICE_AWAY", ""), 503),
        (Exhausted("ANY", ""), 429),
        (InvalidInput("BODY_TOO_LARGE", ""), 413),
        (SrBenchError("INTERNAL", ""), 500),
    ],
)
def test_each_error_has_one_status(error: SrBenchError, status: int) -> None:
    assert answers.status_of(error) == status


def test_integers_of_any_length_are_written_exactly_also_beside_ready_json() -> None:
    body = {"big": 2**70, "ready": orjson.Fragment(b'{"a":[1]}')}
    assert answers.encode(body) == b'{"big": 1180591620717411303424, "ready": {"a": [1]}}'  # type: ignore[arg-type]


def test_a_gate_without_a_token_takes_callers_for_local() -> None:
    assert Gate("").actor([]) == Actor(id="local", role="local")
    assert Gate("").actor([("authorization", "Bearer whatever")]).role == "local"


def test_a_gate_with_a_token_compares_the_whole_of_it() -> None:
    gate = Gate("secret")
    assert gate.actor([("authorization", "Bearer secret")]).role == "local"
    for given in ("", "secret", "Bearer", "Bearer secre", "Bearer secretx", "Basic secret", "Bearer sécret"):
        with pytest.raises(Unauthenticated):
            gate.actor([("authorization", given)])


def test_a_repeated_header_that_decides_is_refused() -> None:
    twice = [("x-sr-bench-actor-role", "read"), ("x-sr-bench-actor-role", "admin"), ("x-sr-bench-actor-id", "ann")]
    with pytest.raises(Forbidden, match="more than once"):
        Gate("secret").actor([("authorization", "Bearer secret"), *twice])
