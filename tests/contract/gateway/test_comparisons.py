"""Comparisons over HTTP and through the front door: bodies, who sees what, files."""

from __future__ import annotations

import csv
from io import BytesIO
from typing import Any

import grpc
import pyarrow.parquet as parquet
import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import wire
from srbench_kit.errors import Conflict, InvalidInput

V1 = "/api/sr-bench/v1"
TOKEN = "a-token-for-callers-from-outside"


def actor(name: str, role: str) -> dict[str, str]:
    return {"x-sr-bench-actor-id": name, "x-sr-bench-actor-role": role}


async def test_the_released_body_names_one_candidate(stand: Any) -> None:
    base, other = await stand.run(), await stand.run()
    answer = await stand.http.post(V1 + "/comparisons", json={"baseline_run_id": base, "candidate_run_id": other})
    shown = answer.json()
    assert (answer.status_code, shown["candidate_run_id"], shown["margin"]) == (200, other, None)
    assert shown["comparisons"][0]["quality_delta_ci95"] == [-0.1, 0.2]
    assert shown["comparisons"][0]["subject_cost_saving"]["ci95_percent"] is None
    assert shown["candidate_targets"][0]["accuracy_ci95"] is None
    assert shown["model_requests"] == 0


async def test_any_number_of_candidates_and_a_margin(stand: Any) -> None:
    base, *others = [await stand.run() for _ in range(3)]
    body = {"baseline_run_id": base, "candidate_run_ids": others, "margin": 0.02}
    shown = (await stand.http.post(V1 + "/comparisons", json=body)).json()
    assert [one["run_id"] for one in shown["candidates"]] == others
    assert (shown["candidate_run_id"], shown["margin"]) == (None, 0.02)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 400, "MISSING_FIELD"),
        ({"baseline_run_id": "run-1"}, 400, "MISSING_FIELD"),
        ({"candidate_run_id": "run-1"}, 400, "MISSING_FIELD"),
        ({"baseline_run_id": None, "candidate_run_id": "run-1"}, 400, "MISSING_FIELD"),
        ({"baseline_run_id": "run-1", "candidate_run_id": None}, 400, "MISSING_FIELD"),
        ({"baseline_run_id": "run-1", "candidate_run_ids": []}, 400, "MISSING_FIELD"),
        ({"baseline_run_id": "run-1", "candidate_run_id": "a", "candidate_run_ids": ["b"]}, 400, "TOO_MANY_FIELDS"),
        ({"baseline_run_id": 1, "candidate_run_id": "a"}, 400, "BAD_TYPE"),
        ({"baseline_run_id": "run-1", "candidate_run_id": "a", "margin": "wide"}, 400, "BAD_TYPE"),
        ({"baseline_run_id": "run-1", "candidate_run_id": "a", "colour": 1}, 400, "UNKNOWN_FIELD"),
        ({"baseline_run_id": "run-none", "candidate_run_id": "run-none"}, 404, "NO_SUCH_RUN"),
    ],
)
async def test_missing_ids_are_400_and_unknown_runs_404(stand: Any, body: dict[str, Any], status: int, reason: str) -> None:
    answer = await stand.http.post(V1 + "/comparisons", json=body)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert stand.accounting.asked == []


@pytest.mark.parametrize(
    ("error", "status"),
    [(InvalidInput("SAMPLING_DIFFERS", "it differs", reasons="A,B"), 400), (Conflict("RUN_NOT_OVER", "it runs"), 409)],
)
async def test_a_refusal_keeps_its_reason_and_its_facts(stand: Any, error: Any, status: int) -> None:
    base, other = await stand.run(), await stand.run()
    stand.accounting.failure = error
    answer = await stand.http.post(V1 + "/comparisons", json={"baseline_run_id": base, "candidate_run_id": other})
    assert (answer.status_code, answer.json()["reason"]) == (status, error.reason)
    assert answer.json().get("facts", {}) == error.facts


async def test_a_reader_may_compare_own_runs_and_nothing_else(start: Any) -> None:
    stand = await start(TOKEN)
    ann, rita = actor("ann", "write"), actor("rita", "read")
    mine, theirs = await stand.run(**ann), await stand.run(**actor("bob", "write"))
    own = await stand.run(**ann)
    body = {"baseline_run_id": mine, "candidate_run_id": own}
    reader = actor("ann", "read")
    assert (await stand.http.post(V1 + "/comparisons", json=body, headers=reader)).status_code == 200
    assert (await stand.http.post(V1 + "/comparisons", json=body, headers=rita)).status_code == 404
    for pair in ((mine, theirs), (theirs, mine)):
        body = {"baseline_run_id": pair[0], "candidate_run_id": pair[1]}
        answer = await stand.http.post(V1 + "/comparisons", json=body, headers=ann)
        assert (answer.status_code, answer.json()["reason"]) == (404, "NO_SUCH_RUN")
    several = {"baseline_run_id": mine, "candidate_run_ids": [own, theirs]}
    assert (await stand.http.post(V1 + "/comparisons", json=several, headers=ann)).status_code == 404
    assert (await stand.http.post(V1 + "/comparisons", json=several, headers=actor("root", "admin"))).status_code == 200
    for path in ("regrade", "export", "export/parquet", "reconcile-usage"):
        answer = await stand.http.post(f"{V1}/runs/{mine}/{path}", headers=reader)
        assert (answer.status_code, answer.json()["reason"]) == (403, "READ_ONLY"), path
        answer = await stand.http.post(f"{V1}/runs/{theirs}/{path}", headers=ann)
        assert (answer.status_code, answer.json()["reason"]) == (404, "NO_SUCH_RUN"), path


