"""What the commands about recovery and bundles make of files that people give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_cli.bundling import _drop_cases, _Evidence, answers_by_digest
from srbench_cli.commands.recover import read_plan
from srbench_cli.commands.settle import fill_usage
from srbench_kit.canonical import digest
from srbench_kit.errors import DataLoss, InvalidInput
from srbench_kit.values import from_value, object_of, to_value

CELLS = [{"case_id": "c1", "target_id": "t", "state": "failed"}, {"case_id": "c2", "target_id": "t"}]
PLAN: dict[str, Any] = {"parent_run_id": "run-1", "mode": "failed", "plan_sha256": "a" * 64, "eligible_cells": CELLS}


def test_a_reviewed_plan_recovers_all_its_cells_or_the_selected_ones() -> None:
    request = read_plan(PLAN, "run-1")
    assert [(cell.case_id, cell.target_id) for cell in request.cells] == [("c1", "t"), ("c2", "t")]
    assert (request.run_id, request.mode, request.plan_sha256) == ("run-1", "failed", "a" * 64)
    assert [cell.case_id for cell in read_plan({**PLAN, "selected_cells": CELLS[1:]}, "run-1").cells] == ["c2"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "no object"),
        ({**PLAN, "mode": 1}, "mode is missing"),
        ({**PLAN, "parent_run_id": "run-2"}, "of run run-2, not of run-1"),
        ({**PLAN, "eligible_cells": []}, "nothing to try again"),
        ({**PLAN, "selected_cells": []}, "nothing to try again"),
        ({**PLAN, "eligible_cells": [{"case_id": "c1"}]}, "eligible_cells[0] has no case_id and target_id"),
        ({**PLAN, "eligible_cells": ["c1"]}, "eligible_cells[0]"),
    ],
)
def test_a_file_that_is_no_plan_says_why(document: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_plan(document, "run-1")
    assert caught.value.reason == "BAD_RECOVERY_PLAN"
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("document", "usage", "model"),
    [
        ({"prompt_tokens": 1}, {"prompt_tokens": 1}, ""),
        ({"usage": {"prompt_tokens": 1}, "model": "m"}, {"prompt_tokens": 1}, "m"),
        ({"usage": {"prompt_tokens": 1}, "extra": 2}, {"usage": {"prompt_tokens": 1}, "extra": 2}, ""),
    ],
)
def test_a_usage_file_is_a_usage_object_or_says_what_is_what(tmp_path: Path, document: Any, usage: Any, model: str) -> None:
    path = tmp_path / "usage.json"
    path.write_text(json.dumps(document))
    request = ledger_pb.SettleCallRequest()
    fill_usage(request, str(path))
    assert (from_value(request.usage), request.model) == (usage, model)


@pytest.mark.parametrize("document", [[], {}, {"usage": {"a": 1}, "model": 5}])
def test_a_usage_file_without_usage_is_refused(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "usage.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput) as caught:
        fill_usage(ledger_pb.SettleCallRequest(), str(path))
    assert caught.value.reason == "BAD_USAGE"


def test_answers_are_known_by_the_digest_of_their_case() -> None:
    case = {"id": "b/1", "benchmark": "b", "answer": "A"}
    assert answers_by_digest([case], "x") == {digest(case): case}
    assert answers_by_digest(case, "x") == {digest(case): case}
    with pytest.raises(InvalidInput) as caught:
        answers_by_digest([case, {"id": "b/2"}], "cases.jsonl")
    assert "line 2" in caught.value.message


def test_evidence_comes_in_parts_and_must_match_its_name() -> None:
    import hashlib

    data = b"abcdef"
    sha256 = hashlib.sha256(data).hexdigest()

    def part(offset: int, piece: bytes, name: str = sha256) -> ledger_pb.LedgerEvidence:
        return ledger_pb.LedgerEvidence(sha256=name, offset=offset, byte_count=6, data=piece)

    taken = _Evidence()
    assert taken.take(part(0, data[:4])) is None
    assert taken.take(part(4, data[4:])) == data
    with pytest.raises(DataLoss):
        taken.take(part(0, data, "0" * 64))


def test_texts_of_cases_are_taken_out_of_a_run() -> None:
    run = planner_pb.Run()
    run.plan.manifest.CopyFrom(to_value({"name": "n", "cases": [{"id": "secret"}], "seed": 1}))
    _drop_cases(run)
    assert object_of(run.plan.manifest) == {"name": "n", "seed": 1}
