"""Pages of lists that are narrowed, or in another order than that of recording: from columns kept by run, a few passes over
which find the rows that fit, and of an order only the part that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting.column_files import ColumnFiles, Ints, until_sound
from srbench_accounting.kept_columns import KeptColumns, View
from srbench_accounting.list_columns import CallRows, OutcomeRows
from srbench_accounting.listing import Filter, Page, Start, chosen
from srbench_accounting.outcome_texts import OutcomeTexts
from srbench_accounting.preview_routes import NAMES, PreviewRoutes
from srbench_accounting.ranking import UNKNOWN, Ranking
from srbench_accounting.run_facts import PlanCases
from srbench_accounting.schema import row_id
from srbench_accounting.vocabulary import Vocabulary

Mask = NDArray[np.bool_]
# Calls that have no cost yet, or none at all.
_COSTLESS = (int(pb.CALL_STATUS_SENT), int(pb.CALL_STATUS_NOT_ACCEPTED))


class RankedList:
    """One kind of rows, outcomes or calls. Safe in any thread."""

    def __init__(
        self,
        kept: KeptColumns,
        vocabulary: Vocabulary,
        texts: OutcomeTexts | None = None,
        routes: PreviewRoutes | None = None,
        settled: Callable[[Connection, int], Ints] | None = None,
    ) -> None:
        """`texts` and `routes` are what outcomes have beyond their columns; `settled` tells the places of settled calls."""
        self.kept = kept
        self._vocabulary = vocabulary
        self._texts, self._routes, self._settled = texts, routes, settled

    def page(
        self,
        connection: Connection,
        run_no: int,
        cases: PlanCases,
        wanted: tuple[Filter, Ranking],
        start: Start,
        size: int,
    ) -> Page:
        """The page that begins at `start`: after a row in the order of recording, after so many rows in another."""
        return until_sound(lambda: self._page(connection, run_no, cases, wanted, start, size))

    def _page(
        self,
        connection: Connection,
        run_no: int,
        cases: PlanCases,
        wanted: tuple[Filter, Ranking],
        start: Start,
        size: int,
    ) -> Page:
        narrowed, ranking = wanted
        view, count = self.kept.load(connection, run_no)
        mask = _in_filter(narrowed, view, count)
        for name, number in ranking.numbers:
            mask &= view.column(name)[:count] == number
        if ranking.unknown_cost:
            mask &= self._of_unknown_cost(connection, run_no, view, count)
        for name, word in ranking.words:
            mask &= self._has_word(connection, run_no, view, count, name, word)
        if ranking.query and self._texts is not None:
            case_indexes = view.column("case_index")[:count]
            mask &= self._texts.holding(connection, run_no, cases, ranking.query, case_indexes, mask)
        places = np.flatnonzero(mask)
        if ranking.changes_nothing:
            fitting: Sequence[int] = places + 1  # type: ignore[assignment]  # An array is one to those who only look.
            return chosen(run_no, fitting, start, size)
        offset = start.after + start.offset
        if ranking.order_by:
            shown = ranked(places, view.column(ranking.order_by)[:count], ranking.descending, offset, size)
        else:
            shown = (places[::-1] if ranking.descending else places)[offset : offset + size]
        ids = [row_id(run_no, place + 1) for place in shown.tolist()]
        return Page(ids, len(places), offset + len(ids) < len(places), position=offset + len(ids))

    def _of_unknown_cost(self, connection: Connection, run_no: int, view: View, count: int) -> Mask:
        over = np.isin(view.column("status")[:count], np.array(_COSTLESS), invert=True)
        found: Mask = over & (view.column("cost")[:count] == UNKNOWN)
        if self._settled is not None:
            places = self._settled(connection, run_no)
            found[places[places < count]] = True
        return found

    def _has_word(self, connection: Connection, run_no: int, view: View, count: int, name: str, word: str) -> Mask:
        number = self._vocabulary.number_of(connection, word)
        found = np.zeros(count, dtype=np.bool_) if number is None else view.column(name)[:count] == number
        if self._routes is not None and name in NAMES:
            found |= self._routes.holding(connection, run_no, view, count, name, word)
        return found


def lists(dialect: Dialect, vocabulary: Vocabulary, folder: Path) -> tuple[RankedList, RankedList]:
    """The lists of outcomes and of calls, whose columns are saved in `folder`."""
    call_rows = CallRows(dialect)
    calls = KeptColumns(call_rows, ColumnFiles(folder, "calls", call_rows.names), dialect)
    outcome_rows = OutcomeRows(dialect, call_rows, calls)
    outcomes = KeptColumns(outcome_rows, ColumnFiles(folder, "outcomes", outcome_rows.names), dialect)
    return RankedList(outcomes, vocabulary, OutcomeTexts(dialect), PreviewRoutes(dialect)), RankedList(
        calls, vocabulary, settled=call_rows.settled
    )


def ranked(places: Ints, values: Ints, descending: bool, offset: int, size: int) -> Ints:
    """Those of `places` that stand from `offset` on when all are put in the order of their values: unknown ones last,
    equal ones as they were recorded. Only what lies about the page is sorted."""
    taken = values if len(places) == len(values) else values[places]
    known = taken != UNKNOWN
    if known.all():
        unknown, known_places, keys = places[:0], places, taken
    else:
        unknown, known_places, keys = places[~known], places[known], taken[known]
    if descending:
        keys = -keys
    end = min(offset + size, len(keys))
    if offset >= end:
        late: Ints = unknown[max(offset - len(keys), 0) :][:size]
        return late
    cut = np.partition(keys, (offset, end - 1))
    low, high = cut[offset], cut[end - 1]
    # Any number of rows may be as the page's first or last one; only those between are sorted.
    inside = (keys > low) & (keys < high)
    parts = [known_places[keys == low], known_places[inside][np.argsort(keys[inside], kind="stable")]]
    if high != low:
        parts.append(known_places[keys == high])
    before = int(np.count_nonzero(keys < low))
    shown: Ints = np.concatenate(parts)[offset - before : end - before]
    return np.concatenate([shown, unknown[: offset + size - end]])


def _in_filter(narrowed: Filter, view: View, count: int) -> Mask:
    """Which rows fit."""
    mask = np.ones(count, dtype=np.bool_)
    lines = {"target_index": narrowed.target, "state": narrowed.state, "correct": narrowed.correct, "cell": narrowed.cell}
    for name, value in lines.items():
        if value is not None:
            mask &= view.column(name)[:count] == value
    if narrowed.cases is not None:
        wanted = np.fromiter(narrowed.cases, dtype=np.int64, count=len(narrowed.cases))
        mask &= np.isin(view.column("case_index")[:count], wanted)
    return mask
