"""Which cells may be tried again: each rule, in each mode."""

from __future__ import annotations

from dataclasses import replace

import pytest
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import planner_service_pb2 as pb
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.recovery_plan import cell_evidence, propose
from srbench_planner.recovery_rules import LOST_ON_THE_WAY, CellEvidence, Exclusion, exclusion

FAILED = CellEvidence(planned=CellState.FAILED, outcome=CellState.FAILED, reason="http_error", call_count=1)
LOST = replace(FAILED, unknown_cost_count=1)
QUEUED = CellEvidence(planned=CellState.CANCELLED, outcome=None, reason="run_stopped")
INTERRUPTED = CellEvidence(
    planned=CellState.INTERRUPTED,
    outcome=CellState.INTERRUPTED,
    reason="executor_lost",
    call_count=1,
    ambiguous_count=1,
    unknown_cost_count=1,
)


def judged(cell: CellEvidence, mode: str, *, priced: bool = True) -> str | None:
    found = exclusion(cell, mode, priced=priced)
    return None if found is None else str(found)


@pytest.mark.parametrize("mode", ["undispatched", "failed"])
def test_an_answer_is_never_tried_again(mode: str) -> None:
    done = CellEvidence(planned=CellState.DONE, outcome=CellState.DONE, call_count=1)
    assert judged(done, mode) == "completed_evidence_is_preserved"
    assert judged(replace(done, claimed=True), mode) == "completed_evidence_is_preserved"


@pytest.mark.parametrize("mode", ["undispatched", "failed"])
@pytest.mark.parametrize("cell", [FAILED, LOST, QUEUED, INTERRUPTED])
def test_a_claimed_cell_is_its_childs_for_ever(cell: CellEvidence, mode: str) -> None:
    assert judged(replace(cell, claimed=True), mode) == "already_claimed_by_child_attempt"


@pytest.mark.parametrize("mode", ["undispatched", "failed"])
def test_a_call_without_an_end_is_ambiguous(mode: str) -> None:
    assert judged(replace(FAILED, open_count=1), mode) == "ambiguous_dispatch_requires_reconciliation"


def test_a_call_whose_acceptance_nobody_knows_is_ambiguous_unless_a_new_attempt_is_wanted() -> None:
    assert judged(INTERRUPTED, "undispatched") == "ambiguous_dispatch_requires_reconciliation"
    assert judged(INTERRUPTED, "failed") is None


@pytest.mark.parametrize("mode", ["undispatched", "failed"])
def test_an_answer_that_only_the_planner_knows_of_is_ambiguous(mode: str) -> None:
    cell = CellEvidence(planned=CellState.DONE, outcome=None, call_count=1)
    assert judged(cell, mode) == "ambiguous_saved_result_requires_reconciliation"


def test_a_dispatched_cell_needs_mode_failed() -> None:
    assert judged(FAILED, "undispatched") == "already_dispatched_requires_explicit_new_attempt"
    assert judged(FAILED, "failed") is None


@pytest.mark.parametrize("cell", [QUEUED, CellEvidence(planned=CellState.FAILED, outcome=CellState.FAILED)])
def test_a_cell_of_which_nothing_was_accepted_needs_mode_undispatched(cell: CellEvidence) -> None:
    assert judged(cell, "failed") == "never_dispatched_use_undispatched_mode"
    assert judged(cell, "undispatched") is None


@pytest.mark.parametrize("reason", sorted(LOST_ON_THE_WAY))
def test_an_answer_that_was_lost_on_the_way_can_be_tried_again_though_its_cost_is_unknown(reason: str) -> None:
    assert judged(replace(LOST, reason=reason), "failed") is None


@pytest.mark.parametrize("reason", ["grading_failed", "identity_mismatch", "receipt_invalid", "content_filter"])
def test_a_failure_with_an_answer_needs_its_cost_first_where_a_budget_is_enforced(reason: str) -> None:
    cell = replace(LOST, reason=reason)
    assert judged(cell, "failed") == "unfinished_or_unknown_accounting_requires_reconciliation"
    assert judged(replace(cell, unknown_cost_count=0), "failed") is None
    assert judged(cell, "failed", priced=False) is None


def test_every_code_of_the_released_service_has_a_rule() -> None:
    assert {str(code) for code in Exclusion} == {
        "completed_evidence_is_preserved",
        "already_claimed_by_child_attempt",
        "ambiguous_dispatch_requires_reconciliation",
        "ambiguous_saved_result_requires_reconciliation",
        "already_dispatched_requires_explicit_new_attempt",
        "never_dispatched_use_undispatched_mode",
        "unfinished_or_unknown_accounting_requires_reconciliation",
    }


def a_run() -> pb.Run:
    run = pb.Run(id="run-1", status="failed")
    run.plan.cost_policy = "require_priced"
    run.plan.plan_sha256 = "a" * 64
    run.plan.limits.max_cost_picodollars = 5 * 10**12
    return run


def evidence(claimed: set[int], **facts: int) -> list[CellEvidence]:
    ledger = {(1, 0): ledger_pb.CellLedger(case_index=1, outcome=4, reason="http_error", call_count=1, **facts)}  # type: ignore[arg-type]
    states = {0: (CellState.DONE, ""), 1: (CellState.FAILED, "http_error"), 2: (CellState.CANCELLED, "run_stopped")}
    return cell_evidence(CellMatrix(3, 1), states, claimed, {(0, 0): ledger_pb.CellLedger(outcome=3), **ledger})


PAIRS = [("c0", "t"), ("c1", "t"), ("c2", "t")]


def test_a_proposal_counts_every_cell_once_and_shows_what_is_known_of_its_cost() -> None:
    found = propose(
        a_run(),
        PAIRS,
        evidence(set(), unknown_cost_count=1, spend_upper_picodollars=70),
        accounting_pb.Spend(known_cost_picodollars=10, reserved_picodollars=70, unknown_cost_count=1),
        "failed",
    ).message
    (cell,) = found.eligible_cells
    assert (cell.case_id, cell.state, cell.reason, cell.spend_complete) == ("c1", "failed", "http_error", False)
    assert cell.spend_upper_picodollars == 70
    assert (found.counts.total, found.counts.eligible, found.counts.excluded) == (3, 1, 2)
    assert dict(found.counts.excluded_by_reason) == {
        "completed_evidence_is_preserved": 1,
        "never_dispatched_use_undispatched_mode": 1,
    }
    assert (found.parent.spend_complete, found.parent.spend_upper_picodollars) == (False, 80)
    assert found.new_attempt_budget_picodollars == 5 * 10**12
    assert found.requires_new_attempt_acknowledgment


def test_a_missing_reservation_leaves_the_upper_bound_open() -> None:
    found = propose(a_run(), PAIRS, evidence(set(), unknown_cost_count=1), accounting_pb.Spend(), "failed").message
    assert not found.eligible_cells[0].HasField("spend_upper_picodollars")


def test_the_digest_changes_with_what_is_eligible_and_not_with_the_money() -> None:
    spend = accounting_pb.Spend()

    def digest(mode: str, cells: list[CellEvidence]) -> str:
        return propose(a_run(), PAIRS, cells, spend, mode).message.plan_sha256

    assert digest("failed", evidence(set())) == digest("failed", evidence(set(), known_spend_picodollars=7))
    assert digest("failed", evidence(set())) != digest("failed", evidence({1}))
    assert digest("failed", evidence(set())) != digest("undispatched", evidence(set()))
