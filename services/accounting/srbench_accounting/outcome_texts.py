"""The texts that outcomes are searched by. Answers repeat, so each text is kept and searched once, whoever has it. What
finds no room in memory is read again by each search, of the rows that fit everything else that is asked."""

from __future__ import annotations

import json
from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import from_value

from srbench_accounting import schema
from srbench_accounting.column_files import Ints
from srbench_accounting.packing import unpack
from srbench_accounting.run_facts import PlanCases
from srbench_accounting.schema import row_id
from srbench_accounting.statements import Statement

Mask: TypeAlias = NDArray[np.bool_]
MAX_ANSWER_CHARS = 2000
MAX_RUNS = 8
# Characters of one run's texts in memory: of answers of 400 characters, some 40,000 that differ.
MAX_CHARS = 16_000_000
_AT_ONCE = 10_000
_NOT_KEPT = -1


@dataclass(slots=True)
class _Texts:
    """The texts of one run, and for each outcome the number of its own."""

    texts: dict[str, int] = field(default_factory=dict)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    chars: int = 0
    lock: Lock = field(default_factory=Lock)


class OutcomeTexts:
    """Answers, reasons and messages by run. Outcomes are only ever added, so what is kept stays true. Safe in any
    thread."""

    def __init__(self, dialect: Dialect) -> None:
        outcomes = schema.outcomes
        self._rests = Statement(
            sa.select(outcomes.c.rest)
            .where(outcomes.c.outcome_id.between(sa.bindparam("first"), sa.bindparam("last")))
            .order_by(outcomes.c.outcome_id),
            dialect,
        )
        self._runs: OrderedDict[int, _Texts] = OrderedDict()
        self._lock = Lock()

    def holding(
        self, connection: Connection, run_no: int, cases: PlanCases, query: str, case_indexes: Ints, wanted: Mask
    ) -> Mask:
        """Which outcomes hold `query` in their case's id or in their text; `case_indexes` are theirs, in order. Of those
        that are not `wanted`, `False` may be said, too."""
        kept, count = self._kept(run_no), len(case_indexes)
        with kept.lock:
            self._read(connection, run_no, kept, count)
            numbers = np.frombuffer(kept.numbers, dtype=np.int64)[:count].copy()
            fitting = np.fromiter((query in text for text in kept.texts), dtype=np.bool_, count=len(kept.texts))
        of_case = np.fromiter((query in case_id for case_id in cases.lower_ids), np.bool_, len(cases.cases))
        inside = case_indexes < len(of_case)
        # At the end, where `_NOT_KEPT` leads.
        found: Mask = np.append(fitting, False)[numbers]
        found[inside] |= of_case[case_indexes[inside]]
        left = np.flatnonzero(wanted & ~found & (numbers == _NOT_KEPT))
        found[self._holding_now(connection, run_no, left, query)] = True
        return found

    def _holding_now(self, connection: Connection, run_no: int, places: Ints, query: str) -> list[int]:
        """Those of `places`, counted from 0 and in order, whose outcomes hold `query` as the tables have them."""
        found: list[int] = []
        while len(places):
            first, end = int(places[0]), int(places[0]) + _AT_ONCE
            here, places = places[places < end], places[places >= end]
            rests = self._rests.rows(connection, row_id(run_no, first + 1), row_id(run_no, int(here[-1]) + 1))
            texts = {rest: query in _text(unpack(pb.CellOutcome, rest)) for rest in {rests[n][0] for n in here - first}}
            found += [place for place in here.tolist() if texts[rests[place - first][0]]]
        return found

    def _read(self, connection: Connection, run_no: int, kept: _Texts, count: int) -> None:
        for first in range(len(kept.numbers), count, _AT_ONCE):
            end, seen = min(first + _AT_ONCE, count), dict[bytes, int]()
            for (rest,) in self._rests.rows(connection, row_id(run_no, first + 1), row_id(run_no, end)):
                number = seen.get(rest)
                if number is None:
                    number = seen[rest] = _keep(kept, _text(unpack(pb.CellOutcome, rest)))
                kept.numbers.append(number)

    def _kept(self, run_no: int) -> _Texts:
        with self._lock:
            kept = self._runs.setdefault(run_no, _Texts())
            self._runs.move_to_end(run_no)
            while len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
            return kept


def _keep(kept: _Texts, text: str) -> int:
    """The number of a text, `_NOT_KEPT` when there is no room for it."""
    number = kept.texts.get(text)
    if number is None:
        if kept.chars + len(text) > MAX_CHARS:
            return _NOT_KEPT
        number = kept.texts[text] = len(kept.texts)
        kept.chars += len(text)
    return number


def _text(rest: pb.CellOutcome) -> str:
    answer = from_value(rest.answer) if rest.HasField("answer") else ""
    shown = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return f"{shown[:MAX_ANSWER_CHARS]}\n{rest.reason}\n{rest.message}".lower()
