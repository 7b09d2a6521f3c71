"""One question to a router about what it would do. No model is called, nothing is reserved, nothing is paid.

A preview changes nothing at the router, so that one that failed before an answer came may be asked again, and one whose
executor died goes back to the queue.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, object_of, to_value

from srbench_executor import previewing, request
from srbench_executor.admission import asked_wait_s, wait_s
from srbench_executor.caller import CONNECT_S, SHORTEST_CALL_S, Caller, deadline_of
from srbench_executor.exchange import Outgoing
from srbench_executor.fetching import Fetch, FetchBounds, Fetched, FetchFailed
from srbench_executor.grading import GradeStream
from srbench_executor.runs import Run
from srbench_executor.work import Cell, Verdict

# A routing document is kept whole; one that is larger is no answer.
MAX_DOCUMENT_BYTES = 512 * 1024
_BUSY = frozenset({429, 503, 529})


async def preview(cell: Cell, caller: Caller, _grader: GradeStream) -> Verdict:
    """Asks the router for its decision and keeps the whole routing document, without a grade."""
    run = cell.run
    assert run is not None, "a cell's run is fetched before its driver begins"
    subject = run.subjects[cell.lease.target_index]
    target, case = subject.target, cell.lease.public_case
    name = target.preview_api_key_env or target.api_key_env
    key = os.environ.get(name, "") if name else ""
    if name and not request.usable_key(key):
        what = "is not set" if not key else "holds characters that no header can carry"
        return _failed("missing_key", f"the environment variable {name} of the executor {what}")
    context = object_of(run.context.preview_context)
    where = request.address(target.preview_url, "preview_url")
    messages = request.chat_messages(case.messages)
    fields = previewing.preview_fields(target, subject.params, messages, object_of(case.request_fields), context)
    outgoing = request.outgoing(where, fields, previewing.preview_headers(target, where, key))
    try:
        answer = await _ask(cell, caller, run, outgoing)
        document = previewing.routing_document(target, answer.status, run.redactor.data(answer.body))
        details: dict[str, Json] = {"routing": document, "preview_context": context}
        to_value(details)
    except FetchFailed as error:
        return _ended(cell, error.reason, run.redactor.text(error.message))
    except previewing.BadPreview as error:
        return _failed(error.reason, run.redactor.text(error.message))
    except InvalidInput as error:
        return _failed("protocol_error", f"the preview cannot be kept: {error.message}")
    return Verdict(state=queue_pb.CELL_STATE_DONE, details=details)


async def _ask(cell: Cell, caller: Caller, run: Run, outgoing: Outgoing) -> Fetched:
    """The router's answer; it is asked again while it is busy or cannot be reached, as long as the plan allows.

    Raises: `FetchFailed`.
    """
    give_up_at = time.monotonic() + run.limits.admission_wait_s
    attempt = 0
    while True:
        asked_s, answer, failure = None, None, None
        try:
            answer = await _once(cell, caller, run, outgoing)
            if answer.status not in _BUSY:
                return answer
            asked_s = asked_wait_s(answer.headers, datetime.now(UTC))
        except FetchFailed as error:
            if error.accepted or cell.stopped is not None:
                raise
            failure = error
        pause_s = wait_s(attempt, asked_s)
        late = time.monotonic() + pause_s > min(give_up_at, deadline_of(cell, run))
        if late or not await cell.pause(pause_s):
            if answer is not None:
                return answer
            assert failure is not None
            raise failure
        attempt += 1


async def _once(cell: Cell, caller: Caller, run: Run, outgoing: Outgoing) -> Fetched:
    limits = run.limits
    total_s = min(limits.total_timeout_s, max(SHORTEST_CALL_S, deadline_of(cell, run) - time.monotonic()))
    fetch = Fetch(
        FetchBounds(
            total_s=total_s,
            idle_s=min(limits.idle_timeout_s, total_s),
            connect_s=min(CONNECT_S, total_s),
            body_bytes=MAX_DOCUMENT_BYTES,
        )
    )
    cell.fetch = fetch
    try:
        if cell.stopped is not None:
            fetch.stop(cell.stopped)
            raise FetchFailed(cell.stopped.reason, cell.stopped.message, accepted=False)
        return await fetch.run(caller.transports.for_request(outgoing), outgoing)
    finally:
        cell.fetch = None


def _ended(cell: Cell, reason: str, message: str) -> Verdict:
    if cell.stopped is None:
        return _failed(reason, message)
    if cell.stopped.reason == "executor_lost":
        # This executor is being stopped; a preview can simply be asked again by another.
        return Verdict(state=queue_pb.CELL_STATE_QUEUED)
    return Verdict(state=queue_pb.CELL_STATE_CANCELLED, reason=cell.stopped.reason, message=cell.stopped.message)


def _failed(reason: str, message: str) -> Verdict:
    return Verdict(state=queue_pb.CELL_STATE_FAILED, reason=reason, message=message)
