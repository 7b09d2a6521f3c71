"""One model call from the permission to send it to the record of how it ended. Never sends anything twice.

Only what was provably not accepted is offered again, each offer as a call of its own in accounting's eyes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, target_pb2
from srbench_kit import tracing
from srbench_kit.completion import Completion
from srbench_kit.crashpoints import crashpoint
from srbench_kit.errors import Exhausted
from srbench_kit.times import fill_time
from srbench_kit.values import Json

from srbench_executor import measuring, receipts, request
from srbench_executor.admission import asked_wait_s, spread_s, wait_s
from srbench_executor.call import Call, CallBounds
from srbench_executor.carrying import carry
from srbench_executor.exchange import Origin, Outgoing, Transport
from srbench_executor.facts import FactStream
from srbench_executor.pool import DirectTransport
from srbench_executor.proxies import BadProxy, NoTransport, proxy_for
from srbench_executor.receipts import Settlement
from srbench_executor.retelling import FULL, Retelling
from srbench_executor.runs import Run, Subject
from srbench_executor.spool import Spool
from srbench_executor.work import Cell, Ended, Refused

if TYPE_CHECKING:
    from srbench_executor.proxied import ProxiedTransport

CONNECT_S = 10.0
SHORTEST_CALL_S = 0.1
_QUALITY = frozenset({"output_limit", "output_chars", "repetition"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to ask whom. `ordinal` counts the calls of a cell."""

    ordinal: int
    role: pb.CallRole.ValueType
    subject: Subject
    messages: list[Json]
    fields: dict[str, Json]


class Transports:
    """The direct transport, and one for each proxy that the environment names."""

    def __init__(self, after_late: Callable[[], None] = lambda: None) -> None:
        """`after_late`: see `Reads`."""
        self._direct = DirectTransport(after_late)
        self._proxied: dict[str, ProxiedTransport] = {}
        self._chosen: dict[Origin, Transport] = {}

    def for_request(self, outgoing: Outgoing) -> Transport:
        """The transport that reaches where `outgoing` goes."""
        found = self._chosen.get(outgoing.origin)
        if found is None:
            found = self._chosen[outgoing.origin] = self._choose(outgoing.origin)
        return found

    def _choose(self, origin: Origin) -> Transport:
        try:
            proxy = proxy_for(origin)
        except BadProxy as error:
            return NoTransport(str(error))
        if proxy is None:
            return self._direct
        if proxy not in self._proxied:
            from srbench_executor.proxied import ProxiedTransport

            self._proxied[proxy] = ProxiedTransport(proxy)
        return self._proxied[proxy]

    async def close(self) -> None:
        """Closes all connections."""
        await self._direct.close()
        for transport in self._proxied.values():
            await transport.close()


