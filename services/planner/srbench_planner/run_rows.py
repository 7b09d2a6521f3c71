"""The row of a run: how it is read, and how it comes to be, with all that belongs to it from the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import plan_pb2, recipe_pb2, target_pb2
from srbench_kit import ids
from srbench_kit.auth import Actor
from srbench_kit.errors import NotFound
from srbench_kit.values import Json

from srbench_planner import experiments, store
from srbench_planner.journal import event_row, now_us
from srbench_planner.plans import StoredPlan

_PARENT = store.runs.alias("parent")
_JOINED = (
    store.runs.join(store.plans, store.runs.c.plan == store.plans.c.number)
    .outerjoin(store.recoveries, store.recoveries.c.run == store.runs.c.number)
    .outerjoin(_PARENT, _PARENT.c.number == store.recoveries.c.parent)
)
# Lists never touch manifests and provenance.
LISTED = sa.select(
    *(column for column in store.runs.c if column.name != "provenance"),
    store.plans.c.summary,
    store.plans.c.manifest_sha256,
    _PARENT.c.id.label("parent_id"),
).select_from(_JOINED)

# Runs inside the transaction that inserts a run, with its number.
Claim: TypeAlias = Callable[[Connection, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be.

    Attributes:
        status: `queued`, or `running` for one that no executor works on.
        term: that of the planner that has it.
        provenance: program, versions and machine as JSON text.
        recipes: (target id, recipe) of the routers whose configuration was captured.
        experiment: as in the manifest; `None` for none.
        claim: what else the transaction must do, or fail; only recoveries have one.
    """

    actor: Actor
    key: str
    stored: StoredPlan
    status: str = "queued"
    term: int = 0
    provenance: str
    recipes: Sequence[tuple[str, recipe_pb2.Recipe]] = ()
    experiment: Json = None
    claim: Claim | None = None


def by_key(connection: Connection, owner: str, key: str) -> Any:
    """The run that was started with `key`; `None` when there is none."""
    return connection.execute(LISTED.where(store.runs.c.owner == owner, store.runs.c.idempotency_key == key)).first()


def searchable(plan: plan_pb2.Plan) -> str:
    """The words that the list of runs is searched by: name, and each target's id, kind and model, in lower case."""
    words = [plan.name]
    for target in plan.targets:
        words += [target.id, target_pb2.TargetKind.Name(target.kind).removeprefix("TARGET_KIND_"), target.model]
    return "\n".join(words).lower()


def insert(connection: Connection, new: NewRun) -> tuple[Any, bool]:
    """The run's row, and whether it is new. Raises: `NotFound` (`NO_SUCH_EXPERIMENT`), and what `new.claim` raises."""
    existing = by_key(connection, new.actor.id, new.key)
    if existing is not None:
        return existing, False
    plan, now = new.stored.summary, now_us()
    values = {
        "id": ids.run_id(),
        "owner": new.actor.id,
        "plan": new.stored.number,
        "idempotency_key": new.key,
        "status": new.status,
        "create_us": now,
        "update_us": now,
        "deadline_us": now + int(plan.limits.max_run_seconds * 1e6),
        "mode": plan.mode,
        "profile": plan.profile,
        "searchable": searchable(plan),
        "provenance": new.provenance,
        "term": new.term,
    }
    connection.execute(store.runs.insert(), values)
    row = by_key(connection, new.actor.id, new.key)
    if new.claim is not None:
        new.claim(connection, row.number)
        row = by_key(connection, new.actor.id, new.key)
    connection.execute(store.events.insert(), event_row(row.number, "created", {"plan_sha256": plan.plan_sha256}))
    for target_id, recipe in new.recipes:
        saved = {"run": row.number, "target_id": target_id, "recipe": recipe.SerializeToString()}
        connection.execute(store.recipes.insert(), saved)
    if isinstance(new.experiment, dict):
        _join(connection, new, new.experiment, row.number)
    return row, True


def _join(connection: Connection, new: NewRun, wanted: dict[str, Json], number: int) -> None:
    """Links the run to the experiment that its manifest names."""
    try:
        experiment = experiments.find(connection, new.actor, str(wanted["id"]))
    except NotFound:
        if new.claim is None:
            raise
        # A recovery follows its parent into an experiment; that it was deleted since takes no answer from the parent.
        return
    hypothesis = str(wanted.get("hypothesis") or "")
    experiments.link(connection, experiment.number, number, role=str(wanted["role"]), hypothesis=hypothesis)
