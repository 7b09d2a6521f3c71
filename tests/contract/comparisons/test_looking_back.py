"""Regrading, exporting and reconciling recorded runs: what changes, what is refused, and that the originals stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import comparison_pb2, report_pb2
from srbench_accounting import schema
from srbench_kit import exports
from srbench_kit.values import from_value, object_of, to_value

from tests.contract.refusals import reason


def rows(stand: Any, table: sa.Table) -> list[Any]:
    with stand.store.engine.connect() as connection:
        return list(connection.execute(sa.select(table)).all())


async def report(stand: Any, run_id: str) -> report_pb2.Report:
    found: report_pb2.Report = await stand.gateway.GetReport(pb.GetReportRequest(run_id=run_id))
    return found


async def regrade(stand: Any, run_id: str) -> comparison_pb2.Regrading:
    found: comparison_pb2.Regrading = await stand.gateway.RegradeRun(comparison_pb2.RegradeRunRequest(run_id=run_id))
    return found


async def test_answers_are_judged_again_and_the_difference_is_told(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    # As an older grader saw them: one right answer called wrong, one wrong answer called right.
    made.results[0]["correct"], made.results[4]["correct"] = False, True
    await stand.add(made)
    before = rows(stand, schema.outcomes), await report(stand, "base")
    found = await regrade(stand, "base")
    assert (found.kind, found.changed_count, found.gained_count, found.lost_count) == ("offline-regrade", 2, 1, 1)
    assert len(found.results) == 8
    changed = {(one.case_id, one.target_id): (one.source_correct, one.correct) for one in found.results if one.changed}
    assert changed == {("mmlu-pro/0", "n"): (False, True), ("mmlu-pro/2", "n"): (True, False)}
    first = found.results[0]
    assert (from_value(first.answer), first.answer_status, first.reason) == ("A", "parsed", "")
    assert found.grader_version == first.grader_version != ""
    assert (dict(found.source_adapter_versions), dict(found.adapter_versions)) == (
        {"mmlu-pro": "v1"},
        {"mmlu-pro": "installed-v3"},
    )
    assert found.model_requests == 0
    assert (rows(stand, schema.outcomes), await report(stand, "base")) == before


async def test_cut_and_failed_answers_are_not_judged_again(stand: Any, make: Any) -> None:
    made = make("base", {"n": "11f0", "s": "1000"})
    made.results[0] |= {"output_limit": True, "correct": False}
    await stand.add(made)
    found = {(one.case_id, one.target_id): one for one in (await regrade(stand, "base")).results}
    cut, failed = found["mmlu-pro/0", "n"], found["mmlu-pro/2", "n"]
    assert (cut.reason, cut.correct, cut.changed, cut.grader_version) == ("output_limit", False, False, "")
    assert (failed.reason, failed.HasField("correct"), failed.changed) == ("no_answer", False, False)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run": {"status": "failed"}}, "NOT_COMPLETED"),
        ({"run": {"status": "running"}}, "NOT_COMPLETED"),
        ({"plan": {"mode": "replay"}}, "NOT_LIVE"),
        ({"grader": "judge"}, "NOT_REGRADABLE"),
        ({"grader": "code"}, "NOT_REGRADABLE"),
    ],
)
async def test_runs_that_cannot_be_regraded(stand: Any, make: Any, changes: dict[str, Any], expected: str) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}, **changes))
    assert await reason(regrade(stand, "base")) == expected


async def test_an_answer_of_several_calls_is_refused(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    made.calls.append(dict(made.calls[0]))
    await stand.add(made)
    assert await reason(regrade(stand, "base")) == "SEVERAL_CALLS"


async def export(stand: Any, run_id: str) -> list[comparison_pb2.ExportPart]:
    return [part async for part in stand.gateway.ExportRun(comparison_pb2.ExportRunRequest(run_id=run_id))]


async def test_an_export_has_every_case_with_every_answer(stand: Any, make: Any) -> None:
    made = make("base", {"n": "11f0", "s": "1000"})
    made.calls[1]["usage"] = None
    await stand.add(made)
    parts = await export(stand, "base")
    shown = json.loads(b"".join(exports.json_chunks(parts)))
    assert (shown["kind"], shown["split"], shown["source_run_id"], shown["model_requests"]) == (
        "training-matrix",
        "dev",
        "base",
        0,
    )
    assert (shown["case_count"], len(shown["cases"]), shown["accounting_correction"]) == (4, 4, None)
    first = shown["cases"][0]
    assert (first["id"], first["answer"], first["messages"][0]["role"]) == ("mmlu-pro/0", "A", "user")
    known, unknown = first["targets"]
    assert (known["id"], known["model"], known["kind"]) == ("n", "north", "single")
    assert (known["final"], known["answer"], known["correct"], known["score"]) == ("Answer: A", "A", True, 1.0)
    assert known["usage"] == {
        "input_tokens": 100,
        "cached_input_tokens": 20,
        "cache_write_tokens": 10,
        "output_tokens": 50,
    }
    assert (known["cost_usd"], known["subject_latency_s"]) == (pytest.approx(0.000629), 1.0)
    assert (unknown["cost_usd"], unknown["usage"]["input_tokens"], unknown["correct"]) == (None, None, True)
    failed = shown["cases"][2]["targets"][0]
    assert (failed["correct"], failed["cost_usd"], failed["final"]) == (None, None, None)


def split_of(made: Any, split: Any) -> Any:
    content = made.content()
    content[2]["metadata"] = {} if split is None else {"split": split}
    made.contents = content
    return made


@pytest.mark.parametrize("split", ["holdout", "test", "", None])
async def test_holdout_and_unknown_splits_are_never_exported(stand: Any, make: Any, split: Any) -> None:
    await stand.add(split_of(make("base", {"n": "1100", "s": "1000"}), split))
    assert await reason(export(stand, "base")) == "HOLDOUT"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run": {"status": "failed"}}, "NOT_COMPLETED"),
        ({"plan": {"mode": "preview"}}, "NOT_LIVE"),
        ({"plan": {"profile": "standard"}}, "HOLDOUT"),
        ({"plan": {"total": 7}}, "PARTIAL_MATRIX"),
    ],
)
async def test_runs_that_cannot_be_exported(stand: Any, make: Any, changes: dict[str, Any], expected: str) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}, **changes))
    assert await reason(export(stand, "base")) == expected


async def reconcile(stand: Any, run_id: str = "base") -> comparison_pb2.AccountingCorrection:
    request = comparison_pb2.ReconcileUsageRequest(run_id=run_id)
    found: comparison_pb2.AccountingCorrection = await stand.gateway.ReconcileUsage(request)
    return found


async def corrections(stand: Any) -> list[comparison_pb2.AccountingCorrection]:
    request = comparison_pb2.ListCorrectionsRequest(run_id="base")
    return list((await stand.gateway.ListCorrections(request)).corrections)


async def test_streams_that_agree_with_the_receipts_change_nothing(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    before = await report(stand, "base")
    found = await reconcile(stand)
    assert (found.qualified, found.verified_call_count, found.corrected_call_count) == (True, 8, 0)
    assert found.original_known_spend_picodollars == found.corrected_known_spend_picodollars > 0
    after = await report(stand, "base")
    assert after.summary == before.summary
    shown = object_of(after.provenance.accounting_correction)
    assert (shown["id"], shown["evidence_sha256"]) == (found.id, found.evidence_sha256)
    assert shown["verified_call_count"] == 8
    assert isinstance(shown["created_at"], float)
    assert "calls" not in shown


async def test_a_receipt_that_contradicts_its_stream_is_corrected_beside_it(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    made.calls[0]["receipt"] = pb.Receipt(usage_json=json.dumps({"prompt_tokens": 1, "completion_tokens": 1}).encode())
    made.calls[1]["receipt"] = pb.Receipt(usage_json=b"{}")
    await stand.add(made)
    receipts = rows(stand, schema.receipts)
    before = (await report(stand, "base")).summary
    found = await reconcile(stand)
    assert (found.verified_call_count, found.corrected_call_count, found.original_receipts_preserved) == (8, 2, True)
    assert found.original_known_spend_picodollars < found.corrected_known_spend_picodollars
    first = next(call for call in found.calls if call.corrected)
    assert (list(first.contradicted), first.usage.input_tokens, first.cost_picodollars) == (["usage"], 100, 629_000_000)
    after = (await report(stand, "base")).summary
    assert rows(stand, schema.receipts) == receipts
    assert not before.targets[0].HasField("tokens")
    assert after.targets[0].tokens.input_tokens == 400
    assert after.total_spend_picodollars == found.corrected_known_spend_picodollars
    comparison = comparison_pb2.CompareRunsRequest(baseline_run_id="base", candidate_run_ids=["cand"])
    await stand.add(make("cand", {"r": "1110"}))
    compared = await stand.gateway.CompareRuns(comparison)
    assert compared.comparisons[0].baseline_subject_cost_picodollars == after.targets[0].cost_picodollars


async def test_the_same_evidence_gives_the_stored_correction(stand: Any, make: Any) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}))
    first = await reconcile(stand)
    assert await reconcile(stand) == first
    assert len(rows(stand, schema.corrections)) == 1


DONE = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "model": "north"%s}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("usage_missing", {"body": DONE % b""}),
        ("cost_unknown", {"body": DONE % b', "usage": {"prompt_tokens": 100, "completion_tokens": 50}'}),
        ("not_accepted", {"status": "not_accepted", "final": None}),
        ("no_evidence", {"final": None}),
        ("answer_incomplete", {"body": b'data: {"choices": [{"delta": {"content": "A"}}]}\n\n'}),
    ],
)
async def test_what_a_stream_does_not_settle_is_left_with_its_reason(
    stand: Any, make: Any, expected: str, changes: dict[str, Any]
) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    made.calls[0] = {key: value for key, value in (made.calls[0] | changes).items() if value is not None}
    await stand.add(made)
    found = await reconcile(stand)
    assert [call.reason for call in found.calls if not call.verified] == [expected]
    assert (found.verified_call_count, found.unverifiable_call_count) == (7, 1)


async def test_a_known_cost_never_becomes_unknown(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    # A receipt with a cost, a stream that broke off before its end.
    made.calls[0]["body"] = b'data: {"choices": [{"delta": {"content": "Answer"}}]}\n\n'
    made.calls[1] = {key: value for key, value in made.calls[1].items() if key != "final"}
    made.calls[2]["clean_end"] = True
    await stand.add(made)
    before = (await report(stand, "base")).summary
    found = await reconcile(stand)
    by_reason = {call.reason for call in found.calls if not call.verified}
    assert by_reason == {"answer_incomplete", "no_evidence"}
    assert (found.qualified, found.unverifiable_call_count) == (False, 2)
    assert found.corrected_known_spend_picodollars == found.original_known_spend_picodollars
    assert (await report(stand, "base")).summary == before


async def test_router_receipts_of_several_calls_keep_their_cost(stand: Any, make: Any) -> None:
    made = make("base", {"r": "1110"})
    for call in made.calls:
        call["inference_call_count"] = 3
        call["model"] = "somebody-else"
    await stand.add(made)
    before = (await report(stand, "base")).summary
    found = await reconcile(stand)
    assert (found.verified_call_count, found.corrected_call_count) == (4, 0)
    assert (await report(stand, "base")).summary == before


async def test_a_later_correction_supersedes_and_all_stay_readable(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    made.calls[0]["receipt"] = pb.Receipt(usage_json=json.dumps({"prompt_tokens": 1, "completion_tokens": 1}).encode())
    # The last call's end was lost, and comes after the first correction.
    made.calls[7]["status"] = "sent"
    made.results.pop()
    made.run = {"status": "interrupted"}
    await stand.add(made)
    first = await reconcile(stand)
    assert [call.reason for call in first.calls if not call.verified] == ["no_end"]
    whole_run = make("base", {"n": "1100", "s": "1000"}).facts()
    late = [fact for fact in whole_run if fact.WhichOneof("fact") in ("evidence", "settle")][-2:]
    await stand.record(late)
    second = await reconcile(stand)
    assert second.id != first.id
    assert second.corrected_known_spend_picodollars > first.corrected_known_spend_picodollars
    kept = await corrections(stand)
    assert [one.id for one in kept] == [first.id, second.id]
    assert [len(one.calls) for one in kept] == [0, 0]
    shown = object_of((await report(stand, "base")).provenance.accounting_correction)
    assert shown["id"] == second.id
    whole = await stand.gateway.ListCorrections(comparison_pb2.ListCorrectionsRequest(run_id="base", calls=True))
    assert [len(one.calls) for one in whole.corrections] == [8, 8]
    assert [one.verified_call_count for one in whole.corrections] == [7, 8]
    assert whole.corrections[0] == first


async def test_what_was_verified_once_stays_when_the_evidence_is_damaged_later(stand: Any, make: Any) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    made.calls[0]["receipt"] = pb.Receipt(usage_json=b"{}")
    await stand.add(made)
    await reconcile(stand)
    before = (await report(stand, "base")).summary
    for path in (stand.folder / "segments").iterdir():
        data = bytearray(path.read_bytes())
        for place in range(200, len(data), 50):
            data[place] ^= 1
        path.write_bytes(data)
    found = await reconcile(stand)
    assert found.verified_call_count < 8
    assert any(call.reason == "evidence_damaged" for call in found.calls)
    assert (await report(stand, "base")).summary == before
    assert found.corrected_known_spend_picodollars == before.known_spend_picodollars


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"run": {"status": "running"}}, "RUN_NOT_OVER"), ({"plan": {"mode": "preview"}}, "NOT_LIVE")],
)
async def test_runs_that_cannot_be_reconciled(stand: Any, make: Any, changes: dict[str, Any], expected: str) -> None:
    await stand.add(make("base", {"n": "1100", "s": "1000"}, **changes))
    assert await reason(reconcile(stand)) == expected


async def test_a_run_without_calls_has_nothing_to_reconcile(stand: Any, make: Any) -> None:
    made = make("base", {"n": "----", "s": "----"})
    await stand.add(made)
    assert await reason(reconcile(stand)) == "NO_CALLS"
    assert await reason(reconcile(stand, "none")) == "NO_SUCH_RUN"


async def test_a_failed_and_cancelled_run_can_be_reconciled(stand: Any, make: Any) -> None:
    for status in ("failed", "cancelled"):
        await stand.add(make(status, {"n": "1100", "s": "1000"}, run={"status": status}))
        assert (await reconcile(stand, status)).verified_call_count == 8


async def replay_of(stand: Any, make: Any, name: str) -> None:
    """A replay of `base` that takes the first two cases from n and the others from s."""
    sources = to_value({"replay_sources": {"baseline_run_id": "base", "preview_run_id": "preview"}})
    await stand.add(make(name, {"r": "----"}, plan={"mode": "replay", "manifest": sources}))
    request = pb.RecordReplayRequest(run_id=name, source_run_id="base", preview_run_id="preview")
    for case in range(4):
        request.cells.add(cell=case, case_index=case, source_cell=2 * case + case // 2, selected_model="m")
    await stand.as_planner.RecordReplay(request)


async def test_a_correction_of_saved_answers_reaches_the_replays_made_of_them_before_and_after(
    stand: Any, make: Any
) -> None:
    made = make("base", {"n": "1100", "s": "1000"})
    wrong = pb.Receipt(usage_json=json.dumps({"prompt_tokens": 1, "completion_tokens": 1}).encode())
    # One answer that the replay takes, one that it does not.
    made.calls[0]["receipt"] = made.calls[1]["receipt"] = wrong
    await stand.add(made)
    await replay_of(stand, make, "replay")
    (before,) = (await report(stand, "replay")).summary.targets
    await reconcile(stand)
    found = await report(stand, "replay")
    (after,) = found.summary.targets
    north, south = (await report(stand, "base")).summary.targets
    assert not before.HasField("estimated_cost_picodollars"), "how much of the prompt was cached was not reported"
    assert not before.HasField("estimated_tokens")
    assert after.estimated_tokens.output_tokens == 200
    assert after.estimated_cost_picodollars == (north.cost_picodollars + south.cost_picodollars) / 2
    assert found.summary.known_spend_picodollars == 0
    assert object_of(found.provenance.accounting_correction)["id"] == (await corrections(stand))[0].id
    await replay_of(stand, make, "later")
    assert (await report(stand, "later")).summary.targets == found.summary.targets
    originals = (await stand.gateway.ListCalls(pb.ListCallsRequest(run_id="replay"))).calls
    assert originals[0].usage.output_tokens == 1, "lists show receipts as they came"
