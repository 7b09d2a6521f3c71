"""Who may come in, who may do what, and whose runs they see: over HTTP and through the front door alike."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_kit import wire
from srbench_kit.auth import Actor
from srbench_kit.values import to_value

V1 = "/api/sr-bench/v1"
TOKEN = "a-token-for-callers-from-outside"


def actor(name: str, role: str) -> dict[str, str]:
    return {"x-sr-bench-actor-id": name, "x-sr-bench-actor-role": role}


async def test_with_a_token_nothing_is_answered_without_it(start: Any) -> None:
    stand = await start(TOKEN)
    for path in ("/health", V1 + "/health", V1 + "/catalog", "/openapi.json", "/nonesuch"):
        for given in ({"authorization": ""}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
            answer = await stand.http.get(path, headers=given)
            assert (answer.status_code, answer.json()["reason"]) == (401, "BAD_TOKEN")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert TOKEN not in answer.text
    assert (await stand.http.get(V1 + "/catalog")).status_code == 200
    assert (await stand.http.get(V1 + "/catalog", headers={"authorization": f"bearer {TOKEN}"})).status_code == 200
    assert stand.planner.actors[-1] == Actor(id="local", role="local")


async def test_two_tokens_in_one_request_are_refused(start: Any) -> None:
    stand = await start(TOKEN)
    both = [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer other")]
    answer = await stand.http.get(V1 + "/catalog", headers=both)
    assert (answer.status_code, answer.json()["reason"]) == (403, "REPEATED_HEADER")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-sr-bench-actor-id": "ann"},
        {"x-sr-bench-actor-role": "admin"},
        actor("ann", "root"),
        actor("ann", "local"),
        actor("", "admin"),
        actor("x" * 257, "admin"),
        actor("local", "write"),
        {"x-sr-bench-actor-id": b"\xe4nn", "x-sr-bench-actor-role": b"write"},
    ],
)
async def test_half_or_odd_actors_are_refused(start: Any, headers: Any) -> None:
    stand = await start(TOKEN)
    answer = await stand.http.get(V1 + "/catalog", headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (403, "BAD_ACTOR")
    assert stand.planner.actors == []


async def test_an_actor_is_not_believed_without_a_token(stand: Any) -> None:
    answer = await stand.http.get(V1 + "/catalog", headers=actor("ann", "admin"))
    assert (answer.status_code, answer.json()["reason"]) == (403, "UNTRUSTED_ACTOR")


async def test_internal_headers_from_outside_are_not_passed_on(start: Any) -> None:
    stand = await start(TOKEN)
    forged = {"x-srbench-role": "executor", "x-srbench-actor-id": "boss", "x-srbench-actor-role": "admin"}
    await stand.http.get(V1 + "/catalog", headers={**forged, **actor("ann", "read")})
    assert stand.planner.actors[-1] == Actor(id="ann", role="read")


async def test_an_actor_of_256_characters_is_taken(start: Any) -> None:
    stand = await start(TOKEN)
    assert (await stand.http.get(V1 + "/catalog", headers=actor("x" * 256, "write"))).status_code == 200


async def test_readers_may_only_read(start: Any) -> None:
    stand = await start(TOKEN)
    reader = actor("rita", "read")
    for path, body in (("/plans", {}), ("/runs", {}), ("/datasets/compose", {}), ("/runs/run-1/cancel", None)):
        answer = await stand.http.post(V1 + path, json=body, headers=reader)
        assert (answer.status_code, answer.json()["reason"]) == (403, "READ_ONLY"), path
    assert (await stand.http.get(V1 + "/runs", headers=reader)).status_code == 200
    assert stand.planner.runs == {}


async def test_runs_of_others_are_not_there_but_admins_see_all(start: Any) -> None:
    stand = await start(TOKEN)
    run_id = await stand.run(**actor("ann", "write"))
    call = f"call-{1:032x}"
    paths = ["", "/results", "/calls", f"/calls/{call}", f"/calls/{call}/evidence", "/events", "/report", "/cells"]
    for path in [*paths, "/spend", "/watch"]:
        for who, status in ((actor("ann", "write"), 200), (actor("bob", "write"), 404), (actor("bob", "admin"), 200)):
            answer = await stand.http.get(f"{V1}/runs/{run_id}{path}", headers=who)
            assert answer.status_code == status, (path, who, answer.text)
            if status == 404:
                assert answer.json()["reason"] == "NO_SUCH_RUN"
    refused = await stand.http.post(f"{V1}/runs/{run_id}/cancel", headers=actor("bob", "write"))
    assert refused.status_code == 404
    mine = await stand.http.get(V1 + "/runs", headers=actor("bob", "read"))
    assert (mine.json()["runs"], mine.json()["total"]) == ([], 0)


async def test_a_source_path_is_for_operators(start: Any) -> None:
    stand = await start(TOKEN)
    body = {"benchmark": "arc-agi-2", "source_path": "/etc", "revision": "1"}
    for who, status in ((actor("ann", "write"), 403), (actor("bob", "admin"), 202), ({}, 202)):
        answer = await stand.http.post(V1 + "/dataset-preparations", json=body, headers=who)
        assert answer.status_code == status


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]"])
async def test_other_host_names_are_refused_on_loopback_without_a_token(stand: Any, host: str) -> None:
    answer = await stand.http.get(V1 + "/catalog", headers={"host": host})
    assert (answer.status_code, answer.json()["reason"]) == (403, "FOREIGN_HOST")
    assert stand.planner.requests == []


@pytest.mark.parametrize("host", ["localhost:8090", "127.0.0.1", "[::1]:9", "127.9.9.9:1"])
async def test_loopback_host_names_are_answered(stand: Any, host: str) -> None:
    assert (await stand.http.get(V1 + "/catalog", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://[::1"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_pages_of_other_sites_change_nothing(stand: Any, headers: dict[str, str]) -> None:
    run_id = await stand.run()
    answer = await stand.http.post(f"{V1}/runs/{run_id}/cancel", headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (403, "FOREIGN_ORIGIN")
    assert stand.planner.runs[run_id].status != "cancelled"


async def test_the_pages_of_this_service_may_change_things(stand: Any) -> None:
    run_id = await stand.run()
    own = {"origin": f"http://127.0.0.1:{stand.http_port}", "sec-fetch-site": "same-origin"}
    assert (await stand.http.post(f"{V1}/runs/{run_id}/cancel", headers=own)).status_code == 200


async def test_with_a_token_any_host_name_may_be_used(start: Any) -> None:
    stand = await start(TOKEN)
    headers = {"host": "bench.example", "origin": "https://dash.example"}
    answer = await stand.http.post(V1 + "/plans", json={"version": "sr-bench-1.0"}, headers=headers)
    assert answer.status_code == 200


async def test_a_path_in_the_host_header_is_no_path(start: Any) -> None:
    stand = await start(TOKEN)
    answer = await stand.http.get("/nonesuch", headers={"host": f"localhost{V1}/catalog?x="})
    assert (answer.status_code, answer.json()["reason"]) == (404, "NO_SUCH_ROUTE")


async def front_door(stand: Any, metadata: dict[str, str]) -> tuple[aio.Channel, Any, Any]:
    channel = wire.channel(f"127.0.0.1:{stand.grpc_port}", metadata)
    return channel, planner_rpc.PlannerServiceStub(channel), accounting_rpc.AccountingServiceStub(channel)


async def reason_of(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value.code(), wire.reason(caught.value)


async def test_the_front_door_asks_for_the_same_token_and_actor(start: Any) -> None:
    stand = await start(TOKEN)
    catalog = planner.GetCatalogRequest()
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for metadata, expected in (
        ({}, (grpc.StatusCode.UNAUTHENTICATED, "BAD_TOKEN")),
        ({"authorization": "Bearer wrong"}, (grpc.StatusCode.UNAUTHENTICATED, "BAD_TOKEN")),
        ({**bearer, "x-sr-bench-actor-id": "ann"}, (grpc.StatusCode.PERMISSION_DENIED, "BAD_ACTOR")),
        ({**bearer, **actor("ann", "boss")}, (grpc.StatusCode.PERMISSION_DENIED, "BAD_ACTOR")),
    ):
        channel, plans, _ = await front_door(stand, metadata)
        assert await reason_of(plans.GetCatalog(catalog)) == expected
        await channel.close()
    channel, plans, _ = await front_door(stand, {**bearer, **actor("ann", "read"), "x-srbench-role": "executor"})
    await plans.GetCatalog(catalog)
    assert stand.planner.actors == [Actor(id="ann", role="read")]
    denied = (grpc.StatusCode.PERMISSION_DENIED, "READ_ONLY")
    assert await reason_of(plans.CancelRun(planner.CancelRunRequest(id="run-1"))) == denied
    assert await reason_of(plans.FreezePlan(planner.FreezePlanRequest())) == denied
    await channel.close()


async def test_the_front_door_keeps_runs_and_facts_to_their_owners(start: Any) -> None:
    stand = await start(TOKEN)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    run_id = await stand.run(**actor("ann", "write"))
    missing = (grpc.StatusCode.NOT_FOUND, "NO_SUCH_RUN")
    channel, plans, facts = await front_door(stand, {**bearer, **actor("bob", "write")})
    assert await reason_of(plans.GetRun(planner.GetRunRequest(id=run_id))) == missing
    for call in (
        facts.GetSpend(accounting.GetSpendRequest(run_id=run_id)),
        facts.GetReport(accounting.GetReportRequest(run_id=run_id)),
        facts.ListOutcomes(accounting.ListOutcomesRequest(run_id=run_id)),
        facts.ListCalls(accounting.ListCallsRequest(run_id=run_id)),
        facts.GetCall(accounting.GetCallRequest(run_id=run_id)),
        facts.ReadEvidence(accounting.ReadEvidenceRequest(run_id=run_id)).read(),
    ):
        assert await reason_of(call) == missing
    assert stand.accounting.asked == []
    await channel.close()
    channel, plans, facts = await front_door(stand, {**bearer, **actor("ann", "read")})
    assert (await facts.GetSpend(accounting.GetSpendRequest(run_id=run_id))).run_id == run_id
    await channel.close()


async def test_the_front_door_keeps_the_registry_and_source_paths_to_operators(start: Any) -> None:
    stand = await start(TOKEN)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    document = planner.RegisterTargetsRequest(document=to_value([{"id": "s"}]))
    source = planner.CreateDatasetPreparationRequest(benchmarks=["arc-agi-2"], source_path="/etc", revision="1")
    denied = (grpc.StatusCode.PERMISSION_DENIED, "OPERATOR_ONLY")
    channel, plans, _ = await front_door(stand, {**bearer, **actor("ann", "write")})
    assert await reason_of(plans.RegisterTargets(document)) == denied
    options = planner.RegisterBenchmarkOptionsRequest(document=to_value({}))
    assert await reason_of(plans.RegisterBenchmarkOptions(options)) == denied
    assert await reason_of(plans.CreateDatasetPreparation(source)) == denied
    source.source_path = ""
    await plans.CreateDatasetPreparation(source)
    await channel.close()
    assert stand.planner.registered == []
    channel, plans, _ = await front_door(stand, bearer)
    await plans.RegisterTargets(document)
    await channel.close()
    assert stand.planner.registered == [[{"id": "s"}]]