class Caller:
    """Makes model calls for cells."""

    def __init__(self, facts: FactStream, spool: Spool, transports: Transports, retelling: Retelling) -> None:
        self._facts = facts
        self._spool = spool
        self._retelling = retelling
        self.transports = transports

    async def ask(self, cell: Cell, question: Question) -> Ended | Refused:
        """Asks, waits for the answer and for accounting's word that it has it; or goes on from what accounting had."""
        run, subject = _run_of(cell), question.subject
        key = subject.key()
        if key is None or (key and not request.usable_key(key)):
            name = subject.target.api_key_env
            what = "is not set" if key is None else "holds characters that no header can carry"
            return _failed("missing_key", f"the environment variable {name} of the executor {what}")
        fields = request.request_fields(subject.target, subject.params, question.messages, question.fields)
        session = ""
        if subject.target.session_mode == target_pb2.SESSION_MODE_SESSION_AWARE:
            session = request.session_id(run.context.run_id, subject.target.id, cell.lease.public_case.case_id)
        head = request.headers(subject.target, subject.endpoint.host_header, key, session)
        outgoing = request.outgoing(subject.endpoint, fields, head)
        dispatch = self._dispatch(cell, question, outgoing, fields)
        give_up_at = time.monotonic() + run.limits.admission_wait_s
        offer = 0
        while True:
            if offer:
                # Another call in accounting's eyes: what was reported of the one before stays as it is.
                dispatch = _again(dispatch, offer)
            answer, asked_s = await self._offer(cell, question, outgoing, dispatch, session)
            if not isinstance(answer, Ended) or answer.status != pb.CALL_STATUS_NOT_ACCEPTED or cell.stopped:
                return answer
            if answer.reason == "executor_lost":
                # An executor was stopped before it sent that offer; the endpoint has said nothing yet.
                offer += 1
                continue
            if answer.completion is not None and answer.completion.quota_spent:
                # Waiting brings no money.
                return answer
            pause_s = spread_s(wait_s(offer, asked_s), f"{cell.lease.run_id} {cell.lease.cell} {question.ordinal} {offer}")
            if time.monotonic() + pause_s > min(give_up_at, deadline_of(cell, run)):
                return answer
            if not await cell.pause(pause_s):
                return answer
            offer += 1

    def _dispatch(self, cell: Cell, question: Question, outgoing: Outgoing, fields: dict[str, Json]) -> pb.Dispatch:
        lease = cell.lease
        subject_call = question.role == pb.CALL_ROLE_SUBJECT
        return pb.Dispatch(
            key=pb.CallKey(run_id=lease.run_id, cell=lease.cell, ordinal=question.ordinal),
            token=lease.token,
            case_index=lease.case_index,
            target_index=lease.target_index,
            role=question.role,
            auxiliary_target_id="" if subject_call else question.subject.target.id,
            request_sha256=hashlib.sha256(outgoing.body).hexdigest(),
            request_byte_count=len(outgoing.body),
            message_count=len(question.messages),
            max_output_tokens=request.output_token_limit(fields, _run_of(cell).limits.max_output_tokens),
            executor_id=self._spool.executor_id,
        )

    async def _offer(
        self, cell: Cell, question: Question, outgoing: Outgoing, dispatch: pb.Dispatch, session: str
    ) -> tuple[Ended | Refused, float | None]:
        """One offer of the call; with it the seconds after which the endpoint would take another."""
        if not tracing.ON:
            return await self._let_out(cell, question, outgoing, dispatch, session)
        target, key = question.subject.target, dispatch.key
        named = {"target": target.id, "gen_ai.request.model": target.model, "ordinal": key.ordinal, "offer": key.offer}
        cell.call_span = tracing.begin("call", tracing.header(cell.span), named)
        try:
            return await self._let_out(cell, question, outgoing, dispatch, session)
        finally:
            tracing.end(cell.call_span)
            cell.call_span = None

    async def _let_out(
        self, cell: Cell, question: Question, outgoing: Outgoing, dispatch: pb.Dispatch, session: str
    ) -> tuple[Ended | Refused, float | None]:
        fill_time(dispatch.dispatch_time, cell.clock.now_ns())
        crashpoint("executor.before_dispatch")
        ack = await self._facts.record([pb.Fact(dispatch=dispatch, traceparent=tracing.header(cell.call_span))])
        crashpoint("executor.after_dispatch")
        if ack.reason == "ALREADY_DISPATCHED" and ack.HasField("known_call"):
            return _from_record(ack.known_call), None
        if ack.reason:
            return Refused(reason=ack.reason, message=ack.message), None
        redactor = _run_of(cell).redactor
        if cell.stopped is not None:
            settled = _unsent(cell, cell.stopped.reason, "the run was stopped before the request left")
            return await self._settle(cell, dispatch.key, settled, None), None
        try:
            number = self._spool.open(dispatch, redactor)
        except Exhausted as error:
            return await self._settle(cell, dispatch.key, _unsent(cell, "storage_full", error.message), None), None
        return await self._send(cell, question, outgoing, dispatch, session, number)

    async def _send(
        self, cell: Cell, question: Question, outgoing: Outgoing, dispatch: pb.Dispatch, session: str, number: int
    ) -> tuple[Ended | Refused, float | None]:
        run = _run_of(cell)
        bounds = _bounds(cell, run)
        call = Call(number, bounds, self._spool, cell.clock)
        cell.call, cell.key = call, dispatch.key
        try:
            transport = self.transports.for_request(outgoing)
            refused = await carry(transport, outgoing, call, min(CONNECT_S, bounds.total_s))
        finally:
            cell.call = None
        if refused is not None:
            settled = _unsent(cell, refused.reason, refused.message)
        else:
            settled = receipts.settlement(
                call,
                question.subject.target,
                request_sha256=dispatch.request_sha256,
                session_id=session,
                redactor=run.redactor,
            )
        unaccepted = settled.receipt.status == pb.CALL_STATUS_NOT_ACCEPTED
        asked_s = asked_wait_s(call.headers, datetime.now(UTC)) if unaccepted else None
        return await self._settle(cell, dispatch.key, settled, number, call.completion), asked_s

    async def _settle(
        self, cell: Cell, key: pb.CallKey, settled: Settlement, number: int | None, completion: Completion | None = None
    ) -> Ended | Refused:
        facts = receipts.settle_facts(key, settled)
        if cell.call_span is not None:
            facts[-1].traceparent = tracing.header(cell.call_span)
            cell.call_span.set_attributes(measuring.attributes(settled))
        crashpoint("executor.before_receipt")
        if number is not None:
            self._spool.receipt(number, facts)
        crashpoint("executor.before_settle")
        ack = await self._facts.record(facts)
        crashpoint("executor.after_settle")
        measuring.ended(settled.receipt)
        if not ack.reason and number is not None:
            self._spool.acknowledged(number)
        if ack.reason == FULL:
            # What is not stored counts for nothing; it is told again when there is room.
            self._retelling.keep(facts, lambda: self._spool.acknowledged(number) if number is not None else None)
            return Refused(reason=ack.reason, message=ack.message)
        return _from_receipt(settled.receipt, settled.text, completion)


