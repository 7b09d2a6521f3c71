"""Recovery over real processes: the testbed's own ledger proves that nothing is sent twice without a word."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from whole_stack import Stack, Testbed, manifest, mmlu_cases, running_stack, running_testbed, until

# Whole stacks on a busy machine need their time; a hang still ends.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    with running_testbed(tmp_path_factory.mktemp("bed")) as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack") / "store") as running:
        yield running


def ended(served: Stack, run_id: str) -> dict[str, Any]:
    until(lambda: served.get(f"/runs/{run_id}")["status"] not in ("queued", "running"))
    found: dict[str, Any] = served.get(f"/runs/{run_id}")
    return found


def start(served: Stack, tmp_path: Path, document: dict[str, Any], key: str) -> str:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(document))
    return str(served.cli("run", "--manifest", str(path), "--detach", "--idempotency-key", key)["id"])


def target(bed: Testbed, name: str) -> dict[str, Any]:
    return next(one for one in bed.targets if one["id"] == name)


def fault(name: str, prompt: str, times: int = 1, **params: Any) -> dict[str, Any]:
    return {"fault": name, "match": {"prompt_substring": prompt, "times": times}, "params": params}


def new_prompts(bed: Testbed, before: dict[str, int]) -> dict[str, int]:
    """How often each prompt was sent since `before`."""
    return {identity: count for identity, count in (bed.sent() - type(bed.sent())(before)).items() if count}


def plan_names_failed_cells(plan: dict[str, Any]) -> None:
    """Of three cells that may have been paid."""
    assert {cell["case_id"] for cell in plan["eligible_cells"]} == {"mmlu-pro/3", "mmlu-pro/5", "mmlu-pro/7"}
    for cell in plan["eligible_cells"]:
        assert (cell["state"], cell["spend_complete"], cell["known_spend_usd"]) == ("failed", False, 0)
        assert cell["spend_upper_usd"] > 0
    assert plan["counts"]["excluded_by_reason"] == {"completed_evidence_is_preserved": 9}
    assert plan["requires_new_attempt_acknowledgment"] is True
    assert plan["new_attempt_budget_usd"] == 5
    assert plan["parent"]["spend_complete"] is False
    assert plan["parent"]["spend_upper_usd"] > plan["parent"]["known_spend_usd"] > 0


def manifest_names_its_parent(manifest_of_child: dict[str, Any], parent: str) -> None:
    block = manifest_of_child["recovery"]
    assert (block["parent_run_id"], block["mode"], block["new_attempt_acknowledged"]) == (parent, "failed", True)
    assert block["selected_cells"] == manifest_of_child["execution_cells"]
    assert block["recovery_subset"] is True
    assert block["parent_snapshot"]["progress"]["failed"] == 3


def both_count_as_one_evaluation(served: Stack, parent: str, child: str) -> None:
    """While the parent stays as it was."""
    report = served.get(f"/runs/{parent}/report")
    assert report["summary"]["targets"][0]["failed"] == 3
    assert [(one["id"], one["status"]) for one in report["child_attempts"]] == [(child, "completed")]
    assert report["child_attempts"][0]["progress"]["completed"] == 3
    merged = served.cli("report", parent, "--lineage")
    row = merged["summary"]["targets"][0]
    assert (merged["status"], row["complete"], row["completed"], row["failed"]) == ("completed", True, 12, 0)
    assert (row["request_count"], row["cost_usd"], row["total_spend_usd"]) == (15, None, None)
    assert row["spend_upper_usd"] > row["known_cost_usd"] > report["summary"]["targets"][0]["known_cost_usd"]
    assert merged["recovery"]["merged"] is True
    assert merged["recovery"]["attempts"] == [
        {"run_id": parent, "status": report["status"], "answers_that_count": 9},
        {"run_id": child, "status": "completed", "answers_that_count": 3},
    ]
    assert served.get(f"/runs/{parent}/report") == report, "the parent stays as it was"
    assert [run["id"] for run in served.get(f"/runs/{parent}/lineage")["runs"]] == [parent, child]


def test_failed_cells_are_tried_again_only_when_acknowledged_and_merge_into_a_whole_evaluation(
    served: Stack, bed: Testbed, tmp_path: Path
) -> None:
    bed.faults(
        fault("http_status", "Question 003", status=500),
        fault("close_mid_stream", "Question 005"),
        fault("reset_before_headers", "Question 007"),
    )
    before = bed.sent()
    parent = start(served, tmp_path, manifest(mmlu_cases(12), [target(bed, "small")]), "failed")
    assert ended(served, parent)["progress"] == {
        **{"total": 12, "completed": 9, "failed": 3},
        **{"running": 0, "cancelled": 0, "interrupted": 0},
    }
    first = new_prompts(bed, before)
    assert sorted(first.values()) == [1] * 12

    assert served.cli("recover-plan", parent)["counts"]["eligible"] == 0
    plan_file = tmp_path / "plan.json"
    plan = served.cli("recover-plan", parent, "--mode", "failed", "--output", str(plan_file))
    plan_names_failed_cells(plan)

    refused = served.cli("recover", parent, "--plan", str(plan_file), "--idempotency-key", "again", code=2)
    assert "ACKNOWLEDGMENT_REQUIRED" in refused
    assert new_prompts(bed, before) == first

    options = ("--plan", str(plan_file), "--idempotency-key", "again", "--acknowledge-new-attempt")
    child = served.cli("recover", parent, *options)
    assert served.cli("recover", parent, *options)["id"] == child["id"], "the same key starts nothing twice"
    assert child["parent_run_id"] == parent
    assert ended(served, child["id"])["status"] == "completed"
    assert sorted(new_prompts(bed, before).values()) == [1] * 9 + [2] * 3

    manifest_names_its_parent(served.get(f"/runs/{child['id']}")["manifest"], parent)

    both_count_as_one_evaluation(served, parent, child["id"])

    again = served.post(
        f"/runs/{parent}/recover",
        {key: plan[key] for key in ("mode", "plan_sha256")}
        | {"cells": plan["eligible_cells"][:1], "idempotency_key": "third", "acknowledge_new_attempt": True},
    )
    assert (again.status_code, again.json()["code"]) == (400, "recovery_plan_required")
    assert again.json()["dispatch_started"] is False
    assert sorted(new_prompts(bed, before).values()) == [1] * 9 + [2] * 3


def test_cells_that_were_never_sent_run_in_a_child_and_nothing_is_sent_twice(
    served: Stack, bed: Testbed, tmp_path: Path
) -> None:
    bed.faults(fault("hang_before_headers", "Question", times=2))
    before = bed.sent()
    document = manifest(mmlu_cases(10), [target(bed, "medium"), target(bed, "large")], concurrency=2)
    parent = start(served, tmp_path, document, "cancelled")
    until(lambda: bed.in_hand() >= 2)
    served.cli("cancel", parent)
    assert ended(served, parent)["progress"]["cancelled"] == 20
    assert sorted(new_prompts(bed, before).values()) == [1, 1]

    plan = served.post(f"/runs/{parent}/recover-plan", {"mode": "undispatched"}).json()
    assert plan["counts"] == {
        **{"total": 20, "eligible": 18, "excluded": 2},
        "excluded_by_reason": {"already_dispatched_requires_explicit_new_attempt": 2},
    }
    chosen = [cell for cell in plan["eligible_cells"] if cell["target_id"] == "large"]
    body = {"mode": "undispatched", "plan_sha256": plan["plan_sha256"], "cells": chosen, "idempotency_key": "rest"}
    child = served.post(f"/runs/{parent}/recover", body)
    assert child.status_code == 201, child.text
    assert [one["id"] for one in child.json()["manifest"]["targets"]] == ["large"]
    done = ended(served, child.json()["id"])
    assert (done["status"], done["progress"]["completed"]) == ("completed", len(chosen))
    assert set(new_prompts(bed, before).values()) == {1}
    left = served.post(f"/runs/{parent}/recover-plan", {"mode": "undispatched"}).json()
    assert left["counts"]["excluded_by_reason"]["already_claimed_by_child_attempt"] == len(chosen)
    assert {cell["target_id"] for cell in left["eligible_cells"]} == {"medium"}
    merged = served.get(f"/runs/{parent}/report", lineage="true")
    assert merged["status"] == "cancelled", "it is no complete evaluation"
    by_target = {row["id"]: row["completed"] for row in merged["summary"]["targets"]}
    assert by_target == {"medium": 0, "large": len(chosen)}


def test_an_interrupted_call_is_settled_by_hand_and_its_cell_recovered_as_undispatched(
    served: Stack, bed: Testbed, tmp_path: Path
) -> None:
    bed.faults(fault("hang_before_headers", "Question", times=2))
    before = bed.sent()
    parent = start(served, tmp_path, manifest(mmlu_cases(2), [target(bed, "small")]), "interrupted")
    until(lambda: bed.in_hand() >= 2)
    served.kill("srbench_executor")
    assert ended(served, parent)["status"] == "interrupted"
    calls = served.get(f"/runs/{parent}/calls")["calls"]
    assert [call["status"] for call in calls] == ["sent_unknown"] * 2
    plan = served.cli("recover-plan", parent)
    reasons = {"ambiguous_dispatch_requires_reconciliation": 2}
    assert plan["counts"]["excluded_by_reason"] == reasons
    failed = served.cli("recover-plan", parent, "--mode", "failed")
    assert [cell["state"] for cell in failed["eligible_cells"]] == ["interrupted"] * 2

    usage = tmp_path / "usage.json"
    usage.write_text(
        json.dumps({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}})
    )
    settled = served.cli("settle", parent, calls[0]["id"], "--as", "happened", "--usage", str(usage), "--note", "console")
    assert settled["settlement"]["cost_usd"] > 0
    assert settled["cost_usd"] is None, "the receipt stays as it came"
    assert settled["settlement"]["actor"] == "local"
    body = {"as": "did-not-happen", "note": "the provider has no such request"}
    answer = served.post(f"/runs/{parent}/calls/{calls[1]['id']}/settle", body)
    assert answer.status_code == 200, answer.text
    report = served.get(f"/runs/{parent}/report")
    assert report["summary"]["known_spend_usd"] == settled["settlement"]["cost_usd"]
    assert report["summary"]["spend_upper_usd"] == settled["settlement"]["cost_usd"]
    assert served.get(f"/runs/{parent}/spend")["unknown_cost_count"] == 0

    plan_file = tmp_path / "plan.json"
    plan = served.cli("recover-plan", parent, "--output", str(plan_file))
    assert [cell["case_id"] for cell in plan["eligible_cells"]] == [calls[1]["case_id"]]
    assert plan["excluded"][0]["reason"] == "already_dispatched_requires_explicit_new_attempt"
    child = served.cli("recover", parent, "--plan", str(plan_file), "--idempotency-key", "settled")
    assert ended(served, child["id"])["status"] == "completed"
    assert sorted(new_prompts(bed, before).values()) == [1, 2]
