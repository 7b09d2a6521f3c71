"""The proposal of a recovery: every cell judged by the rules, counted, and named by a digest. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench_kit.canonical import digest
from srbench_kit.jsonview import usd
from srbench_kit.values import Json

from srbench_planner import recovery_manifest
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.recovery_rules import FAILED, CellEvidence, Exclusion, exclusion

VERSION = "sr-bench-recovery-v1"
SCOPES = {
    "undispatched": "a child run of cells of which no call was ever accepted; nothing is sent a second time",
    "failed": "a child run of cells that were sent and gave no answer; each is sent, and paid for, once more",
}
_STATES = {CellState.FAILED: "failed", CellState.CANCELLED: "cancelled", CellState.INTERRUPTED: "interrupted"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A recovery plan, as its reader sees it."""

    message: recovery_pb.RecoveryPlan

    def block(self, cells: Sequence[tuple[str, str]]) -> dict[str, Json]:
        """The `recovery` block of a child of the chosen cells."""
        message, parent = self.message, self.message.parent
        progress: dict[str, Json] = {
            name: getattr(parent.progress, name) for name in ("total", "completed", "failed", "running")
        }
        return {
            "parent_run_id": message.parent_run_id,
            "mode": message.mode,
            "selected_cells": recovery_manifest.pairs(cells),
            "selected_cells_sha256": recovery_manifest.cells_sha256(cells),
            "parent_snapshot": {
                "status": parent.status,
                "progress": progress,
                "known_spend_usd": usd(parent.known_spend_picodollars),
                "spend_complete": parent.spend_complete,
                "spend_upper_usd": usd(parent.spend_upper_picodollars),
                "plan_sha256": parent.plan_sha256,
            },
            "recovery_subset": len(cells) < message.counts.total,
            "new_attempt_acknowledged": message.mode == FAILED,
        }


def cell_evidence(
    matrix: CellMatrix,
    states: Mapping[int, tuple[int, str]],
    claimed: set[int],
    ledger: Mapping[tuple[int, int], ledger_pb.CellLedger],
) -> list[CellEvidence]:
    """What is known of each cell, in dispatch order. `states` are the planner's, `ledger` is by (case, target)."""
    found: list[CellEvidence] = []
    for cell in range(len(matrix)):
        state, reason = states.get(cell, (CellState.QUEUED, ""))
        facts = ledger.get(matrix.pair(cell), ledger_pb.CellLedger())
        known = facts.HasField("spend_upper_picodollars") or not facts.call_count
        found.append(
            CellEvidence(
                planned=CellState(state),
                outcome=CellState(facts.outcome) if facts.outcome else None,
                reason=facts.reason if facts.outcome else reason,
                call_count=facts.call_count,
                open_count=facts.open_count,
                ambiguous_count=facts.ambiguous_count,
                unknown_cost_count=facts.unknown_cost_count,
                known_spend=facts.known_spend_picodollars,
                spend_upper=facts.spend_upper_picodollars if known else None,
                claimed=cell in claimed,
            )
        )
    return found


def propose(
    run: pb.Run,
    pairs: Sequence[tuple[str, str]],
    evidence: Sequence[CellEvidence],
    spend: accounting_pb.Spend,
    mode: str,
) -> Proposal:
    """The proposal. `pairs` are (case id, target id) and `evidence` what is known of each cell, in dispatch order."""
    priced = run.plan.cost_policy == "require_priced"
    judged = [exclusion(cell, mode, priced=priced) for cell in evidence]
    message = recovery_pb.RecoveryPlan(
        parent_run_id=run.id,
        mode=mode,
        parent=_parent(run, spend),
        requires_new_attempt_acknowledgment=mode == FAILED,
        scope=SCOPES[mode],
    )
    if priced:
        message.new_attempt_budget_picodollars = run.plan.limits.max_cost_picodollars
    for (case, target), cell, why in zip(pairs, evidence, judged, strict=True):
        if why is None:
            message.eligible_cells.append(_eligible(case, target, cell))
        else:
            message.excluded.add(case_id=case, target_id=target, reason=why)
    message.counts.CopyFrom(_counts(judged))
    message.plan_sha256 = _digest(message)
    return Proposal(message)


def _parent(run: pb.Run, spend: accounting_pb.Spend) -> recovery_pb.RecoveryParent:
    return recovery_pb.RecoveryParent(
        status=run.status,
        progress=run.progress,
        known_spend_picodollars=spend.known_cost_picodollars,
        spend_complete=not (spend.unknown_cost_count or spend.open_call_count),
        spend_upper_picodollars=spend.known_cost_picodollars + spend.reserved_picodollars,
        plan_sha256=run.plan.plan_sha256,
    )


def _eligible(case: str, target: str, cell: CellEvidence) -> recovery_pb.EligibleCell:
    return recovery_pb.EligibleCell(
        case_id=case,
        target_id=target,
        state=_STATES.get(cell.state, "queued"),
        reason=cell.reason,
        call_count=cell.call_count,
        known_spend_picodollars=cell.known_spend,
        spend_complete=not cell.unknown_cost_count,
        spend_upper_picodollars=cell.spend_upper,
    )


def _counts(judged: Sequence[Exclusion | None]) -> recovery_pb.RecoveryCounts:
    by_reason = Counter(str(why) for why in judged if why is not None)
    excluded = by_reason.total()
    return recovery_pb.RecoveryCounts(
        total=len(judged), eligible=len(judged) - excluded, excluded=excluded, excluded_by_reason=by_reason
    )


def _digest(message: recovery_pb.RecoveryPlan) -> str:
    """Names what was reviewed: which cells can be tried again and why the others cannot. Not the money, which late truth
    may still move."""
    return digest(
        {
            "version": VERSION,
            "parent_run_id": message.parent_run_id,
            "parent_plan_sha256": message.parent.plan_sha256,
            "mode": message.mode,
            "eligible": [[cell.case_id, cell.target_id] for cell in message.eligible_cells],
            "excluded": [[cell.case_id, cell.target_id, cell.reason] for cell in message.excluded],
        }
    )
