"""One `RecordFacts` stream: facts in, acknowledgements out, a job of the writer for each message.

Facts of a run that is not known yet wait for the planner beside the stream, in their order, and hold up no other run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Sequence
from itertools import islice

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import tracing
from srbench_kit.crashpoints import ARMED, crashpoint
from srbench_kit.db import GroupWriter
from srbench_kit.errors import NotFound, SrBenchError, Unreachable

from srbench_accounting.activity import ActivityBoard
from srbench_accounting.admission import Refusal
from srbench_accounting.evidence import Assembly, Pending
from srbench_accounting.known_calls import KnownCalls
from srbench_accounting.ledger import Item, Ledger, Recorded
from srbench_accounting.run_facts import RunRegistry
from srbench_accounting.vocabulary import Vocabulary

# Messages of one stream that may wait for their commit; a sender further ahead is held back by flow control.
MAX_WAITING = 64
AWAY_PAUSE_S = 1.0
PLANNER_TRIES = 4
PLANNER_PAUSE_S = 0.5
Evidence = Pending | Refusal | None
_log = logging.getLogger(__name__)


class Recorder:
    """Commits items through the writer and turns every failure into acknowledgements, but for a database server that is
    away: facts wait for it, for the sender has nothing better to do than to tell them again."""

    def __init__(
        self, writer: GroupWriter, ledger: Ledger, vocabulary: Vocabulary, known_calls: KnownCalls, *, served: bool
    ) -> None:
        """`served`: whether the database is a server's, which comes back; a disk that fails does not."""
        self._writer, self._served = writer, served
        self._ledger = ledger
        self._vocabulary = vocabulary
        self._known_calls = known_calls

    async def commit(self, items: Sequence[Item]) -> list[pb.FactAck]:
        """The acknowledgements of `items`, after their durable commit."""
        began_ns = time.time_ns()
        try:
            while (acks := await self._tried(items)) is None:  # noqa: ASYNC110 - no event comes from a server that is away
                await asyncio.sleep(AWAY_PAUSE_S)
        except SrBenchError as error:
            return [_refused(item.fact, error.reason, error.message) for item in items]
        except Exception:
            # A fact that trips a bug must not take its neighbours along, nor come back for ever on a new stream.
            if len(items) > 1:
                return [ack for item in items for ack in await self.commit([item])]
            _log.exception("a fact could not be recorded")
            return [_refused(items[0].fact, "INTERNAL_ERROR", "internal error; the service's log has the details")]
        if tracing.ON:
            _trace(items, acks, began_ns)
        for item, ack in zip(items, acks, strict=True):
            if ack.reason == "ALREADY_DISPATCHED":
                await self._known_calls.fill(ack, item)
        return acks

    async def _tried(self, items: Sequence[Item]) -> list[pb.FactAck] | None:
        """The acknowledgements; `None` while the database's server is away. Every fact may be tried again: what was
        recorded all the same is known again."""
        try:
            return await self._record(items)
        except Unreachable as error:
            if not self._served:
                raise
            _log.warning("%d facts wait for the database: %s", len(items), error.message)
            return None

    async def _record(self, items: Sequence[Item]) -> list[pb.FactAck]:
        _pass("before", items)
        recorded = await self._writer.run_shared(self._record_all, items)
        _pass("after", items)
        self._vocabulary.learn(recorded.words)
        return recorded.acks

    def _record_all(self, connection: Connection, messages: list[Sequence[Item]]) -> list[Recorded]:
        """Records the messages that wait together as if they were one: what a statement costs is shared by all."""
        whole = self._ledger.record(connection, [item for items in messages for item in items])
        acks = iter(whole.acks)
        return [Recorded(list(islice(acks, len(items))), whole.words) for items in messages]


