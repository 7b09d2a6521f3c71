"""Facts that can never be recorded as sent: each is refused with the field, the value and what was expected."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb

from srbench_accounting.admission import MAX_CELL, MAX_ORDINAL, Refusal
from srbench_accounting.run_facts import KnownRun

MAX_CALLS = 2**31 - 1
_HEX = "0123456789abcdef"
# Names of enums are looked up slowly, and these are wanted for every fact.
_SUBJECT = int(pb.CALL_ROLE_SUBJECT)
_ROLES = frozenset({_SUBJECT, int(pb.CALL_ROLE_JUDGE), int(pb.CALL_ROLE_SIMULATOR)})
_ENDS = frozenset(
    {
        pb.CALL_STATUS_COMPLETED,
        pb.CALL_STATUS_FAILED,
        pb.CALL_STATUS_CANCELLED,
        pb.CALL_STATUS_SENT_UNKNOWN,
        pb.CALL_STATUS_NOT_ACCEPTED,
    }
)
_STATES = frozenset(
    {
        queue_pb.CELL_STATE_DONE,
        queue_pb.CELL_STATE_FAILED,
        queue_pb.CELL_STATE_CANCELLED,
        queue_pb.CELL_STATE_INTERRUPTED,
    }
)


def dispatch(fact: pb.Dispatch, run: KnownRun) -> Refusal | None:
    """Why a dispatch can never be recorded; `None` when it can."""
    if min(fact.request_byte_count, fact.message_count, fact.max_output_tokens, fact.token, fact.case_index) < 0:
        return _negative(fact)
    if not fact.HasField("dispatch_time"):
        return Refusal("BAD_DISPATCH", "dispatch_time is absent; expected a time")
    if not is_sha256(fact.request_sha256):
        return _bad("dispatch", "request_sha256", fact.request_sha256, "64 lower-case hex digits")
    role, auxiliary = fact.role, fact.auxiliary_target_id
    if role not in _ROLES:
        return _bad("dispatch", "role", role, "subject, judge or simulator")
    if role == _SUBJECT and auxiliary:
        return _bad("dispatch", "auxiliary_target_id", auxiliary, "nothing for a subject's call")
    if role != _SUBJECT and auxiliary not in run.auxiliaries:
        return _bad("dispatch", "auxiliary_target_id", auxiliary, "an auxiliary target of the plan")
    return _key(fact.key) or _target("dispatch", fact.target_index, run)


def settle(fact: pb.Settle) -> Refusal | None:
    """Why a settlement can never be recorded; `None` when it can."""
    if fact.receipt.status not in _ENDS:
        return _bad("settle", "receipt.status", fact.receipt.status, "an end of a call")
    if fact.evidence_sha256 and not is_sha256(fact.evidence_sha256):
        return _bad("settle", "evidence_sha256", fact.evidence_sha256, "64 lower-case hex digits, or nothing")
    return None


def outcome(fact: pb.CellOutcome, run: KnownRun) -> Refusal | None:
    """Why an outcome can never be recorded; `None` when it can."""
    if fact.state not in _STATES:
        return _bad("outcome", "state", fact.state, "done, failed, cancelled or interrupted")
    if not 0 <= fact.cell <= MAX_CELL:
        return _bad("outcome", "cell", fact.cell, f"0 to {MAX_CELL}")
    if fact.token < 0 or fact.case_index < 0:
        return _bad("outcome", "token and case_index", (fact.token, fact.case_index), "0 or more")
    if fact.HasField("score") and not 0 <= fact.score <= 1:
        return _bad("outcome", "score", fact.score, "0 to 1")
    return _target("outcome", fact.target_index, run)


def fences(request: pb.FenceCellsRequest, run: KnownRun) -> Refusal | None:
    """Why fences can never be set; `None` when they can."""
    for fence in request.fences:
        if not 0 <= fence.cell <= MAX_CELL or fence.token < 0 or fence.case_index < 0:
            found = (fence.cell, fence.token, fence.case_index)
            return Refusal(
                "BAD_FENCE", f"cell, token and case_index are {found}; expected 0 or more, a cell up to {MAX_CELL}"
            )
        bad = _target("fence", fence.target_index, run)
        if bad is not None:
            return bad
    return None


def is_sha256(text: str) -> bool:
    """Whether `text` is a SHA-256 in lower-case hex."""
    return len(text) == 64 and not text.strip(_HEX)


def _negative(fact: pb.Dispatch) -> Refusal | None:
    for name in ("request_byte_count", "message_count", "max_output_tokens", "token", "case_index"):
        value: int = getattr(fact, name)
        if value < 0:
            return _bad("dispatch", name, value, "0 or more")
    return None


def _key(key: pb.CallKey) -> Refusal | None:
    if not 0 <= key.cell <= MAX_CELL:
        return _bad("dispatch", "key.cell", key.cell, f"0 to {MAX_CELL}")
    if not 0 <= key.ordinal <= MAX_ORDINAL:
        return _bad("dispatch", "key.ordinal", key.ordinal, f"0 to {MAX_ORDINAL}")
    if not 0 <= key.offer <= MAX_ORDINAL:
        return _bad("dispatch", "key.offer", key.offer, f"0 to {MAX_ORDINAL}")
    return None


def _target(fact: str, target_index: int, run: KnownRun) -> Refusal | None:
    if 0 <= target_index < len(run.targets):
        return None
    return _bad(fact, "target_index", target_index, f"0 to {len(run.targets) - 1}")


def _bad(fact: str, field: str, value: object, expected: str) -> Refusal:
    return Refusal(f"BAD_{fact.upper()}", f"{field} is {value!r}; expected {expected}")
