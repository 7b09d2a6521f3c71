"""Targets and plans over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from planner_doubles import PRICE, Files, case, manifest, target
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import auth, wire
from srbench_kit.values import object_of, to_value

WRITER = auth.Actor(id="ann", role="write")


async def freeze(planner: Any, value: Any, actor: auth.Actor | None = None) -> Any:
    return await planner.plans(actor).FreezePlan(pb.FreezePlanRequest(manifest=to_value(value)))


# Its reference may be any text, so that a test finds it wherever it is.
JUDGED = "simpleqa-verified"


def judged(*cases: dict[str, Any]) -> dict[str, Any]:
    """A manifest of `cases`, some of which need a judge."""
    options = {JUDGED: {"judge": "j"}}
    return manifest(cases=list(cases), auxiliary_targets={"j": target("j")}, benchmark_options=options)


async def test_a_frozen_plan_freezes_to_itself_and_can_be_fetched(planner: Any) -> None:
    value = manifest(targets=[target("a", prices={"m": PRICE}), target("b")], name="first")
    plan = await freeze(planner, value)
    again = await freeze(planner, object_of(plan.manifest))
    assert again == plan
    assert (plan.total, plan.case_count, dict(plan.case_counts)) == (2, 1, {"mmlu-pro": 2})
    assert (plan.name, plan.custom_subset, plan.limits.max_cost_picodollars) == ("first", True, 5 * 10**12)
    assert plan.targets[0].prices["m"].input_picodollars == 1_250_000
    fetched = await planner.plans().GetPlan(pb.GetPlanRequest(plan_sha256=plan.plan_sha256))
    assert fetched.plan_sha256 == plan.plan_sha256


async def test_who_fetches_a_plan_sees_no_reference_answer_and_no_hidden_metadata(planner: Any) -> None:
    hidden = {"stratum": "maths", "tests": "SECRET-TESTS"}
    plan = await freeze(planner, judged(case("q1", JUDGED, answer="SECRET-ANSWER", metadata=hidden)))
    assert b"SECRET-ANSWER" in plan.SerializeToString(), "the one who sent it gets it back"
    fetched = await planner.plans().GetPlan(pb.GetPlanRequest(plan_sha256=plan.plan_sha256))
    run = await planner.run(object_of(plan.manifest))
    shown = await planner.plans().GetRun(pb.GetRunRequest(id=run.id))
    (lease,) = await planner.lease()
    for message in (fetched, run, shown, lease):
        assert b"SECRET" not in message.SerializeToString()
    assert object_of(fetched.manifest)["cases"][0]["metadata"] == {"stratum": "maths"}


async def test_damaged_cases_lose_nothing_else_and_the_same_manifest_mends_them(planner: Any, tmp_path: Path) -> None:
    run = await planner.run(manifest(cases=[case("q1")]))
    (blob,) = tmp_path.rglob("*.zst")  # noqa: ASYNC240  # A few files of the test itself.
    blob.write_bytes(blob.read_bytes()[:-1])
    plans = planner.service.plans
    plans._recent.clear()
    plans._sets.clear()
    asked = pb.StreamPlanCasesRequest(plan_sha256=run.plan.plan_sha256)
    with pytest.raises(aio.AioRpcError) as caught:
        [part async for part in planner.plans().StreamPlanCases(asked)]
    assert (wire.reason(caught.value), "plan the same manifest again" in str(caught.value.details())) == (
        "BLOB_DAMAGED",
        True,
    )
    shown = await planner.plans().GetRun(pb.GetRunRequest(id=run.id))
    assert (shown.id, object_of(shown.plan.manifest)["cases"]) == (run.id, None)
    await freeze(planner, manifest(cases=[case("q1")]))
    shown = await planner.plans().GetRun(pb.GetRunRequest(id=run.id))
    assert [found["id"] for found in object_of(shown.plan.manifest)["cases"]] == ["q1"]


async def test_a_bad_manifest_names_its_field_and_changes_nothing(planner: Any) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await freeze(planner, manifest(limits={"max_cost_us": 3}))
    error = wire.to_error(caught.value)
    assert (error.reason, error.facts["field"]) == ("UNKNOWN_FIELD", "limits.max_cost_us")
    with pytest.raises(aio.AioRpcError) as caught:
        await planner.run(manifest(limits={"concurrency": 0}))
    assert wire.reason(caught.value) == "BAD_FIELD"
    assert (await planner.plans().ListRuns(pb.ListRunsRequest())).total == 0


async def test_an_unknown_plan_is_not_found(planner: Any) -> None:
    stub = planner.plans()
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.GetPlan(pb.GetPlanRequest(plan_sha256="0" * 64))
    assert wire.reason(caught.value) == "NO_SUCH_PLAN"
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.StreamPlanCases(pb.StreamPlanCasesRequest(plan_sha256="0" * 64)).read()
    assert wire.reason(caught.value) == "NO_SUCH_PLAN"


async def test_plan_cases_stream_without_texts_in_order(planner: Any) -> None:
    cases = [case(f"q{index}", metadata={"stratum": f"s{index % 2}", "split": "dev"}) for index in range(1100)]
    pairs = [{"case_id": f"q{index}", "target_id": "b" if index else "a"} for index in range(1100)]
    plan = await freeze(planner, manifest(cases=cases, targets=[target("a"), target("b")], execution_cells=pairs))
    found, batches = [], 0
    async for response in planner.plans().StreamPlanCases(pb.StreamPlanCasesRequest(plan_sha256=plan.plan_sha256)):
        found.extend(response.cases)
        batches += 1
    assert batches > 1
    assert [item.case_id for item in found] == [f"q{index}" for index in range(1100)]
    assert (found[3].index, found[3].stratum, found[3].split) == (3, "s1", "dev")
    assert [list(item.target_indexes) for item in found[:2]] == [[0], [1]]
    assert b"2+2" not in b"".join(item.SerializeToString() for item in found)


async def test_references_stream_to_graders_only(planner: Any, files: Files) -> None:
    options = "Pick.\n\nA. 1\nB. 2\nC. 3\n\nOnly the letter."
    rows = [case("q1", metadata={"tests": [1]}), case("q2", messages=[{"role": "user", "content": options}])]
    digest = files.put("/d/cases.jsonl", rows)  # type: ignore[arg-type]
    plan = await freeze(planner, manifest(cases=None, dataset={"path": "/d/cases.jsonl", "sha256": digest}))
    assert plan.dataset_sha256 == digest
    request = pb.StreamReferencesRequest(case_sha256=plan.case_sha256)
    with pytest.raises(aio.AioRpcError) as caught:
        await planner.plans(role="executor").StreamReferences(request).read()
    assert wire.reason(caught.value) == "WRONG_ROLE"
    found = []
    async for response in planner.plans(role="grader").StreamReferences(request):
        found.extend(response.references)
    assert [(item.case_index, item.case_id, item.choice_count) for item in found] == [(0, "q1", 0), (1, "q2", 3)]
    assert found[0].answer.string_value == "A"
    assert object_of(found[0].metadata) == {"tests": [1]}


async def test_plan_cases_name_their_grader_and_plans_their_options(planner: Any) -> None:
    judge = target("j")
    options = {"hle": {"judge": "j"}, "mmlu-pro": {}}
    cases = [case("q1"), case("q2", benchmark="hle")]
    plan = await freeze(planner, manifest(cases=cases, auxiliary_targets={"j": judge}, benchmark_options=options))
    assert object_of(plan.benchmark_options) == {"hle": {"judge": "j"}}
    found = []
    async for response in planner.plans().StreamPlanCases(pb.StreamPlanCasesRequest(plan_sha256=plan.plan_sha256)):
        found.extend(response.cases)
    assert [item.grader for item in found] == ["choice", "judge"]


async def sealed(planner: Any, role: str, case_sha256: str, *, digests_only: bool) -> list[Any]:
    request = pb.StreamSealedCasesRequest(case_sha256=case_sha256, digests_only=digests_only)
    found = []
    async for response in planner.plans(role=role).StreamSealedCases(request):
        found.extend(response.cases)
    return found


async def test_whole_cases_stream_to_accounting_only_and_only_of_development(planner: Any) -> None:
    dev = [case("q1", JUDGED, answer="SECRET-ANSWER", metadata={"split": "dev"}), case("q2", metadata={"split": "dev"})]
    plan = await freeze(planner, judged(*dev))
    for role in ("gateway", "executor", "grader", "planner"):
        with pytest.raises(aio.AioRpcError) as caught:
            await sealed(planner, role, plan.case_sha256, digests_only=True)
        assert wire.reason(caught.value) == "WRONG_ROLE"
    whole = await sealed(planner, "accounting", plan.case_sha256, digests_only=False)
    assert [object_of(item.content)["answer"] for item in whole] == ["SECRET-ANSWER", "A"]
    bare = await sealed(planner, "accounting", plan.case_sha256, digests_only=True)
    assert [item.sha256 for item in bare] == [item.sha256 for item in whole]
    assert not any(item.HasField("content") for item in bare)
    for metadata in ({"split": "holdout"}, {}):
        hidden = await freeze(planner, judged(dev[0], case("q3", metadata=metadata)))
        assert len(await sealed(planner, "accounting", hidden.case_sha256, digests_only=True)) == 2
        with pytest.raises(aio.AioRpcError) as caught:
            await sealed(planner, "accounting", hidden.case_sha256, digests_only=False)
        assert wire.reason(caught.value) == "HOLDOUT"
        assert "SECRET" not in str(caught.value)


async def test_benchmark_options_are_replaced_as_a_whole_or_not_at_all(planner: Any) -> None:
    stub = planner.plans()

    async def register(document: Any) -> dict[str, Any]:
        request = pb.RegisterBenchmarkOptionsRequest(document=to_value(document))
        return object_of((await stub.RegisterBenchmarkOptions(request)).options)

    async def now() -> dict[str, Any]:
        return object_of((await stub.GetBenchmarkOptions(pb.GetBenchmarkOptionsRequest())).options)

    assert await now() == {}
    good = {"hle": {"judge": "a"}}
    assert await register(good | {"gpqa-diamond": {}}) == await now() == good
    for bad, reason in ((["x"], "BAD_FIELD"), ({"none": {}}, "UNKNOWN_FIELD"), ({"hle": {"judge": 1}}, "BAD_FIELD")):
        with pytest.raises(aio.AioRpcError) as caught:
            await register(bad)
        assert wire.reason(caught.value) == reason
    assert await now() == good


async def test_targets_are_registered_as_a_list_or_an_object_and_forwarded_callers_use_only_those(planner: Any) -> None:
    stub = planner.plans()
    for document in ([target("a")], {"targets": [target("a", prices={"m": PRICE})]}):
        answer = await stub.RegisterTargets(pb.RegisterTargetsRequest(document=to_value(document)))
        assert answer == await stub.ListTargets(pb.ListTargetsRequest())
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.RegisterTargets(pb.RegisterTargetsRequest(document=to_value([target("b"), target("b")])))
    assert wire.reason(caught.value) == "DUPLICATE_TARGET"
    assert [item.id for item in (await stub.ListTargets(pb.ListTargetsRequest())).targets] == ["a"]
    plan = await freeze(planner, manifest(targets=[{"id": "a"}]), WRITER)
    assert plan.targets[0].base_url == "http://127.0.0.1:1/v1"
    with pytest.raises(aio.AioRpcError) as caught:
        await freeze(planner, manifest(targets=[target("b")]), WRITER)
    assert wire.reason(caught.value) == "TARGET_NOT_REGISTERED"
