"""One attempt of a harness at one cell: its tokens, its metered calls one after the other, and how it came to an end."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import object_of

from srbench_executor.call import Cut
from srbench_executor.caller import Caller, Question, deadline_of
from srbench_executor.harness.merging import HarnessRequest, merged
from srbench_executor.runs import Run, Subject
from srbench_executor.work import Cell, Ended, Refused

SUBJECT = "subject"
ROLES: Mapping[str, pb.CallRole.ValueType] = {
    SUBJECT: pb.CALL_ROLE_SUBJECT,
    "simulator": pb.CALL_ROLE_SIMULATOR,
    "judge": pb.CALL_ROLE_JUDGE,
}
# The budget is reserved by calls of others: it is asked again after this time, for nothing has left yet.
BUDGET_WAIT_S = 0.5
RECORDED = Refused(reason="ALREADY_DISPATCHED", message="an earlier attempt at this cell made this call; it is not resumed")


@dataclass(frozen=True, slots=True)
class Gone:
    """A token is good for nothing any more: a stable reason and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Seat:
    """What a token stands for."""

    attempt: Attempt
    role: str
    subject: Subject


CallTask: TypeAlias = "asyncio.Task[Ended | Refused | Gone]"


class Attempt:
    """An attempt. Calls of a cell are numbered and accounting takes them one by one, so each waits for the one before.

    `roles` are those that get a token beside the subject, where the benchmark's options name a target for them.
    """

    def __init__(self, cell: Cell, run: Run, caller: Caller, roles: Collection[str]) -> None:
        self.cell, self.run = cell, run
        self.deadline = deadline_of(cell, run)
        self.counts = dict.fromkeys(ROLES, 0)
        # What ended the attempt from outside the harness: no call of it can leave any more.
        self.refused: Refused | None = None
        # How the last call ended that the harness was told about.
        self.last: Ended | None = None
        self._caller = caller
        self._turn = asyncio.Lock()
        self._ordinal = 0
        self._calls: set[CallTask] = set()
        self._running: CallTask | None = None
        self._abandoned: set[CallTask] = set()
        self._gone: Gone | None = None
        self.seats: dict[str, Seat] = {}
        self.tokens: dict[str, str] = {}
        options = run.options.get(cell.lease.public_case.benchmark, {})
        subjects: dict[str, Subject | None] = {SUBJECT: run.subjects[cell.lease.target_index]}
        subjects |= {role: run.auxiliary.get(str(options.get(role))) for role in roles}
        for role, subject in subjects.items():
            if subject is not None:
                token = f"srh-{secrets.token_urlsafe(32)}"
                self.tokens[role] = token
                self.seats[hashed(token)] = Seat(self, role, subject)

    @property
    def call_count(self) -> int:
        """Calls that accounting has on record."""
        return self._ordinal

    @property
    def gone(self) -> Gone | None:
        """Why no call may leave; `None` as long as one may."""
        if self._gone is None and self.cell.stopped is not None:
            return Gone(self.cell.stopped.reason, self.cell.stopped.message)
        if self._gone is None and time.monotonic() >= self.deadline:
            return Gone("deadline_exceeded", "the time of the case is over")
        if self._gone is None and self.refused is not None:
            return Gone(self.refused.reason.lower(), self.refused.message)
        return self._gone

    def call(self, seat: Seat, asked: HarnessRequest) -> CallTask:
        """A call for the harness, under way. It goes on to its record whoever stops waiting for it."""
        task = asyncio.create_task(self._call(seat, asked))
        self._calls.add(task)
        task.add_done_callback(self._forget)
        return task

    def hang_up(self, task: CallTask) -> None:
        """The harness no longer waits for this call: one that waits for its turn never leaves, one under way is cut."""
        if task.done():
            return
        self._abandoned.add(task)
        if task is self._running and self.cell.call is not None:
            message = "the harness no longer waited for the answer"
            self.cell.call.stop(Cut(pb.CALL_STATUS_CANCELLED, "harness_hung_up", message))

    def _forget(self, task: CallTask) -> None:
        self._calls.discard(task)
        self._abandoned.discard(task)

    async def close(self, gone: Gone) -> None:
        """Ends the attempt: its tokens are dead, what is under way is cut and recorded."""
        self._gone = self._gone or gone
        while self._calls:
            if self.cell.call is not None:
                self.cell.call.stop(Cut(pb.CALL_STATUS_CANCELLED, gone.reason, gone.message))
            await asyncio.wait(self._calls, timeout=0.1)

    async def _call(self, seat: Seat, asked: HarnessRequest) -> Ended | Refused | Gone:
        async with self._turn:
            self._running = task = next(call for call in self._calls if call is asyncio.current_task())
            if task in self._abandoned:
                return Gone("harness_hung_up", "the harness no longer waited for its turn")
            return self.gone or await self._ask(seat, asked)

    async def _ask(self, seat: Seat, asked: HarnessRequest) -> Ended | Refused | Gone:
        own = object_of(seat.subject.target.request_params)
        fields = merged(asked.fields, seat.subject.params, own, self.run.limits.max_output_tokens)
        question = Question(
            ordinal=self._ordinal,
            role=ROLES[seat.role],
            subject=seat.subject,
            messages=asked.messages,
            fields=fields,
        )
        while True:
            ended = await self._caller.ask(self.cell, question)
            if isinstance(ended, Refused) and ended.reason == "BUDGET_RESERVED":
                if await self.cell.pause(BUDGET_WAIT_S) and self.gone is None:
                    continue
                return self.gone or ended
            return self._noted(seat, ended)

    def _noted(self, seat: Seat, ended: Ended | Refused) -> Ended | Refused:
        if isinstance(ended, Ended) and ended.recorded:
            ended = RECORDED
        if isinstance(ended, Refused):
            self.refused = ended
            return ended
        if ended.reason == "missing_key":
            # Nothing was dispatched, and nothing will be.
            self.refused = Refused(reason="MISSING_KEY", message=ended.message)
            return self.refused
        self._ordinal += 1
        self.counts[seat.role] += 1
        self.last = ended
        return ended


def hashed(token: str) -> str:
    """What a token is kept by."""
    return hashlib.sha256(token.encode()).hexdigest()
