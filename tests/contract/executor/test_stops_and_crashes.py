"""The whole executor between fake services: cancelled runs, lost leases, draining, a full store, SIGTERM and SIGKILL."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting.rederive import receipt_from, receipt_values
from srbench_executor.spool import Spool
from srbench_kit.completion import read_answer
from srbench_kit.errors import Conflict

from tests.contract.executor.streams import content, whole
from tests.waiting import PATIENCE_S, until_async


async def test_a_cancelled_run_stops_its_streams_without_waiting_for_their_deadlines(rig: Any, answer_type: Any) -> None:
    limits = rig.queue.context.limits
    limits.total_timeout_s = limits.idle_timeout_s = limits.case_timeout_s = 600
    rig.upstream.answers = [answer_type(chunks=[(0, content("half"))], end="hang")]
    rig.queue.add(*(rig.lease(cell) for cell in range(4)))
    await rig.start_executor()
    await until_async(lambda: len(rig.upstream.requests) == 4)
    rig.queue.stopped = [queue_pb.StoppedRun(run_id="run-1", reason="cancelled")]
    completions = await rig.finished(4)
    assert {(done.state, done.reason) for done in completions} == {(queue_pb.CELL_STATE_CANCELLED, "cancelled")}
    for settle in rig.ledger.settles:
        assert (settle.receipt.status, settle.receipt.usage_final) == (pb.CALL_STATUS_CANCELLED, False)
        assert b"half" in rig.ledger.saved(settle).body
    await until_async(lambda: rig.upstream.open_connections == 0)


async def test_a_lost_lease_is_settled_but_decides_nothing(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=[(0, content("half"))], end="hang")]
    lease = rig.lease()
    rig.queue.add(lease)
    await rig.start_executor()
    await until_async(lambda: bool(rig.upstream.requests))
    rig.queue.lost = [queue_pb.LeaseRef(run_id="run-1", cell=0, token=1)]
    await until_async(lambda: bool(rig.ledger.settles))
    await rig.stop_executor()
    assert (rig.ledger.outcomes, rig.queue.completions) == ([], [])


async def test_what_calls_do_is_told_while_they_do_it(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=[(0, content("half"))], end="hang")]
    rig.queue.add(rig.lease())
    began = time.time()
    await rig.start_executor()
    await until_async(lambda: bool(rig.ledger.activity) and rig.ledger.activity[-1].calls[0].phase == "streaming")
    entry = rig.ledger.activity[-1].calls[0]
    assert (entry.key.cell, entry.received_bytes) == (0, len(content("half")))
    assert began <= entry.last_activity_time.ToNanoseconds() / 1e9 <= time.time()


async def test_draining_finishes_what_is_in_hand_and_leases_no_more(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=[(0, content("B")), (500, content("", "stop")), (0, b"data: [DONE]\n\n")])]
    rig.queue.add(rig.lease())
    await rig.start_executor()
    await until_async(lambda: bool(rig.upstream.requests))
    await rig.stop_executor()
    assert [(done.state, done.lease.cell) for done in rig.queue.completions] == [(queue_pb.CELL_STATE_DONE, 0)]
    assert rig.ledger.outcomes[0].correct


async def test_a_drain_that_runs_out_of_time_settles_the_call_as_unknown(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=[(0, content("half"))], end="hang")]
    rig.queue.add(rig.lease())
    await rig.start_executor(drain_s=0.2)
    await until_async(lambda: bool(rig.upstream.requests))
    await rig.stop_executor()
    assert rig.ledger.settles[0].receipt.status == pb.CALL_STATUS_SENT_UNKNOWN
    assert rig.ledger.outcomes[0].state == queue_pb.CELL_STATE_INTERRUPTED
    assert len(rig.upstream.requests) == 1


async def test_evidence_that_cannot_be_stored_makes_no_graded_cell(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.ledger.settle_reason = "STORAGE_FULL"
    rig.queue.add(rig.lease())
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_FAILED, "storage_full")
    assert rig.grader.answers == []
    await rig.stop_executor()
    rig.ledger.settle_reason, rig.ledger.settles = "", []
    await rig.start_executor()
    await until_async(lambda: bool(rig.ledger.settles))
    assert rig.ledger.settles[0].receipt.status == pb.CALL_STATUS_COMPLETED


async def test_a_receipt_that_found_no_room_is_told_again_when_there_is(
    rig: Any, answer_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the executor that has it, and by one that was started while there was none."""
    monkeypatch.setattr("srbench_executor.retelling.PAUSE_S", 0.01)
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.ledger.settle_reason = "STORAGE_FULL"
    rig.queue.add(rig.lease(0), rig.lease(1))
    await rig.start_executor()
    await rig.finished(2)
    rig.ledger.settle_reason = ""
    told = len(rig.ledger.settles)
    await until_async(lambda: len(rig.ledger.settles) >= told + 2)
    assert {settle.key.cell for settle in rig.ledger.settles[-2:]} == {0, 1}
    rig.ledger.settle_reason = "STORAGE_FULL"
    rig.queue.add(rig.lease(2), rig.lease(3))
    await rig.finished(4)
    await rig.stop_executor()
    told = len(rig.ledger.settles)
    await rig.start_executor()
    await until_async(lambda: len(rig.ledger.settles) >= told + 2)
    rig.ledger.settle_reason, rig.ledger.settles = "", []
    await until_async(lambda: {settle.key.cell for settle in rig.ledger.settles} == {2, 3})
    await rig.stop_executor()
    assert Spool(rig.folder).left_over() == []
    assert len(rig.upstream.requests) == 4


