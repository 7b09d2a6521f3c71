"""What accounting shows of its ledger to Prometheus. Sums come from the rows of runs, which are few, when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from srbench_kit import metrics

from srbench_accounting import schema
from srbench_accounting.store import Store

_PICO = 1e12


def watch(store: Store) -> None:
    """Shows money, calls and evidence of the whole ledger."""
    runs = schema.runs.c

    def total(*columns: sa.Column[int]) -> Mapping[str, float]:
        query = sa.select(*(sa.func.coalesce(sa.func.sum(column), 0) for column in columns))
        found = store.reader.run_now(lambda connection: connection.execute(query).one())
        return {column.name: float(value) for column, value in zip(columns, found, strict=True)}

    def spend() -> Mapping[str, float]:
        return {"": total(runs.spent)["spent"] / _PICO}

    def reserved() -> Mapping[str, float]:
        found = total(runs.open_reserved, runs.held_reserved)
        return {"open": found["open_reserved"] / _PICO, "unknown": found["held_reserved"] / _PICO}

    def calls() -> Mapping[str, float]:
        return {"": total(runs.call_count)["call_count"]}

    def outcomes() -> Mapping[str, float]:
        return {"": total(runs.outcome_count)["outcome_count"]}

    def open_calls() -> float:
        return total(runs.open_call_count)["open_call_count"]

    metrics.readings("srbench_spend_usd", "Known cost of all calls.", "", spend, "counter")
    metrics.readings("srbench_reserved_usd", "Reserved for calls that are open or whose cost is unknown.", "for", reserved)
    metrics.readings("srbench_dispatched_calls", "Calls that were let out.", "", calls, "counter")
    metrics.readings("srbench_outcomes", "Cells that ended with an outcome.", "", outcomes, "counter")
    metrics.gauge("srbench_open_calls", "Calls that were let out and have no end.", open_calls)
    depot = store.evidence.depot
    if depot is not None:
        metrics.gauge(
            "srbench_segments_waiting", "Sealed segments that are not in the object store yet.", lambda: depot.waiting
        )
