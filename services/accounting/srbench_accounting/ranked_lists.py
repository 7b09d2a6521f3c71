"""Pages in another order than that of recording, or narrowed by what is not in the narrow index: reason, model, decision,
cost, times, text.

The columns that decide are kept in memory for the runs looked at last, and read again when the run's counters say that
anything moved. A run of 100,000 cells is read in about half a second and then answers in milliseconds.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import func
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import from_value

from srbench_accounting import schema
from srbench_accounting.listing import Filter, Page
from srbench_accounting.narrow_index import fits
from srbench_accounting.packing import unpack
from srbench_accounting.ranking import Ranking
from srbench_accounting.run_facts import PlanCases
from srbench_accounting.schema import row_id
from srbench_accounting.statements import Statement
from srbench_accounting.vocabulary import Vocabulary

MAX_ANSWER_CHARS = 2000
MAX_RUNS = 8
UNKNOWN = -1
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = dict[str, Ints]
_CELL = ("cell", "case_index", "target_index")
_WORDS = ("reason", "model", "selected_model", "decision", "finish_reason")


@dataclass(slots=True)
class _Kept:
    """What is kept of one run: the columns of one moment, and the texts of all outcomes so far."""

    moment: object
    columns: Columns
    texts: list[str]


class RankedList:
    """One kind of rows, outcomes or calls. Safe in any thread."""

    def __init__(self, load: Callable[[Connection, int], Columns], dialect: Dialect, vocabulary: Vocabulary) -> None:
        self._load = load
        self._vocabulary = vocabulary
        runs, apart, bind = schema.runs, schema.receipts_apart, sa.bindparam
        counters = ("outcome_count", "call_count", "open_call_count", "unknown_cost_count", "spent", "held_reserved")
        self._moment = Statement(
            sa.select(*[runs.c[name] for name in counters]).where(runs.c.run_no == bind("run_no_")), dialect
        )
        self._apart = Statement(sa.select(func.coalesce(func.max(apart.c.apart_id), sa.literal_column("0"))), dialect)
        outcomes = schema.outcomes
        self._rests = Statement(
            sa.select(outcomes.c.case_index, outcomes.c.rest)
            .where(outcomes.c.outcome_id.between(bind("first"), bind("last")))
            .order_by(outcomes.c.outcome_id),
            dialect,
        )
        self._runs: OrderedDict[int, _Kept] = OrderedDict()
        self._lock = Lock()

    def page(
        self, connection: Connection, run_no: int, cases: PlanCases, wanted: tuple[Filter, Ranking], offset: int, size: int
    ) -> Page:
        """The page after the first `offset` rows that fit."""
        narrowed, ranking = wanted
        with self._lock:
            kept = self._up_to_date(connection, run_no)
            columns = kept.columns
            if ranking.query:
                self._read_texts(connection, run_no, cases, kept)
                texts = kept.texts[: len(columns["cell"])]
        mask = _in_filter(narrowed, columns)
        for name, number in ranking.numbers:
            mask &= columns[name] == number
        for name, word in ranking.words:
            mask &= self._has_word(connection, columns[name], word)
        if ranking.query:
            mask &= np.fromiter((ranking.query in text for text in texts), dtype=np.bool_, count=len(texts))
        places = np.flatnonzero(mask)
        if ranking.order_by:
            places = _ordered(places, columns[ranking.order_by], ranking.descending)
        elif ranking.descending:
            places = places[::-1]
        chosen = places[offset : offset + size]
        ids = [row_id(run_no, int(place) + 1) for place in chosen]
        return Page(ids, len(places), offset + len(chosen) < len(places), position=offset + len(chosen))

    def _up_to_date(self, connection: Connection, run_no: int) -> _Kept:
        moment = (*self._moment.rows(connection, run_no)[0], *self._apart.rows(connection)[0])
        kept = self._runs.get(run_no)
        if kept is None or kept.moment != moment:
            texts = kept.texts if kept is not None else []
            kept = self._runs[run_no] = _Kept(moment, self._load(connection, run_no), texts)
        self._runs.move_to_end(run_no)
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return kept

    def _read_texts(self, connection: Connection, run_no: int, cases: PlanCases, kept: _Kept) -> None:
        """Adds the texts of outcomes that came since. Outcomes are only ever added, so those kept stay true."""
        first = row_id(run_no, len(kept.texts) + 1)
        rows = self._rests.rows(connection, first, row_id(run_no + 1, 0) - 1)
        kept.texts.extend(_text(cases, case_index, unpack(pb.CellOutcome, rest)) for case_index, rest in rows)

    def _has_word(self, connection: Connection, numbers: Ints, wanted: str) -> Mask:
        used = [int(number) for number in np.unique(numbers) if number != UNKNOWN]
        words = self._vocabulary.words(connection, used)
        fitting = [number for number in used if words[number] == wanted]
        return np.isin(numbers, np.array(fitting, dtype=np.int64))


def outcome_ranks(dialect: Dialect, vocabulary: Vocabulary) -> RankedList:
    """Outcomes, each with what its subject's calls cost, took and were answered by."""
    outcomes = schema.outcomes
    own = ("state", "correct", "reason")
    rows = _in_run(
        sa.select(*[_known(outcomes.c[name]) for name in (*_CELL, *own)]), outcomes, outcomes.c.outcome_id, dialect
    )
    calls = _calls(dialect)

    def load(connection: Connection, run_no: int) -> Columns:
        columns = _read(rows, connection, run_no, (*_CELL, *own))
        return columns | _by_cell(calls(connection, run_no), columns["cell"])

    return RankedList(load, dialect, vocabulary)


