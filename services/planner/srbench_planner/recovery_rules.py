"""Which cells of a run that has ended may be tried again, and why the others may not. Pure.

Never sent twice without a word: `undispatched` takes only cells of which no call was ever accepted; everything that was or
may have been accepted needs mode `failed` and an acknowledgement.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from srbench_planner.cells import CellState

UNDISPATCHED, FAILED = "undispatched", "failed"
MODES = (UNDISPATCHED, FAILED)

# A cell that ended like this lost its answer on the way: nothing more can become known of what it cost, so that waiting
# for it would be for ever. The reservation is the upper bound.
LOST_ON_THE_WAY = frozenset(
    {
        *("http_error", "rate_limited", "overloaded", "parameter_refused", "auth_refused", "upstream_error"),
        *("connect_failed", "name_not_resolved", "tls_failed", "stream_cut", "protocol_error"),
        *("idle_timeout", "deadline_exceeded", "executor_lost", "cancelled", "run_stopped"),
    }
)


class Exclusion(StrEnum):
    """Why a cell cannot be tried again; the words are those of sr-bench 1.0."""

    COMPLETED = "completed_evidence_is_preserved"
    CLAIMED = "already_claimed_by_child_attempt"
    AMBIGUOUS_DISPATCH = "ambiguous_dispatch_requires_reconciliation"
    AMBIGUOUS_RESULT = "ambiguous_saved_result_requires_reconciliation"
    DISPATCHED = "already_dispatched_requires_explicit_new_attempt"
    NEVER_DISPATCHED = "never_dispatched_use_undispatched_mode"
    UNKNOWN_ACCOUNTING = "unfinished_or_unknown_accounting_requires_reconciliation"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEvidence:
    """What planner and ledger say of one cell.

    Attributes:
        planned: where the planner has it.
        outcome: its end in the ledger; `None` when it has none there.
        reason: the stable reason of its end.
        call_count: calls that were, or may have been, accepted.
        open_count: those without an end.
        ambiguous_count: those of which nobody knows whether they were accepted.
        unknown_cost_count: those that ended with an unknown cost.
        known_spend: picodollars.
        spend_upper: picodollars; `None` when a reservation is missing.
        claimed: whether a recovery has it.
    """

    planned: CellState
    outcome: CellState | None = None
    reason: str = ""
    call_count: int = 0
    open_count: int = 0
    ambiguous_count: int = 0
    unknown_cost_count: int = 0
    known_spend: int = 0
    spend_upper: int | None = 0
    claimed: bool = False

    @property
    def state(self) -> CellState:
        """Where the cell stands: facts win over intent."""
        return self.planned if self.outcome is None else self.outcome


def exclusion(cell: CellEvidence, mode: str, *, priced: bool) -> Exclusion | None:
    """Why the cell cannot be tried again in `mode`; `None` when it can. `priced`: the run enforces a budget."""
    if cell.outcome == CellState.DONE:
        return Exclusion.COMPLETED
    if cell.claimed:
        return Exclusion.CLAIMED
    if cell.planned == CellState.DONE:
        # The planner says that there is an answer, the ledger has none.
        return Exclusion.AMBIGUOUS_RESULT
    if cell.open_count:
        return Exclusion.AMBIGUOUS_DISPATCH
    if mode == UNDISPATCHED:
        return _undispatched(cell)
    if not cell.call_count:
        return Exclusion.NEVER_DISPATCHED
    unknown = priced and cell.unknown_cost_count > 0
    lost = cell.state == CellState.INTERRUPTED or cell.reason in LOST_ON_THE_WAY
    return Exclusion.UNKNOWN_ACCOUNTING if unknown and not lost else None


def _undispatched(cell: CellEvidence) -> Exclusion | None:
    if cell.ambiguous_count:
        return Exclusion.AMBIGUOUS_DISPATCH
    return Exclusion.DISPATCHED if cell.call_count else None
