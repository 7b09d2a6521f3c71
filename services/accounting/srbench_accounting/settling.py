"""An operator settles a call whose cost nobody saw: checked, priced by the same rules as every call, appended."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench_kit.documents import received
from srbench_kit.errors import Conflict, InvalidInput, NotFound

from srbench_accounting import convert
from srbench_accounting.budget import Money
from srbench_accounting.derived import TargetDeriving
from srbench_accounting.ledger_statements import LedgerStatements
from srbench_accounting.listing import Lists
from srbench_accounting.rows import CallRow, ReceiptRow, timestamp
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.settled import derive_settlement, fill, same, settled_cost
from srbench_accounting.settlements import Settlements
from srbench_accounting.vocabulary import Vocabulary

MAX_NOTE = 1000
MAX_MODEL = 256


@dataclass(frozen=True, slots=True)
class Settling:
    """Settles calls inside the writer's transactions."""

    statements: LedgerStatements
    lists: Lists
    settlements: Settlements
    vocabulary: Vocabulary

    def settle(self, connection: Connection, run: KnownRun, request: ledger_pb.SettleCallRequest, actor: str) -> None:
        """Appends the settlement and moves the run's money. The same as the one in force changes nothing.

        Raises: `NotFound` (`NO_SUCH_CALL`), `Conflict` (`CALL_OPEN`, `COST_KNOWN`, `NOT_SENT_UNKNOWN`,
        `EVIDENCE_CONTRADICTS`), `InvalidInput` (`BAD_FIELD`).
        """
        check(request)
        lock = self.statements.lock_run.rows(connection, run.run_no)[0]
        row, end = self._ended(connection, run, request.call_id)
        check_call(request, end)
        settlement = made(request, self._target(connection, run, row), actor)
        before = self.settlements.newest(connection, row.call_id)
        if before is not None and same(before, settlement):
            return
        self.settlements.add(connection, row.call_id, settlement)
        old, new = settled_cost(before, end.status), settled_cost(settlement, end.status)
        limit, _calls, _halted, call_count, outcome_count, open_count, unknown_count, spent, opened, held = lock
        money = Money(limit, spent, opened, held)
        money.recount(row.reserved or 0, old, new)
        unknown_count += (new is None) - (old is None)
        counts = call_count, outcome_count, open_count, unknown_count
        self.statements.move_run.run(connection, *counts, money.spent, money.open, money.held, run.run_no)

    def _ended(self, connection: Connection, run: KnownRun, call_id: str) -> tuple[CallRow, ReceiptRow]:
        found = self.lists.call(connection, run.run_no, *convert.call_key(run.run_id, call_id))
        if found is None:
            raise NotFound("NO_SUCH_CALL", f"run {run.run_id} has no call {call_id!r}", call_id=call_id)
        row, end = found
        if end is None:
            raise Conflict("CALL_OPEN", f"call {call_id} has no end yet; there is nothing to settle", call_id=call_id)
        return row, end

    def _target(self, connection: Connection, run: KnownRun, row: CallRow) -> TargetDeriving:
        auxiliary = self.vocabulary.words(connection, [row.auxiliary])[row.auxiliary]
        return run.auxiliaries[auxiliary] if auxiliary else run.targets[row.target_index]


def check(request: ledger_pb.SettleCallRequest) -> None:
    """Raises: `InvalidInput` (`BAD_FIELD`) for a request that can never be right."""
    happened = request.verdict == pb.SETTLEMENT_VERDICT_HAPPENED
    if request.verdict not in pb.SettlementVerdict.values()[1:]:
        expected = "expected happened, did-not-happen or still-unknown"
        raise InvalidInput("BAD_FIELD", f"verdict is {request.verdict}; {expected}", field="verdict")
    for name in ("usage", "router_receipt"):
        given = received(getattr(request, name), name)
        if given is None:
            continue
        if not happened:
            raise InvalidInput("BAD_FIELD", f"{name} is given, but only a call that happened has any", field=name)
        if not isinstance(given, dict):
            raise InvalidInput("BAD_FIELD", f"{name} is no object; expected one as the endpoint sends it", field=name)
    for name, most in (("note", MAX_NOTE), ("model", MAX_MODEL)):
        length = len(getattr(request, name))
        if length > most:
            raise InvalidInput("BAD_FIELD", f"{name} has {length} characters; expected at most {most}", field=name)


def check_call(request: ledger_pb.SettleCallRequest, end: ReceiptRow) -> None:
    """Raises: `Conflict` when what is known of the call speaks against the settlement."""
    facts = {"call_id": request.call_id}
    if end.cost is not None:
        raise Conflict("COST_KNOWN", f"the cost of call {request.call_id} is known from its receipt", **facts)
    if request.verdict != pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN:
        return
    if end.status != pb.CALL_STATUS_SENT_UNKNOWN:
        status = pb.CallStatus.Name(pb.CallStatus.ValueType(end.status)).removeprefix("CALL_STATUS_").lower()
        sentence = f"call {request.call_id} is {status}: its end was seen, so that it did happen"
        raise Conflict("NOT_SENT_UNKNOWN", sentence, **facts)
    if end.evidence_sha256 is not None:
        sentence = f"part of the answer to call {request.call_id} was received, so that it did happen"
        raise Conflict("EVIDENCE_CONTRADICTS", sentence, **facts)


def made(request: ledger_pb.SettleCallRequest, target: TargetDeriving, actor: str) -> pb.CallSettlement:
    """The settlement, with what follows from its usage."""
    settlement = pb.CallSettlement(verdict=request.verdict, actor=actor, note=request.note, model=request.model)
    settlement.create_time.CopyFrom(timestamp(time.time_ns() // 1000))
    for name, given in (("raw_usage", request.usage), ("router_receipt", request.router_receipt)):
        if given.WhichOneof("kind") is not None:
            getattr(settlement, name).CopyFrom(given)
    fill(settlement, derive_settlement(target, settlement))
    return settlement