async def test_a_killed_executor_comes_back_and_tells_what_it_had(rig: Any, answer_type: Any, monkeypatch: Any) -> None:
    """SIGKILL in mid-stream: the next process with the spool settles the call as unknown, with its bytes, then leases."""
    key = "sk-test-CANARY-654321"
    rig.queue.context.targets[0].api_key_env = "SOME_KEY"
    rig.upstream.answers = [
        answer_type(
            chunks=[(0, content("half ")), (60, b": it is " + key[:9].encode()), (120, key[9:].encode() + b"\n\n")],
            end="hang",
        )
    ]
    rig.queue.add(rig.lease())
    environment = os.environ | {f"SR_BENCH_{name}_ADDRESS": rig.address for name in ("PLANNER", "ACCOUNTING", "GRADER")}
    command = [sys.executable, "-m", "srbench_executor", "--listen", "127.0.0.1:0", "--spool", str(rig.folder)]
    environment["SOME_KEY"] = key
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    try:
        await until_async(lambda: b"[redacted]" in spooled(rig.folder))
        with pytest.raises(Conflict, match="another executor"):
            Spool(rig.folder)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert b"CANARY" not in spooled(rig.folder)
    monkeypatch.setenv("SOME_KEY", key)
    name = (rig.folder / "executor_id").read_text().strip()
    await rig.start_executor()
    await until_async(lambda: len(rig.queue.incarnations) == 2)
    (settle,) = rig.ledger.settles
    assert (settle.receipt.status, settle.receipt.reason) == (pb.CALL_STATUS_SENT_UNKNOWN, "executor_lost")
    saved = rig.ledger.saved(settle)
    assert saved.body == content("half ") + b": it is [redacted]\n\n"
    assert (saved.http_status, saved.clean_end) == (200, False)
    # What the receipt says can be derived from the kept stream again.
    said = read_answer(200, [(one.name, one.value) for one in saved.headers], saved.body, clean_end=False)
    differing = [one for one in receipt_values(settle.receipt, receipt_from(settle.receipt, said), said) if not one.equal]
    assert differing == []
    assert (settle.receipt.content_chars, settle.receipt.response_model) == (len("half "), "m")
    assert rig.worker.executor_id == name
    assert len(rig.upstream.requests) == 1


def spooled(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.seg")))


async def test_sigterm_ends_the_process_cleanly(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(rig.lease())
    environment = os.environ | {f"SR_BENCH_{name}_ADDRESS": rig.address for name in ("PLANNER", "ACCOUNTING", "GRADER")}
    command = [sys.executable, "-m", "srbench_executor", "--listen", "127.0.0.1:0", "--spool", str(rig.folder)]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    await rig.finished(1)
    process.send_signal(signal.SIGTERM)
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