def _run_of(cell: Cell) -> Run:
    assert cell.run is not None, "a cell's run is fetched before its first call"
    return cell.run


def _unsent(cell: Cell, reason: str, message: str) -> Settlement:
    return receipts.not_accepted(reason, message, _run_of(cell).redactor, cell.clock.now_ns())


def _again(dispatch: pb.Dispatch, offer: int) -> pb.Dispatch:
    """The dispatch of one more offer."""
    offered = pb.Dispatch()
    offered.CopyFrom(dispatch)
    offered.key.offer = offer
    return offered


def deadline_of(cell: Cell, run: Run) -> float:
    """When the cell must be over, by the monotonic clock: whoever sets the wall clock takes no time from a call."""
    case_s = run.limits.case_timeout_s or float("inf")
    return min(run.deadline, cell.began + case_s)


def _bounds(cell: Cell, run: Run) -> CallBounds:
    limits: plan_pb2.Limits = run.limits
    left_s = max(SHORTEST_CALL_S, deadline_of(cell, run) - time.monotonic())
    total_s = min(limits.total_timeout_s, left_s)
    return CallBounds(
        total_s=total_s,
        idle_s=min(limits.idle_timeout_s, total_s),
        max_output_chars=limits.max_output_chars,
        repetition_window=limits.repetition_window,
        repetition_limit=limits.repetition_limit,
    )


def _from_record(known: pb.KnownCall) -> Ended:
    if known.status in (pb.CALL_STATUS_SENT, pb.CALL_STATUS_SENT_UNKNOWN):
        message = "an executor sent this call and did not live to see its end"
        return Ended(
            status=pb.CALL_STATUS_SENT_UNKNOWN,
            reason="executor_lost",
            message=message,
            text="",
            finish_reason="",
            quality_failure="",
            recorded=True,
        )
    receipt = pb.Receipt()
    receipt.CopyFrom(known.receipt)
    receipt.status = known.status
    return replace(_from_receipt(receipt, known.final_text), recorded=True)


def _from_receipt(receipt: pb.Receipt, text: str, completion: Completion | None = None) -> Ended:
    quality = ""
    if receipt.status == pb.CALL_STATUS_COMPLETED and not receipt.output_complete:
        quality = receipt.reason if receipt.reason in _QUALITY else "output_limit"
    return Ended(
        status=receipt.status,
        reason=receipt.reason,
        message=receipt.message,
        text=text,
        finish_reason=receipt.finish_reason,
        quality_failure=quality,
        completion=completion,
    )


def _failed(reason: str, message: str) -> Ended:
    return Ended(
        status=pb.CALL_STATUS_FAILED, reason=reason, message=message, text="", finish_reason="", quality_failure=""
    )
