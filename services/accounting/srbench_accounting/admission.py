"""May this call leave, and does this end count? Pure rules over what the ledger knows of a cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from srbench.v1 import accounting_service_pb2 as pb

MAX_CELL = 2**32 - 1
MAX_ORDINAL = 2**16 - 1
_SENT = int(pb.CALL_STATUS_SENT)
KNOWN_ENDS = frozenset(
    {pb.CALL_STATUS_COMPLETED, pb.CALL_STATUS_FAILED, pb.CALL_STATUS_CANCELLED, pb.CALL_STATUS_NOT_ACCEPTED}
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a fact was not taken: a stable reason and a sentence."""

    reason: str
    message: str


@dataclass(slots=True)
class CallView:
    """One dispatched call. `status` is `SENT` as long as it has no end. Money in picodollars."""

    call_id: int
    ordinal: int
    offer: int
    token: int
    target_index: int
    auxiliary: int | None
    reserved: int | None
    dispatch_us: int
    status: int


@dataclass(slots=True)
class CellView:
    """What the ledger knows of a cell.

    Attributes:
        fence: the lowest token that may act for it.
        calls: by ordinal and offer.
        ended: whether it has an outcome.
    """

    fence: int = 0
    calls: dict[tuple[int, int], CallView] = field(default_factory=dict)
    ended: bool = False

    @property
    def open(self) -> bool:
        """Whether a dispatched call has no end."""
        for call in self.calls.values():  # noqa: SIM110 - a loop costs half of what `any` does, for every outcome
            if call.status == _SENT:
                return True
        return False

    @property
    def dispatched(self) -> bool:
        """Whether any call was dispatched that was not provably refused."""
        return any(call.status != pb.CALL_STATUS_NOT_ACCEPTED for call in self.calls.values())

    @property
    def lowest_token(self) -> int:
        """The lowest token that may act: what the planner fenced, and what a later lease already used."""
        lowest = self.fence
        for call in self.calls.values():
            lowest = max(lowest, call.token)
        return lowest

    def last_offer(self, ordinal: int) -> CallView | None:
        """The last offer of a call of the cell."""
        offers = [offer for number, offer in self.calls if number == ordinal]
        return self.calls[ordinal, max(offers)] if offers else None


def admit(key: pb.CallKey, token: int, cell: CellView, *, halt_reason: str, max_calls_per_case: int) -> Refusal | None:
    """Whether a dispatch may be recorded, money apart; `None` when it may, or was already and has no end.

    A retransmission is told by the same key and token: it is accepted again even when the run was halted in between, for
    the sender may have sent already, and only a call that it knows of can be settled.
    """
    known = cell.calls.get((key.ordinal, key.offer))
    if known is not None and (known.token != token or known.status != _SENT):
        return Refusal(
            "ALREADY_DISPATCHED", f"call {key.ordinal}, offer {key.offer} of cell {key.cell} was dispatched before"
        )
    if token < cell.lowest_token:
        return Refusal("OUTRUN_TOKEN", f"token {token} of cell {key.cell} was outrun by {cell.lowest_token}")
    if known is not None:
        return None
    if cell.ended:
        return Refusal("CELL_ENDED", f"cell {key.cell} has an outcome already")
    if halt_reason:
        return Refusal("RUN_HALTED", f"the run was halted: {halt_reason}")
    if key.ordinal >= max_calls_per_case:
        return Refusal("CALL_LIMIT", f"call {key.ordinal} is one too many; max_calls_per_case is {max_calls_per_case}")
    return _in_order(key, cell)


def _in_order(key: pb.CallKey, cell: CellView) -> Refusal | None:
    if key.offer > 0:
        before = cell.calls.get((key.ordinal, key.offer - 1))
        if before is None or before.status != pb.CALL_STATUS_NOT_ACCEPTED:
            return Refusal("OUT_OF_ORDER", f"offer {key.offer} needs offer {key.offer - 1} to be settled as not accepted")
    elif key.ordinal > 0:
        last = cell.last_offer(key.ordinal - 1)
        if last is None or last.status == _SENT:
            return Refusal("OUT_OF_ORDER", f"call {key.ordinal} needs call {key.ordinal - 1} to be settled")
    return None


def takes_force(*, old_status: int, old_evidence: bool, new_status: int, new_evidence: bool) -> bool:
    """Whether a later receipt takes the place of the one in force.

    Only an unknown end yields: to any known end, and to an unknown end with a partial stream when it has none itself.
    """
    if old_status != pb.CALL_STATUS_SENT_UNKNOWN:
        return False
    return new_status in KNOWN_ENDS or (new_evidence and not old_evidence)
