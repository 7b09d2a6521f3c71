"""One leased cell in the hands of this process, and the ways in which it can end. Holds no rules."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.completion import Completion
from srbench_kit.steady import SteadyClock
from srbench_kit.values import Json

from srbench_executor.call import Call, Cut
from srbench_executor.fetching import Fetch
from srbench_executor.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a model call ended: from this process's own eyes, or from accounting's record of it.

    Attributes:
        text: the final channel.
        quality_failure: `output_limit`, `output_chars` or `repetition` when the model did not come to an end; else empty.
        recorded: whether this is what accounting had of the call before this process asked for it; nothing was sent.
        completion: the whole answer as this process read it; `None` when it saw none.
    """

    status: pb.CallStatus.ValueType
    reason: str
    message: str
    text: str
    finish_reason: str
    quality_failure: str
    recorded: bool = False
    completion: Completion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Accounting did not let a call go out: its reason and sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a cell.

    Attributes:
        state: `QUEUED` hands it back, `UNSPECIFIED` drops it without a word (somebody else has it), all else is an outcome.
        grade: the grade of a `DONE` cell, or what is known of a grading that failed; `None` where a call's end decides.
        quality_failure: see `Ended`.
        details: facts of an outcome that has no grade by its nature.
    """

    state: queue_pb.CellState.ValueType
    reason: str = ""
    message: str = ""
    grade: grader_pb.Grade | None = None
    quality_failure: str = ""
    details: dict[str, Json] | None = None


class Cell:
    """A leased cell. `stop` ends what it is doing; `stopped` says why."""

    def __init__(self, lease: queue_pb.Lease) -> None:
        self.lease = lease
        self.run: Run | None = None
        self.call: Call | None = None
        self.fetch: Fetch | None = None
        self.key: pb.CallKey | None = None
        self.stopped: Cut | None = None
        self.lost = False
        # Spans of the cell and of its call; absent when nothing is traced.
        self.span: Any = None
        self.call_span: Any = None
        self.grading_since = 0.0
        # For its stamps, which fit together; and when it began, by the monotonic clock, for its bounds.
        self.clock = SteadyClock()
        self.began_ns, self.began = self.clock.now_ns(), time.monotonic()
        self._stop = asyncio.Event()

    def stop(self, cut: Cut) -> None:
        """Ends the call in flight at once and lets no other begin."""
        if self.stopped is None:
            self.stopped = cut
            self._stop.set()
            if self.call is not None:
                self.call.stop(cut)
            if self.fetch is not None:
                self.fetch.stop(cut)

    async def pause(self, seconds: float) -> bool:
        """Waits; whether the cell may still go on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        return self.stopped is None

    @property
    def ref(self) -> queue_pb.LeaseRef:
        """The lease's name."""
        lease = self.lease
        return queue_pb.LeaseRef(run_id=lease.run_id, cell=lease.cell, token=lease.token)