async def test_pairs_and_options_belong_to_owners_too(start: Any) -> None:
    stand = await start(TOKEN)
    ann = actor("ann", "read")
    theirs = await stand.run(**actor("bob", "write"))
    query = {"baseline_run_id": theirs, "candidate_run_id": theirs}
    assert (await stand.http.get(V1 + "/comparisons/pairs", params=query, headers=ann)).status_code == 404
    query = {"baseline_run_id": theirs}
    assert (await stand.http.get(V1 + "/comparison-options", params=query, headers=ann)).status_code == 404
    shown = (await stand.http.get(V1 + "/comparison-options", headers=ann)).json()
    assert (shown["empty_reason"], shown["next_cursor"]) == ("no_compatible_saved_runs", None)


async def test_pairs_have_a_cursor_and_null_where_nothing_is_known(stand: Any) -> None:
    run = await stand.run()
    query = {"baseline_run_id": run, "candidate_run_id": run, "outcome": "win", "limit": 5}
    shown = (await stand.http.get(V1 + "/comparisons/pairs", params=query)).json()
    assert (shown["limit"], shown["next_cursor"], shown["model_requests"]) == (5, None, 0)
    assert shown["pairs"][0]["baseline"]["model"] is None
    bad = await stand.http.get(V1 + "/comparisons/pairs", params={**query, "outcome": "draw"})
    assert (bad.status_code, bad.json()["reason"]) == (400, "BAD_PARAMETER")


async def test_a_comparison_is_a_file_whose_intervals_are_named(stand: Any) -> None:
    base, one, two = await stand.run(), await stand.run(), await stand.run()
    query = {"baseline_run_id": base, "candidate_run_ids": f"{one},{two}", "margin_thousandths": 20}
    answers = {
        kind: await stand.http.get(V1 + "/comparisons/file", params={**query, "format": kind})
        for kind in ("csv", "json", "parquet")
    }
    lines = list(csv.DictReader(answers["csv"].content.decode("utf-8-sig").splitlines()))
    assert [line["candidate_run_id"] for line in lines] == [one, two]
    intervals = {
        name: (lines[0][f"quality_delta_{name}_low"], lines[0][f"quality_delta_{name}_high"])
        for name in ("hoeffding_ci95", "adaptive_ci95", "bootstrap_ci95", "verdict_interval")
    }
    assert intervals == {
        "hoeffding_ci95": ("-0.1", "0.2"),
        "adaptive_ci95": ("-0.05", "0.1"),
        "bootstrap_ci95": ("", ""),
        "verdict_interval": ("-0.07", "0.12"),
    }
    # Nothing that a spreadsheet would run, and nothing unknown as 0.
    assert (lines[0]["total_cost_comparison_reason"], lines[0]["total_cost_saving_percent"]) == (
        "'=the cost is unknown",
        "",
    )
    assert answers["json"].json()["margin"] == 0.02
    rows = parquet.read_table(BytesIO(answers["parquet"].content)).to_pylist()
    assert (rows[1]["quality_delta_adaptive_ci95_high"], rows[1]["total_cost_saving_percent"]) == (0.1, None)
    assert 'filename="sr-bench-comparison.parquet"' in answers["parquet"].headers["content-disposition"]
    mine = await stand.http.get(V1 + "/comparisons/file", params={**query, "candidate_run_ids": "run-nothing"})
    assert (mine.status_code, mine.json()["reason"]) == (404, "NO_SUCH_RUN")


async def test_an_export_is_one_json_document(stand: Any) -> None:
    run = await stand.run()
    answer = await stand.http.post(f"{V1}/runs/{run}/export")
    shown = answer.json()
    assert (answer.status_code, shown["kind"], shown["source_run_id"]) == (200, "training-matrix", run)
    assert [case["id"] for case in shown["cases"]] == ["c1", "c2"]
    first, second = shown["cases"][0]["targets"]
    assert (first["cost_usd"], first["final"]) == (7e-06, "x")
    assert (second["cost_usd"], second["correct"], second["usage"]) == (None, None, None)


