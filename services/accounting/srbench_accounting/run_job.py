"""One run inside one transaction: its row, locked; the cells that a batch touches; and the rows that the batch adds."""

from __future__ import annotations

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb

from srbench_accounting import checking, schema
from srbench_accounting.admission import MAX_CELL, CallView, CellView, Refusal, admit, takes_force
from srbench_accounting.budget import MAX_PICODOLLARS, Money
from srbench_accounting.derived import Derived, TargetDeriving
from srbench_accounting.evidence import EvidenceStore, Pending
from srbench_accounting.ledger_statements import LedgerStatements
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow, Stored, micros, outcome_row, receipt_row
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.settled import settled_cost
from srbench_accounting.statements import Row
from srbench_accounting.vocabulary import JobWords

# Names of enums are looked up slowly, and these are wanted for every fact.
_SENT, _NOT_ACCEPTED = int(pb.CALL_STATUS_SENT), int(pb.CALL_STATUS_NOT_ACCEPTED)
EXECUTOR_LOST = "executor_lost"


class RunJob:
    """Applies facts of one run. `write` puts what they came to into the tables; before it nothing is changed."""

    def __init__(
        self,
        connection: Connection,
        statements: LedgerStatements,
        run: KnownRun,
        words: JobWords,
        evidence: EvidenceStore,
        cells: set[int],
    ) -> None:
        self._connection, self._statements, self._settlements = connection, statements, statements.settlements
        self._run, self._words, self._evidence = run, words, evidence
        row = statements.lock_run.rows(connection, run.run_no)[0]
        limit, self._max_calls, self._halt_reason, self._call_count, self._outcome_count, *rest = row
        self._open_count, self._unknown_count, spent, opened, held = rest
        self._money = Money(limit, spent, opened, held)
        self._outcomes: dict[int, OutcomeRow] = {}
        self._cells = self._read_cells([cell for cell in cells if 0 <= cell <= MAX_CELL])
        self._new_calls: list[CallRow] = []
        self._closed: list[Row] = []
        self._new_receipts: dict[int, ReceiptRow] = {}
        self._dropped: list[Row] = []
        self._apart: list[Row] = []
        self._new_outcomes: list[Row] = []
        self._outcomes_apart: list[OutcomeRow] = []
        self._fences: dict[int, int] = {}

    def dispatch(self, dispatch: pb.Dispatch) -> Refusal | None:
        """Records that a call is about to leave, and reserves its worst-case cost."""
        bad = checking.dispatch(dispatch, self._run)
        if bad is not None:
            return bad
        key, cell = dispatch.key, self._cells[dispatch.key.cell]
        refusal = admit(key, dispatch.token, cell, halt_reason=self._halt_reason, max_calls_per_case=self._max_calls)
        if refusal is not None or (key.ordinal, key.offer) in cell.calls:
            return refusal
        reserve = self._reserve(dispatch)
        if isinstance(reserve, Refusal):
            return reserve
        self._money.dispatch(reserve or 0)
        self._add_call(dispatch, reserve, cell)
        return None

    def settle(self, settle: pb.Settle, evidence: Pending | Refusal | None) -> Refusal | None:
        """Records how a call ended. The same end again changes nothing; another one is late truth."""
        bad = checking.settle(settle)
        if bad is not None:
            return bad
        cell = self._cells.get(settle.key.cell)
        call = cell.calls.get((settle.key.ordinal, settle.key.offer)) if cell else None
        if call is None:
            key = settle.key
            return Refusal("NO_SUCH_CALL", f"call {key.ordinal}, offer {key.offer} of cell {key.cell} was never dispatched")
        if call.status == _SENT:
            if isinstance(evidence, Refusal):
                return evidence
            self._close(call, self._receipt_row(call, settle, evidence))
            return None
        row = self._receipt_row(call, settle, None)
        if _same_receipt(self._receipt(call), row):
            return None
        if isinstance(evidence, Refusal):
            return evidence
        self._settle_late(call, self._stored(row, evidence))
        return None

    def outcome(self, outcome: pb.CellOutcome) -> Refusal | None:
        """Records how a cell ended. The first outcome stays in force; any other is kept beside it."""
        bad = checking.outcome(outcome, self._run)
        if bad is not None:
            return bad
        cell = self._cells[outcome.cell]
        row = outcome_row(outcome, run_no=self._run.run_no, words=self._words)
        if self._outcomes.get(outcome.cell) == row:
            return None
        if outcome.token < cell.lowest_token:
            self._keep_apart(row)
            return Refusal(
                "OUTRUN_TOKEN",
                f"token {outcome.token} of cell {outcome.cell} was outrun by {cell.lowest_token}; kept, not in force",
            )
        if cell.ended:
            self._keep_apart(row)
            return None
        if cell.open:
            return Refusal("CALL_OPEN", f"cell {outcome.cell} has a call without an end; settle it first")
        self._end(row)
        return None

    def fence(self, fence: pb.CellFence, *, keep_open: bool) -> pb.CellFacts:
        """Raises the lowest valid token of a cell. An open call becomes `sent_unknown`, its cell `interrupted`; an
        unresumable cell is interrupted by any call that it made."""
        cell = self._cells[fence.cell]
        if fence.token > cell.fence:
            cell.fence = self._fences[fence.cell] = fence.token
        known = pb.CellFacts(cell=fence.cell, dispatched=cell.dispatched, open=cell.open)
        if not keep_open and (cell.open or (fence.unresumable and cell.dispatched)):
            self._interrupt(fence, cell)
        ended = self._outcomes.get(fence.cell)
        if ended is not None:
            known.outcome = queue_pb.CellState.ValueType(ended.state)
            known.reason = self._words.word(ended.reason)
        return known

    def write(self) -> None:
        """Writes all that was applied."""
        connection, statements = self._connection, self._statements
        statements.add_call.run_many(connection, self._new_calls)
        closed = {call_id for (call_id,) in self._closed}
        opened = [(row.call_id,) for row in self._new_calls if row.call_id not in closed]
        statements.open_call.run_many(connection, opened)
        statements.close_call.run_many(connection, self._closed)
        statements.drop_receipt.run_many(connection, self._dropped)
        statements.add_receipt.run_many(connection, [(call_id, *row) for call_id, row in self._new_receipts.items()])
        statements.add_receipt_apart.run_many(connection, self._apart)
        statements.add_outcome.run_many(connection, self._new_outcomes)
        statements.add_outcome_apart.run_many(connection, self._outcomes_apart)
        if self._fences:
            statements.set_fences(connection, self._run.run_no, self._fences)
        if self._new_calls or self._new_receipts or self._new_outcomes:
            self._move_run()

    def _move_run(self) -> None:
        money = self._money
        counts = (self._call_count, self._outcome_count, self._open_count, self._unknown_count)
        self._statements.move_run.run(self._connection, *counts, money.spent, money.open, money.held, self._run.run_no)

    def _read_cells(self, cells: list[int]) -> dict[int, CellView]:
        found = {cell: CellView() for cell in cells}
        run_no = self._run.run_no
        for cell, *values, status in self._statements.cell_calls.rows(self._connection, cells, run_no):
            call = CallView(*(*values, _SENT if status is None else status))
            found[cell].calls[call.ordinal, call.offer] = call
        for cell, token in self._statements.cell_fences.rows(self._connection, cells, run_no):
            found[cell].fence = token
        for row in self._statements.cell_outcomes.rows(self._connection, cells, run_no):
            outcome = OutcomeRow(*row)
            self._outcomes[outcome.cell] = outcome
            found[outcome.cell].ended = True
        return found

    def _reserve(self, dispatch: pb.Dispatch) -> int | Refusal | None:
        if self._money.limit is None:
            return None
        reserve = self._target(dispatch.target_index, dispatch.auxiliary_target_id).reserve(
            body_byte_count=dispatch.request_byte_count,
            message_count=dispatch.message_count,
            max_output_tokens=dispatch.max_output_tokens,
        )
        if reserve is None:
            return Refusal("NO_PRICE", "the target has a model without a price, so nothing can be reserved for the call")
        money = self._money
        reason = money.refusal(reserve) if reserve <= MAX_PICODOLLARS else "BUDGET_EXHAUSTED"
        if not reason:
            return reserve
        return Refusal(
            reason,
            f"the call needs {reserve} picodollars; of {money.limit}, {money.spent} are spent and "
            f"{money.open + money.held} reserved",
        )

    def _target(self, target_index: int, auxiliary: str) -> TargetDeriving:
        return self._run.auxiliaries[auxiliary] if auxiliary else self._run.targets[target_index]

    def _add_call(self, dispatch: pb.Dispatch, reserve: int | None, cell: CellView) -> None:
        key, number, run_no = dispatch.key, self._words.number, self._run.run_no
        ordinal, offer, token, target_index = key.ordinal, key.offer, dispatch.token, dispatch.target_index
        self._call_count += 1
        self._open_count += 1
        call_id, dispatch_us = schema.row_id(run_no, self._call_count), micros(dispatch.dispatch_time)
        auxiliary = number(dispatch.auxiliary_target_id)
        # Both by position: this is done for every call, and names would double its time.
        row = CallRow(
            call_id,
            run_no,
            key.cell,
            ordinal,
            offer,
            token,
            dispatch.case_index,
            target_index,
            dispatch.role,
            auxiliary,
            reserve,
            dispatch_us,
            number(dispatch.executor_id),
            bytes.fromhex(dispatch.request_sha256),
            dispatch.request_byte_count,
            dispatch.message_count,
            dispatch.max_output_tokens,
        )
        self._new_calls.append(row)
        view = CallView(call_id, ordinal, offer, token, target_index, auxiliary, reserve, dispatch_us, _SENT)
        cell.calls[ordinal, offer] = view

    def _receipt_row(self, call: CallView, settle: pb.Settle, evidence: Pending | None) -> ReceiptRow:
        """The row of a receipt; with where its evidence lies, or with what the settlement declares of it."""
        stored = None
        if evidence is not None:
            stored = self._evidence.append(evidence)
        elif settle.evidence_sha256:
            stored = Stored("", 0, settle.evidence_byte_count, bytes.fromhex(settle.evidence_sha256))
        target = self._target(call.target_index, self._words.word(call.auxiliary))
        return receipt_row(
            settle.receipt,
            dispatch_us=call.dispatch_us,
            derived=derive(target, settle.receipt),
            evidence=stored,
            words=self._words,
        )

    def _stored(self, row: ReceiptRow, evidence: Pending | None) -> ReceiptRow:
        if evidence is None:
            return row
        at = self._evidence.append(evidence)
        return row._replace(segment=self._words.number(at.segment), evidence_offset=at.offset)

    def _receipt(self, call: CallView) -> ReceiptRow:
        """The receipt in force of a call that has an end."""
        row = self._new_receipts.get(call.call_id)
        return row or ReceiptRow(*self._statements.receipt.rows(self._connection, call.call_id)[0])

    def _close(self, call: CallView, row: ReceiptRow) -> None:
        call.status = row.status
        self._open_count -= 1
        self._unknown_count += row.cost is None
        self._money.settle(call.reserved or 0, row.cost)
        self._closed.append((call.call_id,))
        self._new_receipts[call.call_id] = row

    def _settle_late(self, call: CallView, row: ReceiptRow) -> None:
        """Appends a later receipt. Only an unknown end yields its place to it."""
        old = self._receipt(call)
        yields = takes_force(
            old_status=old.status,
            old_evidence=old.evidence_sha256 is not None,
            new_status=row.status,
            new_evidence=row.evidence_sha256 is not None,
        )
        apart = old if yields else row
        if not yields and self._is_apart(call, row):
            return
        self._apart.append((call.call_id, *apart))
        if yields:
            if call.call_id not in self._new_receipts:
                self._dropped.append((call.call_id,))
            self._new_receipts[call.call_id] = row
            call.status = row.status
            if old.cost is None:
                self._recount(call, old, row)

    def _recount(self, call: CallView, old: ReceiptRow, row: ReceiptRow) -> None:
        """Moves the money of a call whose receipt did not know its cost. An operator may have settled it meanwhile."""
        settlement = self._settlements.newest(self._connection, call.call_id)
        before = settled_cost(settlement, old.status)
        after = row.cost if row.cost is not None else settled_cost(settlement, row.status)
        self._unknown_count += (after is None) - (before is None)
        self._money.recount(call.reserved or 0, before, after)

    def _is_apart(self, call: CallView, row: ReceiptRow) -> bool:
        stored = self._statements.receipts_apart.rows(self._connection, call.call_id)
        waiting = [kept[1:] for kept in self._apart if kept[0] == call.call_id]
        return any(_same_receipt(ReceiptRow(*kept), row) for kept in (*stored, *waiting))

    def _end(self, row: OutcomeRow) -> None:
        self._outcome_count += 1
        self._outcomes[row.cell] = row
        self._cells[row.cell].ended = True
        self._new_outcomes.append((schema.row_id(self._run.run_no, self._outcome_count), *row))

    def _keep_apart(self, row: OutcomeRow) -> None:
        stored = self._statements.outcomes_apart.rows(self._connection, self._run.run_no, row.cell)
        if tuple(row) not in {tuple(kept) for kept in (*stored, *self._outcomes_apart)}:
            self._outcomes_apart.append(row)

    def _interrupt(self, fence: pb.CellFence, cell: CellView) -> None:
        message = "the executor was lost while the call was open"
        if not cell.open:
            message = "the executor was lost between two calls of a harness, whose attempt cannot be resumed"
        receipt = pb.Receipt(status=pb.CALL_STATUS_SENT_UNKNOWN, reason=EXECUTOR_LOST, message=message)
        for call in cell.calls.values():
            if call.status == _SENT:
                self._close(call, self._receipt_row(call, pb.Settle(receipt=receipt), None))
        if not cell.ended:
            outcome = pb.CellOutcome(
                cell=fence.cell,
                token=fence.token,
                case_index=fence.case_index,
                target_index=fence.target_index,
                state=queue_pb.CELL_STATE_INTERRUPTED,
                reason=EXECUTOR_LOST,
                message=message,
            )
            self._end(outcome_row(outcome, run_no=self._run.run_no, words=self._words))


def derive(target: TargetDeriving, receipt: pb.Receipt) -> Derived:
    """Tokens and money of a call. What was provably not accepted cost nothing; for everything else, what was not reported
    is unknown: an HTTP 4xx without a usage object may have been charged, and nothing says that it was not."""
    if receipt.status == _NOT_ACCEPTED:
        return Derived(cost=0)
    return target.price(receipt)


def _same_receipt(stored: ReceiptRow, row: ReceiptRow) -> bool:
    """Whether two rows say the same, wherever their evidence lies."""
    return stored._replace(segment=None, evidence_offset=None) == row._replace(segment=None, evidence_offset=None)
