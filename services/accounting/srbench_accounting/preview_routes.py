"""Which outcomes of a preview would go to a model or by a decision: it makes no calls, whose words lists go by."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting import routing_rows, schema
from srbench_accounting.kept_columns import View
from srbench_accounting.routing import RoutingColumns
from srbench_accounting.statements import Statement

MAX_RUNS = 8
NAMES = ("model", "decision")
Mask: TypeAlias = NDArray[np.bool_]


class PreviewRoutes:
    """The routes of runs without calls, read once for as many outcomes as a run has. Safe in any thread."""

    def __init__(self, dialect: Dialect) -> None:
        runs = schema.runs
        self._counts = Statement(
            sa.select(runs.c.outcome_count, runs.c.call_count).where(runs.c.run_no == sa.bindparam("run_no_")), dialect
        )
        self._kept: OrderedDict[tuple[int, int], RoutingColumns] = OrderedDict()
        self._lock = Lock()

    def holding(self, connection: Connection, run_no: int, view: View, count: int, name: str, word: str) -> Mask:
        """Which of the first `count` outcomes would go by `word`, for a `name` of `NAMES`; none where calls were made."""
        none: Mask = np.zeros(count, dtype=np.bool_)
        outcome_count, call_count = self._counts.rows(connection, run_no)[0]
        if call_count:
            return none
        routes = self._routes(connection, run_no, outcome_count)
        labels = routes.model if name == "model" else routes.decision
        if word not in labels.vocabulary:
            return none
        chosen = labels.codes == labels.vocabulary.index(word)
        cases, targets = view.column("case_index")[:count], view.column("target_index")[:count]
        width = 1 + max(int(targets.max(initial=0)), int(routes.target.max(initial=0)))
        found: Mask = np.isin(cases * width + targets, (routes.case * width + routes.target)[chosen])
        return found

    def _routes(self, connection: Connection, run_no: int, outcome_count: int) -> RoutingColumns:
        key = (run_no, outcome_count)
        with self._lock:
            routes = self._kept.get(key)
            if routes is None:
                routes = self._kept[key] = routing_rows.load(connection, run_no)
            self._kept.move_to_end(key)
            while len(self._kept) > MAX_RUNS:
                self._kept.popitem(last=False)
            return routes
