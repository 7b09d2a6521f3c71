"""The manifest of a child run: the parent's cells, asked exactly as before."""

from __future__ import annotations

from typing import Any

import pytest
from srbench_kit.errors import Conflict
from srbench_planner.recovery_manifest import cells_sha256, check_same_terms, child_manifest


def parent(**more: Any) -> dict[str, Any]:
    return {
        "version": "sr-bench-1.0",
        "name": "nightly",
        "targets": [{"id": "a", "kind": "single"}, {"id": "b", "kind": "single"}, {"id": "judge", "kind": "single"}],
        "limits": {"max_output_tokens": 10, "concurrency": 2},
        "sampling": {"temperature": 0},
        "plan_sha256": "a" * 64,
        "case_sha256": "b" * 64,
        "experiment": {"id": "exp-" + "0" * 32, "role": "baseline"},
        **more,
    }


def test_targets_without_a_chosen_cell_are_left_out() -> None:
    child = child_manifest(parent(), [{"id": "c"}], [("c", "b")])
    assert [target["id"] for target in child["targets"]] == ["b"]  # type: ignore[index,union-attr,call-overload]
    assert child["execution_cells"] == [{"case_id": "c", "target_id": "b"}]
    assert child["name"] == "recovery of nightly"
    assert child["cases"] == [{"id": "c"}]
    assert not {"plan_sha256", "experiment", "auxiliary_targets"} & child.keys()


def test_a_judge_that_has_no_cell_becomes_an_auxiliary() -> None:
    options = {"hle": {"judge": "judge"}}
    child = child_manifest(parent(benchmark_options=options), [{"id": "c"}], [("c", "a")])
    assert child["auxiliary_targets"] == {"judge": {"id": "judge", "kind": "single"}}


def test_a_bound_dataset_needs_no_cases_and_a_name_gets_its_prefix_once() -> None:
    bound = parent(dataset={"path": "/d", "sha256": "c" * 64}, name="recovery of nightly")
    child = child_manifest(bound, [{"id": "c"}], [("c", "a")])
    assert "cases" not in child
    assert child["name"] == "recovery of nightly"


def test_a_native_window_is_worked_out_again() -> None:
    child = child_manifest(parent(output_policy="native"), [{"id": "c"}], [("c", "a")])
    assert child["limits"] == {"concurrency": 2}


def test_a_child_that_would_ask_otherwise_is_refused_with_what_changed() -> None:
    changed = {**parent(), "sampling": {"temperature": 1}, "targets": [{"id": "a", "kind": "single", "model": "new"}]}
    with pytest.raises(Conflict) as caught:
        check_same_terms(parent(), changed)
    assert caught.value.reason == "PARENT_PLAN_CHANGED"
    assert caught.value.facts["fields"] == "sampling, targets.a"
    check_same_terms(parent(), {**parent(), "targets": parent()["targets"][:1]})


def test_chosen_cells_have_one_digest() -> None:
    assert cells_sha256([("c", "a")]) == cells_sha256([("c", "a")]) != cells_sha256([("c", "b")])
