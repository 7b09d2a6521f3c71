"""The runs of a lineage, as the ledger and as the planner know them."""

from __future__ import annotations

from srbench_accounting.store import Store
from srbench_accounting.views import LineageRuns


async def lineage_runs(store: Store, run_id: str) -> LineageRuns:
    """A run and its recoveries, oldest first; the first with its manifest. Raises: `NotFound` (`NO_SUCH_RUN`)."""
    first = await store.registry.planner_run(run_id)
    recoveries = (await store.registry.lineage(run_id))[1:] if first.child_run_ids else []
    return [(await store.registry.run(run.id), run) for run in (first, *recoveries)]
