"""The routes of the loop: replays, candidate plans, experiments, recipes; each answer by the API document."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from srbench.v1 import replay_pb2
from srbench_gateway import openapi
from srbench_gateway.app import TABLE

V1 = "/api/sr-bench/v1"
DOCUMENT = openapi.document(TABLE)
MANIFEST = {"version": "sr-bench-1.0", "name": "n", "dataset": {"path": "p"}}
EXPERIMENT = "exp-" + "a" * 32


def fits(answer: Any, method: str, path: str) -> Any:
    described = DOCUMENT["paths"][V1 + path][method]["responses"][str(answer.status_code)]
    schema = described["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(answer.json())
    return answer.json()


@pytest.fixture
async def run_id(stand: Any) -> str:
    started = await stand.http.post(V1 + "/runs", json={"manifest": MANIFEST, "idempotency_key": "k"})
    return str(started.json()["id"])


async def test_a_replay_is_created_and_its_key_may_be_left_out(stand: Any, run_id: str) -> None:
    body = {"baseline_run_id": run_id, "preview_run_id": run_id}
    answer = await stand.http.post(V1 + "/replays", json=body)
    assert answer.status_code == 201
    assert fits(answer, "post", "/replays")["id"] == run_id
    assert len(stand.planner.requests[-1].idempotency_key) == 32 or stand.planner.requests[-2].idempotency_key


async def test_a_refused_replay_lists_every_reason_by_case(stand: Any, run_id: str) -> None:
    stand.planner.reasons = [
        replay_pb2.ReplayRejection(code="state_dependent_preview", message="s", case_id="c1", target_id="r"),
        replay_pb2.ReplayRejection(code="partial_matrix", message="p"),
    ]
    answer = await stand.http.post(V1 + "/replays", json={"baseline_run_id": run_id, "preview_run_id": run_id})
    assert answer.status_code == 400
    body = answer.json()
    assert (body["code"], body["reason"], body["model_requests"]) == ("replay_ineligible", "REPLAY_INELIGIBLE", 0)
    assert body["reasons"] == [
        {"code": "state_dependent_preview", "message": "s", "case_id": "c1", "target_id": "r"},
        {"code": "partial_matrix", "message": "p", "case_id": None, "target_id": None},
    ]


async def test_a_replay_of_no_run_is_404_and_one_without_ids_is_400(stand: Any) -> None:
    missing = await stand.http.post(V1 + "/replays", json={"baseline_run_id": "run-x", "preview_run_id": "run-y"})
    assert (missing.status_code, missing.json()["reason"]) == (404, "NO_SUCH_RUN")
    empty = await stand.http.post(V1 + "/replays", json={"baseline_run_id": "run-x"})
    assert (empty.status_code, empty.json()["reason"]) == (400, "MISSING_FIELD")


async def test_replay_options_are_baselines_or_the_options_of_one(stand: Any, run_id: str) -> None:
    every = fits(await stand.http.get(V1 + "/replay-options"), "get", "/replay-options")
    assert [row["id"] for row in every["baselines"]] == [run_id]
    assert (every["baseline"], every["empty_reason"], every["model_requests"]) == (None, None, 0)
    one = fits(
        await stand.http.get(V1 + "/replay-options", params={"baseline_run_id": run_id, "limit": 25}),
        "get",
        "/replay-options",
    )
    assert one["baseline"]["id"] == run_id
    assert one["empty_reason"] == "no_compatible_saved_runs"
    assert (await stand.http.get(V1 + "/replay-options", params={"limit": 26})).status_code == 400


async def test_a_candidate_plan_is_shown_as_a_checked_plan(stand: Any, run_id: str) -> None:
    answer = await stand.http.post(
        f"{V1}/runs/{run_id}/candidate-plan", json={"target_ids": ["r"], "mode": "preview", "experiment": None}
    )
    shown = fits(answer, "post", "/runs/{run_id}/candidate-plan")
    assert shown["manifest"]["baseline_run_id"] == run_id
    assert stand.planner.requests[-1].mode == "preview"
    wrong = await stand.http.post(f"{V1}/runs/{run_id}/candidate-plan", json={"targets": ["r"]})
    assert (wrong.status_code, wrong.json()["reason"]) == (400, "UNKNOWN_FIELD")


async def test_the_life_of_an_experiment(stand: Any, run_id: str) -> None:
    made = await stand.http.post(V1 + "/experiments", json={"name": "shorter prompts", "idempotency_key": "e1"})
    assert made.status_code == 201
    assert fits(made, "post", "/experiments")["id"] == EXPERIMENT
    attached = await stand.http.post(
        f"{V1}/experiments/{EXPERIMENT}/runs", json={"run_id": run_id, "role": "baseline", "hypothesis": None}
    )
    member = fits(attached, "post", "/experiments/{experiment_id}/runs")
    assert (member["run_id"], member["role"], member["hypothesis"]) == (run_id, "baseline", None)
    listed = fits(await stand.http.get(V1 + "/experiments"), "get", "/experiments")
    assert (len(listed["experiments"]), listed["has_more"], listed["next_cursor"]) == (1, False, None)
    runs = fits(await stand.http.get(f"{V1}/experiments/{EXPERIMENT}/runs"), "get", "/experiments/{experiment_id}/runs")
    assert [item["run_id"] for item in runs["members"]] == [run_id]
    refused = await stand.http.delete(f"{V1}/experiments/{EXPERIMENT}")
    assert (refused.status_code, refused.json()["code"]) == (409, "experiment_active_runs")
    await stand.http.post(f"{V1}/runs/{run_id}/cancel")
    gone = await stand.http.delete(f"{V1}/experiments/{EXPERIMENT}")
    receipt = fits(gone, "delete", "/experiments/{experiment_id}")
    assert [receipt[name] for name in ("run_count", "unlinked_runs", "runs_deleted", "deleted")] == [1, 1, 0, True]
    assert (await stand.http.get(f"{V1}/experiments/{EXPERIMENT}")).status_code == 404


async def test_recipes_are_listed_and_downloaded_and_never_borrowed(stand: Any, run_id: str) -> None:
    listed = fits(await stand.http.get(f"{V1}/runs/{run_id}/recipes"), "get", "/runs/{run_id}/recipes")["recipes"]
    assert [(item["target_id"], item["status"], item["reason"]) for item in listed] == [
        ("r/1", "captured", None),
        ("other", "unavailable", "not_requested"),
    ]
    assert "document" not in listed[0]["recipe"]
    answer = await stand.http.get(f"{V1}/runs/{run_id}/recipes/download", params={"target_id": "r/1"})
    assert answer.headers["content-disposition"] == f'attachment; filename="{run_id}-r_1-recipe.json"'
    assert answer.json()["routing"] == {"url": "<redacted>"}
    assert answer.json()["captured_at"] == 1_700_000_003
    none = await stand.http.get(f"{V1}/runs/{run_id}/recipes/download", params={"target_id": "other"})
    assert (none.status_code, none.json()["reason"]) == (404, "RECIPE_UNAVAILABLE")


async def test_released_clients_page_experiments_by_integers_from_zero(stand: Any) -> None:
    names = ["one", "two", "three"]
    for name in names:
        made = await stand.http.post(V1 + "/experiments", json={"name": name, "idempotency_key": None})
        assert made.status_code == 201, made.text
    assert len(set(stand.planner.experiment_keys)) == len(names)
    after: int | None = 0
    seen = []
    while after is not None:
        page = fits(await stand.http.get(f"{V1}/experiments?after={after}&limit=2"), "get", "/experiments")
        seen += [one["name"] for one in page["experiments"]]
        after = page["next_cursor"]
        assert page["has_more"] is (after is not None)
    assert seen == names
    wrong = await stand.http.get(f"{V1}/experiments?after=WzBd")
    assert (wrong.status_code, wrong.json()["reason"]) == (400, "BAD_PARAMETER")