class FactStream:
    """The state of one stream: evidence in parts, facts that wait for their run, messages on their way to the disk."""

    def __init__(self, recorder: Recorder, registry: RunRegistry, board: ActivityBoard) -> None:
        self._recorder = recorder
        self._registry = registry
        self._board = board
        self._assembly = Assembly()
        self._parked: dict[str, list[tuple[pb.Fact, Evidence]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_WAITING)
        self._answers: asyncio.Queue[pb.RecordFactsResponse | None] = asyncio.Queue()

    async def answer(self, requests: AsyncIterable[pb.RecordFactsRequest]) -> AsyncIterator[pb.RecordFactsResponse]:
        """The acknowledgements of `requests`, as they become durable."""
        reading = asyncio.ensure_future(self._read(requests))
        try:
            while (answer := await self._answers.get()) is not None:
                yield answer
            await reading
        finally:
            reading.cancel()
            for task in self._tasks:
                task.cancel()

    async def _read(self, requests: AsyncIterable[pb.RecordFactsRequest]) -> None:
        try:
            async for request in requests:
                await self._room.acquire()
                self._start(self._commit(self._take(request)))
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._answers.put_nowait(None)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, request: pb.RecordFactsRequest) -> list[Item]:
        """The facts of a message that can be recorded now; the others are parked."""
        items: list[Item] = []
        for fact in request.facts:
            match fact.WhichOneof("fact"):
                case "evidence":
                    self._assembly.add(fact.evidence)
                case "activity":
                    self._board.tell(fact.activity)
                case "settle":
                    self._route(items, fact.settle.key.run_id, fact, self._assembly.take(fact.settle))
                case "dispatch":
                    self._route(items, fact.dispatch.key.run_id, fact, None)
                case "outcome":
                    self._route(items, fact.outcome.run_id, fact, None)
                case None:
                    ack = _refused(fact, "BAD_FACT", "the fact is empty; expected a dispatch, settle or outcome")
                    self._answers.put_nowait(pb.RecordFactsResponse(acks=[ack]))
        return items

    def _route(self, items: list[Item], run_id: str, fact: pb.Fact, evidence: Evidence) -> None:
        waiting = self._parked.get(run_id)
        run = self._registry.known(run_id)
        if waiting is not None:
            waiting.append((fact, evidence))
        elif run is not None:
            items.append(Item(fact, run, evidence))
        else:
            self._parked[run_id] = [(fact, evidence)]
            self._start(self._unpark(run_id))

    async def _commit(self, items: list[Item]) -> None:
        try:
            if items:
                self._answers.put_nowait(pb.RecordFactsResponse(acks=await self._recorder.commit(items)))
        finally:
            self._room.release()

    async def _unpark(self, run_id: str) -> None:
        """Records the parked facts of a run once it is known, or refuses them."""
        refusal = await self._find(run_id)
        facts = self._parked.pop(run_id)
        run = self._registry.known(run_id)
        if run is None:
            acks = [_refused(fact, refusal.reason, refusal.message) for fact, _ in facts]
        else:
            acks = await self._recorder.commit([Item(fact, run, evidence) for fact, evidence in facts])
        self._answers.put_nowait(pb.RecordFactsResponse(acks=acks))

    async def _find(self, run_id: str) -> Refusal:
        """Brings the run into memory, or says why that failed. A planner that is away is asked a few times, then the facts
        are refused, so that the sender can decide; it may send them again."""
        for left in reversed(range(PLANNER_TRIES)):
            try:
                await self._registry.run(run_id)
                break
            except NotFound:
                return Refusal("NO_SUCH_RUN", f"there is no run {run_id!r}")
            except Unreachable as error:
                if not left:
                    return Refusal("PLANNER_UNREACHABLE", f"the run is new here and the planner is away: {error.message}")
                await asyncio.sleep(PLANNER_PAUSE_S)
            except SrBenchError as error:
                return Refusal(error.reason, error.message)
        return Refusal("PLANNER_UNREACHABLE", f"the run {run_id!r} could not be kept")


def _trace(items: Sequence[Item], acks: Sequence[pb.FactAck], began_ns: int) -> None:
    """A span for each fact whose sender traces it: from its coming to its durable commit."""
    for item, ack in zip(items, acks, strict=True):
        if item.fact.traceparent:
            name = f"record {item.fact.WhichOneof('fact')}"
            tracing.mark(name, item.fact.traceparent, {"reason": ack.reason}, start_ns=began_ns)


def _pass(side: str, items: Sequence[Item]) -> None:
    """The crash points around a commit, one a fact: `accounting.before_dispatch`, `accounting.after_settle` and so on."""
    if ARMED:
        for item in items:
            crashpoint(f"accounting.{side}_{item.fact.WhichOneof('fact')}")


def _refused(fact: pb.Fact, reason: str, message: str) -> pb.FactAck:
    return pb.FactAck(sequence=fact.sequence, reason=reason, message=message)
