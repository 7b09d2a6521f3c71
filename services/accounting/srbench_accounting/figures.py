"""One side of a comparison, loaded from the ledger and kept until the ledger knows more of its run."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import planner_service_pb2 as planner_pb

from srbench_accounting import schema, views
from srbench_accounting.columns import CellEnd
from srbench_accounting.comparable import OUTPUT_LIMIT, Endings
from srbench_accounting.compare import RunFigures
from srbench_accounting.lineage_runs import lineage_runs
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.schema import row_id
from srbench_accounting.store import Store
from srbench_accounting.vocabulary import Vocabulary

# A side of the whole suite takes about 5 MB.
MAX_SIDES = 16


@dataclass(frozen=True, slots=True)
class Side:
    """A run with its figures."""

    run: planner_pb.Run
    known: KnownRun
    cases: PlanCases
    figures: RunFigures


class Sides:
    """Loads sides. What was loaded stays valid as long as nothing was appended to the run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[tuple[Any, ...], Side]] = OrderedDict()

    async def side(self, run_id: str) -> Side:
        """The run as one side. Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`."""
        registry = self._store.registry
        run, known = await asyncio.gather(registry.planner_run(run_id, summary=True), registry.run(run_id))
        cases = await registry.cases(known)
        revision, side = await self._store.reader.run(lambda connection: self._load(connection, run, known, cases))
        self._kept[run_id] = revision, side
        self._kept.move_to_end(run_id)
        while len(self._kept) > MAX_SIDES:
            self._kept.popitem(last=False)
        return side

    async def merged(self, run_id: str) -> Side:
        """The run together with its recoveries as one side; the run alone when it has none. Raises: as `side`."""
        lineage = await lineage_runs(self._store, run_id)
        if len(lineage) == 1:
            return await self.side(run_id)
        known, run = lineage[0]
        cases = await self._store.registry.cases(known)

        def work(connection: Connection) -> RunFigures:
            loaded = [views.load_run(self._store, connection, one, planner_run) for one, planner_run in lineage]
            return self._store.deriving.merged_figures(loaded, cases.cases)

        return Side(run, known, cases, await self._store.reader.run(work))

    def _load(
        self, connection: Connection, run: planner_pb.Run, known: KnownRun, cases: PlanCases
    ) -> tuple[tuple[Any, ...], Side]:
        revision = (run.status, run.update_time.seconds, run.update_time.nanos, *_revision(connection, known.run_no))
        kept = self._kept.get(run.id)
        if kept is not None and kept[0] == revision:
            return kept
        eligible_s = run.create_time.seconds + run.create_time.nanos / 1e9
        outcomes, calls = self._store.loader.load(connection, known.run_no, eligible_s)
        return revision, Side(run, known, cases, self._store.deriving.figures(run, cases.cases, outcomes, calls))


def _revision(connection: Connection, run_no: int) -> tuple[Any, ...]:
    """What changes whenever a fact of the run is appended or a receipt takes another's place."""
    runs, apart, corrections = schema.runs.c, schema.receipts_apart.c, schema.corrections.c
    counts = connection.execute(
        sa.select(runs.call_count, runs.outcome_count, runs.open_call_count, runs.unknown_cost_count, runs.spent).where(
            runs.run_no == run_no
        )
    ).one()
    late = sa.select(sa.func.count(), sa.func.max(apart.apart_id)).where(
        apart.call_id.between(row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
    )
    settled = sa.select(sa.func.max(schema.settlements.c.settlement_id)).where(
        schema.settlements.c.call_id.between(row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
    )
    corrected = sa.select(sa.func.max(corrections.correction_no)).where(corrections.run_no == run_no)
    newest = connection.execute(corrected).scalar(), connection.execute(settled).scalar()
    return (*counts, *connection.execute(late).one(), *newest)


def endings(connection: Connection, vocabulary: Vocabulary, run: KnownRun, planned: int) -> Endings:
    """How a run's cells ended, counted by the database."""
    table = schema.outcomes.c
    kinds = (table.state, table.correct.is_(None), table.reason, table.output_limit)
    rows = connection.execute(
        sa.select(*kinds, sa.func.count())
        .where(table.outcome_id.between(row_id(run.run_no, 0), row_id(run.run_no + 1, 0) - 1))
        .group_by(*kinds)
    ).all()
    words = vocabulary.words(connection, (row[2] for row in rows))
    reasons = {words[row[2]] for row in rows} - {""}
    if any(row[3] for row in rows):
        reasons.add(OUTPUT_LIMIT)
    return Endings(
        planned=planned,
        ended=sum(row[4] for row in rows),
        unfinished=sum(row[4] for row in rows if row[0] in (CellEnd.CANCELLED, CellEnd.INTERRUPTED)),
        ungraded=sum(row[4] for row in rows if row[0] == CellEnd.DONE and row[1]),
        reasons=frozenset(reasons),
    )