def call_ranks(dialect: Dialect, vocabulary: Vocabulary) -> RankedList:
    """Calls with their receipts in force."""
    calls = _calls(dialect)

    def load(connection: Connection, run_no: int) -> Columns:
        columns = calls(connection, run_no)
        return columns | {"model": _model(columns)}

    return RankedList(load, dialect, vocabulary)


def _calls(dialect: Dialect) -> Callable[[Connection, int], Columns]:
    calls, receipts = schema.calls, schema.receipts
    sent: sa.ColumnClause[int] = sa.literal_column(str(int(pb.CALL_STATUS_SENT)))
    numbers = {"cost": receipts.c.cost, "latency": receipts.c.latency_ns, "ttft": receipts.c.ttft_ns}
    selected = [
        *[calls.c[name] for name in (*_CELL, "role")],
        func.coalesce(receipts.c.status, sent),
        *[_known(column) for column in numbers.values()],
        *[_known(receipts.c[name]) for name in _WORDS],
    ]
    joined = calls.outerjoin(receipts, calls.c.call_id == receipts.c.call_id)
    statement = _in_run(sa.select(*selected), joined, calls.c.call_id, dialect)
    names = (*_CELL, "role", "status", *numbers, *_WORDS)
    return lambda connection, run_no: _read(statement, connection, run_no, names)


def _in_run(selected: Any, source: sa.FromClause, key: sa.Column[int], dialect: Dialect) -> Statement:
    bounds = key.between(sa.bindparam("first"), sa.bindparam("last"))
    return Statement(selected.select_from(source).where(bounds).order_by(key), dialect)


def _read(statement: Statement, connection: Connection, run_no: int, names: Sequence[str]) -> Columns:
    rows = statement.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
    table = np.array(rows, dtype=np.int64).reshape(-1, len(names)).T
    return dict(zip(names, np.ascontiguousarray(table), strict=True))


def _by_cell(calls: Columns, cells: Ints) -> Columns:
    """What the subject's calls of each cell add up to; one unknown part makes a sum unknown, as in the rows shown."""
    counted = (calls["role"] == pb.CALL_ROLE_SUBJECT) & (calls["status"] != pb.CALL_STATUS_NOT_ACCEPTED)
    calls = {name: column[counted] for name, column in calls.items()}
    order = np.argsort(cells, kind="stable")
    found = np.searchsorted(cells, calls["cell"], sorter=order)
    inside = found < len(cells)
    inside[inside] = cells[order[found[inside]]] == calls["cell"][inside]
    at = order[found[inside]]
    calls = {name: column[inside] for name, column in calls.items()}
    summed = {name: _sums(calls[name], at, len(cells)) for name in ("cost", "latency")}
    last, first = (np.full(len(cells), UNKNOWN, dtype=np.int64) for _ in range(2))
    last[at] = np.arange(len(at))
    first[at[::-1]] = np.arange(len(at))[::-1]
    return summed | {
        "ttft": _taken(calls["ttft"], first),
        "model": _taken(_model(calls), last),
        "decision": _taken(calls["decision"], last),
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


def _model(columns: Columns) -> Ints:
    """The model that answered: the router's word for it, else the answer's."""
    return np.where(columns["selected_model"] != UNKNOWN, columns["selected_model"], columns["model"])


def _in_filter(narrowed: Filter, columns: Columns) -> Mask:
    lines = [columns["case_index"], columns["target_index"]]
    lines += [columns[name] for name in ("state", "correct") if name in columns]
    mask = fits(narrowed, np.array(lines).reshape(len(lines), -1))
    return mask if narrowed.cell is None else mask & (columns["cell"] == narrowed.cell)


def _ordered(places: Ints, values: Ints, descending: bool) -> Ints:
    chosen = values[places]
    unknown = chosen == UNKNOWN
    return places[np.lexsort((places, -chosen if descending else chosen, unknown))]


def _text(cases: PlanCases, case_index: int, rest: pb.CellOutcome) -> str:
    case_id = cases.cases[case_index].case_id if case_index < len(cases.cases) else ""
    answer = from_value(rest.answer) if rest.HasField("answer") else ""
    shown = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return f"{case_id}\n{shown[:MAX_ANSWER_CHARS]}\n{rest.reason}\n{rest.message}".lower()


def _known(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return func.coalesce(column, sa.literal_column(str(UNKNOWN)))