async def test_an_export_is_a_parquet_file(stand: Any) -> None:
    run = await stand.run()
    answer = await stand.http.post(f"{V1}/runs/{run}/export/parquet")
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    table = parquet.read_table(BytesIO(answer.content))
    rows = table.to_pylist()
    assert [(row["case_id"], row["target_id"]) for row in rows] == [("c1", "s"), ("c1", "r"), ("c2", "s"), ("c2", "r")]
    assert (rows[0]["cost_picodollars"], rows[1]["cost_picodollars"], rows[1]["input_tokens"]) == (7_000_000, None, None)
    assert b"training-matrix" in table.schema.metadata[b"sr-bench"]


async def test_a_refused_export_is_a_status_and_no_half_document(stand: Any) -> None:
    run = await stand.run()
    stand.accounting.failure = InvalidInput("HOLDOUT", "only dev cases are ever exported")
    for path in ("export", "export/parquet"):
        answer = await stand.http.post(f"{V1}/runs/{run}/{path}")
        assert (answer.status_code, answer.json()["reason"]) == (400, "HOLDOUT")


async def test_corrections_and_regrading_are_shown(stand: Any) -> None:
    run = await stand.run()
    shown = (await stand.http.post(f"{V1}/runs/{run}/reconcile-usage")).json()
    assert (shown["id"], shown["calls"][0]["cost_usd"], shown["calls"][0]["evidence_sha256"]) == (
        "accounting-1",
        None,
        None,
    )
    assert (await stand.http.get(f"{V1}/runs/{run}/corrections")).json()["corrections"][0]["id"] == "accounting-1"
    regraded = (await stand.http.post(f"{V1}/runs/{run}/regrade")).json()
    assert (regraded["kind"], regraded["results"][0]["changed"], regraded["results"][0]["reason"]) == (
        "offline-regrade",
        True,
        None,
    )


async def test_an_audit_is_imported_and_shown(stand: Any) -> None:
    run = await stand.run()
    shown = (await stand.http.get(f"{V1}/runs/{run}/judging")).json()
    assert (shown["agreements"][0]["pair_count"], shown["agreements"][0]["kappa"]) == (3, None)
    labels = [{"case_id": "hle/1", "target_id": "t", "correct": False}]
    answer = await stand.http.post(f"{V1}/runs/{run}/audits", json={"auditor": "me", "labels": labels})
    assert answer.json()["audited"][0]["judged_accuracy"] == 0.5
    (kept,) = stand.accounting.audits
    assert (kept.run_id, kept.auditor, kept.labels[0].HasField("correct"), kept.labels[0].correct) == (
        run,
        "me",
        True,
        False,
    )
    for bad_labels, reason in (
        (5, "BAD_TYPE"),
        ([5], "BAD_TYPE"),
        ([{"correct": "yes"}], "BAD_TYPE"),
        (None, "MISSING_FIELD"),
    ):
        bad = await stand.http.post(f"{V1}/runs/{run}/audits", json={"auditor": "me", "labels": bad_labels})
        assert (bad.status_code, bad.json()["reason"]) == (400, reason)


async def test_the_power_of_a_manifest(stand: Any) -> None:
    answer = await stand.http.post(V1 + "/plans/power", json={"manifest": {"version": "x"}, "discordance": 0.2})
    assert answer.json()["profiles"][0]["profile"] == "this plan"
    bad = await stand.http.post(V1 + "/plans/power", json={"manifest": []})
    assert (bad.status_code, bad.json()["reason"]) == (400, "BAD_TYPE")


async def test_the_front_door_checks_every_run_of_a_request(start: Any) -> None:
    stand = await start(TOKEN)
    mine, theirs = await stand.run(**actor("ann", "write")), await stand.run(**actor("bob", "write"))
    metadata = [("authorization", f"Bearer {TOKEN}"), *actor("ann", "write").items()]
    async with aio.insecure_channel(f"127.0.0.1:{stand.grpc_port}") as channel:
        stub = accounting_rpc.AccountingServiceStub(channel)
        for baseline, candidates in ((mine, [theirs]), (theirs, [mine]), (mine, [mine, theirs])):
            request = pb.CompareRunsRequest(baseline_run_id=baseline, candidate_run_ids=candidates)
            with pytest.raises(grpc.RpcError) as caught:
                await stub.CompareRuns(request, metadata=metadata)
            assert wire.reason(caught.value) == "NO_SUCH_RUN"
        assert stand.accounting.asked == []
        own = pb.CompareRunsRequest(baseline_run_id=mine, candidate_run_ids=[mine])
        assert (await stub.CompareRuns(own, metadata=metadata)).candidate_run_id == mine
        with pytest.raises(grpc.RpcError) as caught:
            await stub.ExportRun(pb.ExportRunRequest(run_id=theirs), metadata=metadata).read()
        assert wire.reason(caught.value) == "NO_SUCH_RUN"
        reader = [("authorization", f"Bearer {TOKEN}"), *actor("ann", "read").items()]
        with pytest.raises(grpc.RpcError) as caught:
            await stub.ReconcileUsage(pb.ReconcileUsageRequest(run_id=mine), metadata=reader)
        assert wire.reason(caught.value) == "READ_ONLY"
