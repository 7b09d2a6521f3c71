"""The rules that turn refusals, call ends and grades into what becomes of a cell. Pure."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.times import fill_time
from srbench_kit.values import Json, fill_value

from srbench_executor.call import Cut
from srbench_executor.work import Cell, Ended, Refused, Verdict

_REFUSALS: dict[str, tuple[queue_pb.CellState.ValueType, str]] = {
    # Somebody else holds the cell now.
    "OUTRUN_TOKEN": (queue_pb.CELL_STATE_UNSPECIFIED, ""),
    "RUN_HALTED": (queue_pb.CELL_STATE_CANCELLED, "run_stopped"),
    "BUDGET_RESERVED": (queue_pb.CELL_STATE_QUEUED, ""),
    "BUDGET_EXHAUSTED": (queue_pb.CELL_STATE_FAILED, "budget_exhausted"),
    "CALL_LIMIT": (queue_pb.CELL_STATE_FAILED, "call_limit"),
    "STORAGE_FULL": (queue_pb.CELL_STATE_FAILED, "storage_full"),
}
_ENDS: dict[pb.CallStatus.ValueType, queue_pb.CellState.ValueType] = {
    pb.CALL_STATUS_CANCELLED: queue_pb.CELL_STATE_CANCELLED,
    pb.CALL_STATUS_SENT_UNKNOWN: queue_pb.CELL_STATE_INTERRUPTED,
}


def of_refusal(refused: Refused, stopped: Cut | None) -> Verdict:
    """The verdict when accounting refused. `stopped`: why the run was stopped, as far as this process knows."""
    state, reason = _REFUSALS.get(refused.reason, (queue_pb.CELL_STATE_FAILED, "internal_error"))
    if refused.reason == "RUN_HALTED" and stopped is not None:
        reason = stopped.reason
    message = refused.message or f"accounting refused the call: {refused.reason}"
    return Verdict(state=state, reason=reason, message=message if reason else "")


def of_call(ended: Ended) -> Verdict | None:
    """The verdict when a call's end decides it; `None` for a whole answer, which is to be graded."""
    if ended.status == pb.CALL_STATUS_COMPLETED:
        if not ended.quality_failure:
            return None
        return Verdict(state=queue_pb.CELL_STATE_DONE, quality_failure=ended.quality_failure)
    if ended.status == pb.CALL_STATUS_NOT_ACCEPTED and ended.reason == "executor_lost":
        # This executor is being stopped and has sent nothing: another one shall.
        return Verdict(state=queue_pb.CELL_STATE_QUEUED)
    state = _ENDS.get(ended.status, queue_pb.CELL_STATE_FAILED)
    if ended.reason in ("cancelled", "run_stopped"):
        state = queue_pb.CELL_STATE_CANCELLED
    return Verdict(state=state, reason=ended.reason or "internal_error", message=ended.message)


def of_grade(grade: grader_pb.Grade) -> Verdict:
    """The verdict that a grade gives."""
    if grade.failure_reason:
        message = grade.failure_message or f"the answer could not be graded: {grade.failure_reason}"
        return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="grading_failed", message=message, grade=grade)
    return Verdict(state=queue_pb.CELL_STATE_DONE, grade=grade)


def outcome(cell: Cell, verdict: Verdict, now_ns: int) -> pb.CellOutcome:
    """What accounting is told of a cell's end. `now_ns`: nanoseconds since 1970."""
    lease = cell.lease
    found = pb.CellOutcome(
        run_id=lease.run_id,
        cell=lease.cell,
        token=lease.token,
        case_index=lease.case_index,
        target_index=lease.target_index,
        state=verdict.state,
        reason=verdict.reason,
        message=verdict.message,
    )
    fill_time(found.start_time, cell.began_ns)
    fill_time(found.finish_time, now_ns)
    if verdict.grade is not None:
        _fill_grade(found, verdict.grade)
    elif verdict.quality_failure:
        found.correct, found.score, found.output_limit = False, 0.0, True
        facts: dict[str, Json] = {"quality_failure": verdict.quality_failure, "output_complete": False}
        fill_value(found.details, facts)
    elif verdict.details is not None:
        fill_value(found.details, verdict.details)
    return found


def _fill_grade(found: pb.CellOutcome, grade: grader_pb.Grade) -> None:
    if grade.HasField("correct"):
        found.correct = grade.correct
    if grade.HasField("score"):
        found.score = grade.score
    if grade.HasField("extracted"):
        found.answer.CopyFrom(grade.extracted)
    found.answer_status = grade.answer_status
    if grade.HasField("strict_format"):
        found.strict_format = grade.strict_format
    found.grader_version = grade.grader_version
    if grade.details.object_value.members:
        found.details.CopyFrom(grade.details)
