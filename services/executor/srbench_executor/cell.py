"""The way of one cell, from its lease to the planner's word that it is done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import tracing, wire
from srbench_kit.crashpoints import crashpoint
from srbench_kit.errors import SrBenchError

from srbench_executor.caller import Caller
from srbench_executor.drivers import Driver
from srbench_executor.facts import FactStream
from srbench_executor.grading import GradeStream
from srbench_executor.leasing import Leasing
from srbench_executor.runs import RunBook
from srbench_executor.verdicts import outcome
from srbench_executor.work import Cell, Verdict

# A cell that the budget cannot take now is kept this long before it goes back: the queue would hand it out again at once.
HAND_BACK_S = 0.25
_log = logging.getLogger(__name__)


class Cells:
    """Works on cells with what they all share."""

    def __init__(
        self,
        runs: RunBook,
        caller: Caller,
        grader: GradeStream,
        facts: FactStream,
        leasing: Leasing,
        drivers: Mapping[str, Driver],
    ) -> None:
        self._drivers = drivers
        self._runs = runs
        self._caller = caller
        self._grader = grader
        self._facts = facts
        self._leasing = leasing

    async def work(self, cell: Cell) -> None:
        """Brings one cell to its end."""
        if not tracing.ON:
            await self._end(cell)
            return
        lease, came = cell.lease, {"state": "dropped"}
        named = {"run_id": lease.run_id, "cell": lease.cell, "driver": lease.driver, "grader": lease.grader}
        cell.span = tracing.begin("cell", lease.traceparent, named)
        try:
            if (verdict := await self._end(cell)) is not None:
                came = {"state": queue_pb.CellState.Name(verdict.state), "reason": verdict.reason}
        finally:
            tracing.end(cell.span, came)

    async def _end(self, cell: Cell) -> Verdict | None:
        """What became of the cell; `None` when somebody else has it."""
        verdict = await self._verdict(cell)
        if cell.run is not None:
            cell.run.cells.discard(cell)
        if verdict.state == queue_pb.CELL_STATE_UNSPECIFIED or cell.lost:
            return None
        if verdict.state == queue_pb.CELL_STATE_QUEUED:
            await asyncio.sleep(HAND_BACK_S)
        else:
            crashpoint("executor.before_outcome")
            told = outcome(cell, verdict, cell.clock.now_ns())
            ack = await self._facts.record([pb.Fact(outcome=told, traceparent=tracing.header(cell.span))])
            if ack.reason == "OUTRUN_TOKEN":
                return None
            if ack.reason:
                # Facts win: a cell whose outcome is not on record has none, whatever was seen here.
                _log.error("accounting refused an outcome: %s (%s)", ack.message, ack.reason)
                verdict = _unrecorded(ack.reason, ack.message)
        crashpoint("executor.before_complete")
        self._leasing.complete(queue_pb.Completion(lease=cell.ref, state=verdict.state, reason=verdict.reason))
        return verdict

    async def _verdict(self, cell: Cell) -> Verdict:
        driver = self._drivers.get(cell.lease.driver.partition(":")[0])
        try:
            cell.run = run = await self._runs.get(cell.lease.run_id)
            run.cells.add(cell)
            if cell.stopped is not None and cell.stopped.reason == "executor_lost":
                return Verdict(state=queue_pb.CELL_STATE_QUEUED)
            if cell.stopped is not None:
                return Verdict(
                    state=queue_pb.CELL_STATE_CANCELLED, reason=cell.stopped.reason, message=cell.stopped.message
                )
            if time.monotonic() >= run.deadline:
                message = "the run's time was over before the call could leave"
                return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="deadline_exceeded", message=message)
            if driver is None or not 0 <= cell.lease.target_index < len(run.subjects):
                message = f"the lease names the driver {cell.lease.driver!r} and the target {cell.lease.target_index}"
                return _failed(f"{message}; this executor has no such thing")
            return await driver(cell, self._caller, self._grader)
        except aio.AioRpcError as error:
            # Nothing was sent: the run itself could not be looked up.
            _log.warning("a run could not be looked up: %s", wire.to_error(error).message)
            return Verdict(state=queue_pb.CELL_STATE_QUEUED)
        except SrBenchError as error:
            return _failed(error.message)
        except Exception:
            # The outermost frame of a cell: a bug fails this cell, with its trace in the log, and no other.
            _log.exception("bug while working on a cell")
            return _failed("the executor failed; its log has the details")


def _unrecorded(reason: str, message: str) -> Verdict:
    """What becomes of a cell whose outcome accounting refused."""
    full = reason.startswith("STORAGE_")
    return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="storage_full" if full else "internal_error", message=message)


def _failed(message: str) -> Verdict:
    return Verdict(state=queue_pb.CELL_STATE_FAILED, reason="internal_error", message=message)
