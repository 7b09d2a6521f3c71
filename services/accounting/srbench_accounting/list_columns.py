"""Which columns are kept of calls and outcomes, for lists and for reports, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import func
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting import schema
from srbench_accounting.column_files import Ints
from srbench_accounting.kept_columns import KeptColumns, Mask, View
from srbench_accounting.ranking import UNKNOWN
from srbench_accounting.row_tables import RowTable, Table
from srbench_accounting.schema import row_id
from srbench_accounting.settled import applies, known_values, undone
from srbench_accounting.settled_columns import in_force_by_row
from srbench_accounting.settlements import Settlements
from srbench_accounting.statements import InStatement, Statement

Columns: TypeAlias = dict[str, Ints]
OUTCOME_COUNT, CALL_COUNT = 0, 1
_CELL = ("cell", "case_index", "target_index")
_NUMBERS = ("cost", "latency", "ttft")
_WORDS = ("reason", "model", "decision", "finish_reason")
# What reports alone need of a receipt, beside the calls' reservation and the sum of the prompt.
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
_FIGURES = (*_BUCKETS, "cache_neutral_cost", "inference_call_count", "cache_read_reported", "first_token_lag_ns")
# A call's end and cost as its receipt has them, under what operators settled.
_RECEIPT_OWN = {"receipt_status": "status", "receipt_cost": "cost"}
# No time before 1970 and no clock set back by more than this is taken for a real one.
NO_TIME = -(2**62)
# A call's end may still come, or come late; see `admission.takes_force`.
_MAY_CHANGE = (int(pb.CALL_STATUS_SENT), int(pb.CALL_STATUS_SENT_UNKNOWN))
_AT_ONCE = 512


class CallRows:
    """Calls with their receipts in force, as operators settled them."""

    _READ = (*_CELL, "role", "status", *_NUMBERS, *_WORDS, "own_model", "selected_model", "reserved", "prompt", *_FIGURES)
    names = (*_READ, *_RECEIPT_OWN)
    counter = CALL_COUNT

    def __init__(self, dialect: Dialect) -> None:
        calls, receipts = schema.calls, schema.receipts
        sent: sa.ColumnClause[int] = sa.literal_column(str(int(pb.CALL_STATUS_SENT)))
        selected = [
            *[calls.c[name] for name in (*_CELL, "role")],
            func.coalesce(receipts.c.status, sent),
            *[_known(receipts.c[name]) for name in ("cost", "latency_ns", "ttft_ns", "reason")],
            # The model that answered: the router's word for it, else the answer's.
            func.coalesce(receipts.c.selected_model, receipts.c.model, sa.literal_column(str(UNKNOWN))),
            *[_known(receipts.c[name]) for name in ("decision", "finish_reason")],
            *[_known(receipts.c.model), _known(receipts.c.selected_model), _known(calls.c.reserved), _prompt_tokens()],
            *[_known(receipts.c[name]) for name in _FIGURES],
        ]
        self._rows = RowTable(selected, calls.c.call_id, dialect, beside=receipts.c.call_id)
        joined = sa.select(calls.c.call_id, *selected).select_from(
            calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id)
        )
        self._again = InStatement(lambda ids: joined.where(calls.c.call_id.in_(ids)).order_by(calls.c.call_id), dialect)
        self._settlements = Settlements(dialect)
        self._witness = _witness(calls.c.call_id, ("cell", "token", "dispatch_us"), dialect)

    def read(self, connection: Connection, run_no: int, first: int, end: int) -> Table:
        """As `Rows.read`; settlements are of calls that were read before."""
        table = self._with_own(self._rows.read(connection, row_id(run_no, first + 1), row_id(run_no, end)))
        self._settle(table, np.arange(first, end), in_force_by_row(self._settlements.of_run(connection, run_no)))
        return table

    def may_change(self, table: Sequence[Ints]) -> Mask:
        """Calls whose end nobody has seen."""
        return np.isin(table[self.names.index("status")], np.array(_MAY_CHANGE))

    def again(self, connection: Connection, run_no: int, view: View, open_places: Ints) -> tuple[Ints, Table]:
        """Calls that were open, and those that operators settled."""
        settled = in_force_by_row(self._settlements.of_run(connection, run_no))
        seen = [place for place in settled if place < view.rows]
        places = np.union1d(open_places, np.array(seen, dtype=np.int64))
        table = np.empty((len(self._READ), len(places)), dtype=np.int64)
        for start in range(0, len(places), _AT_ONCE):
            ids = [row_id(run_no, place + 1) for place in places[start : start + _AT_ONCE].tolist()]
            rows = self._again.rows(connection, ids)
            table[:, start : start + len(ids)] = np.array(rows, dtype=np.int64)[:, 1:].T
        table = self._with_own(table)
        self._settle(table, places, settled)
        return places, table

    def witness(self, connection: Connection, run_no: int, place: int) -> Sequence[int]:
        """When a call was dispatched, for which cell and under which token."""
        return _first(self._witness.rows(connection, row_id(run_no, place + 1)))

    def settled(self, connection: Connection, run_no: int) -> Ints:
        """Places of the calls that operators settled."""
        return np.array([place - 1 for place in self._settlements.of_run(connection, run_no)], dtype=np.int64)

    def _with_own(self, read: Table) -> Table:
        """What was read, with the columns of `_RECEIPT_OWN`."""
        return np.concatenate([read, read[[self._READ.index(name) for name in _RECEIPT_OWN.values()]]])

    def _settle(self, table: Table, places: Ints, in_force: Mapping[int, pb.CallSettlement]) -> None:
        """Lays settlements over what calls cost, as the rows shown have it."""
        if not in_force or not len(places):
            return
        status_line, cost_line = table[self.names.index("status")], table[self.names.index("cost")]
        for place, settlement in in_force.items():
            at = int(np.searchsorted(places, place))
            if at == len(places) or places[at] != place:
                continue
            status, cost = int(status_line[at]), int(cost_line[at])
            if not applies(settlement, status, None if cost == UNKNOWN else cost):
                continue
            if undone(settlement, status):
                status_line[at] = pb.CALL_STATUS_NOT_ACCEPTED
            elif settlement.verdict == pb.SETTLEMENT_VERDICT_HAPPENED:
                cost_line[at] = known_values(settlement).get("cost", UNKNOWN)


class OutcomeRows:
    """Outcomes, each with what its subject's calls cost, took and were answered by, and whether one of them may change."""

    _KNOWN = (*_CELL, "state", "correct", "reason", "strict_format", "output_limit")
    _TIMES = ("start_us", "finish_after_us")
    _OWN = (*_KNOWN, *_TIMES)
    names = (*_OWN, *_NUMBERS, "model", "decision", "open")
    counter = OUTCOME_COUNT

    def __init__(self, dialect: Dialect, call_rows: CallRows, calls: KeptColumns) -> None:
        outcomes = schema.outcomes
        times = [func.coalesce(outcomes.c[name], sa.literal_column(str(NO_TIME))) for name in self._TIMES]
        own = [*[_known(outcomes.c[name]) for name in self._KNOWN], *times]
        self._rows = RowTable(own, outcomes.c.outcome_id, dialect)
        self._call_rows, self._calls = call_rows, calls
        self._witness = _witness(outcomes.c.outcome_id, ("cell", "token", "start_us", "finish_after_us"), dialect)

    def read(self, connection: Connection, run_no: int, first: int, end: int) -> Table:
        """As `Rows.read`."""
        own = self._rows.read(connection, row_id(run_no, first + 1), row_id(run_no, end))
        return np.concatenate([own, self._called(connection, run_no, own[0])])

    def may_change(self, table: Sequence[Ints]) -> Mask:
        """Outcomes of cells with a call whose end nobody has seen."""
        found: Mask = table[self.names.index("open")] == 1
        return found

    def again(self, connection: Connection, run_no: int, view: View, open_places: Ints) -> tuple[Ints, Table]:
        """Outcomes of calls that were open, and of those that operators settled."""
        settled, places = self._call_rows.settled(connection, run_no), open_places
        if len(settled):
            calls, _ = self._calls.load(connection, run_no)
            cells = calls.take("cell", settled[settled < calls.rows])
            places = np.union1d(places, view.with_values("cell", cells))
        own = np.array([view.take(name, places) for name in self._OWN]).reshape(len(self._OWN), -1)
        return places, np.concatenate([own, self._called(connection, run_no, own[0])])

    def witness(self, connection: Connection, run_no: int, place: int) -> Sequence[int]:
        """When a cell began and ended, and under which token."""
        return _first(self._witness.rows(connection, row_id(run_no, place + 1)))

    def _called(self, connection: Connection, run_no: int, cells: Ints) -> Table:
        """The columns that come from the calls of `cells`."""
        if not len(cells):
            return np.empty((len(self.names) - len(self._OWN), 0), dtype=np.int64)
        calls, _ = self._calls.load(connection, run_no)
        places = calls.with_values("cell", cells)
        wanted = ("cell", "role", "status", *_NUMBERS, "model", "decision")
        return np.array(list(_by_cell({name: calls.take(name, places) for name in wanted}, cells).values()))


def _by_cell(calls: Columns, cells: Ints) -> Columns:
    """What the subject's calls of each cell add up to; one unknown part makes a sum unknown, as in the rows shown."""
    counted = (calls["role"] == pb.CALL_ROLE_SUBJECT) & (calls["status"] != pb.CALL_STATUS_NOT_ACCEPTED)
    calls = {name: column[counted] for name, column in calls.items()}
    order = np.argsort(cells, kind="stable")
    at = order[np.searchsorted(cells, calls["cell"], sorter=order)]
    last, first = (np.full(len(cells), UNKNOWN, dtype=np.int64) for _ in range(2))
    last[at] = np.arange(len(at))
    first[at[::-1]] = np.arange(len(at))[::-1]
    still_open = np.zeros(len(cells), dtype=np.int64)
    still_open[at[np.isin(calls["status"], np.array(_MAY_CHANGE))]] = 1
    return {
        "cost": _sums(calls["cost"], at, len(cells)),
        "latency": _sums(calls["latency"], at, len(cells)),
        "ttft": _taken(calls["ttft"], first),
        "model": _taken(calls["model"], last),
        "decision": _taken(calls["decision"], last),
        "open": still_open,
    }


def _sums(values: Ints, at: Ints, count: int) -> Ints:
    total, seen = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    unknown = np.zeros(count, dtype=np.bool_)
    np.add.at(total, at, np.maximum(values, 0))
    seen[at] = True
    unknown[at[values == UNKNOWN]] = True
    return np.where(seen & ~unknown, total, UNKNOWN)


def _taken(values: Ints, places: Ints) -> Ints:
    taken = np.full(len(places), UNKNOWN, dtype=np.int64)
    known = places != UNKNOWN
    taken[known] = values[places[known]]
    return taken


def _prompt_tokens() -> sa.ColumnElement[int]:
    """All prompt tokens, from their parts where these are known."""
    receipts = schema.receipts.c
    parts = receipts.input_tokens + receipts.cached_input_tokens + receipts.cache_write_tokens
    return func.coalesce(receipts.prompt_tokens, parts, sa.literal_column(str(UNKNOWN)))


def _known(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return func.coalesce(column, sa.literal_column(str(UNKNOWN)))


def _witness(key: sa.Column[int], names: Sequence[str], dialect: Dialect) -> Statement:
    columns = [_known(key.table.c[name]) for name in names]
    return Statement(sa.select(*columns).where(key == sa.bindparam("id_")), dialect)


def _first(rows: Sequence[Sequence[int]]) -> list[int]:
    """The first row; none for a row that is not there."""
    return list(rows[0]) if rows else []
