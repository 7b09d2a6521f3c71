"""Experiments: a name for runs that answer one question together. Links lie beside the runs, which never change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import experiment_pb2 as pb
from srbench_kit import ids, pages
from srbench_kit.auth import Actor
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import Conflict, InvalidInput, NotFound

from srbench_planner import checks, convert, store
from srbench_planner.journal import now_us

MAX_NAME = 160
MAX_KEY = 128
PAGE, MAX_PAGE = 20, 50
_LINKS = store.experiment_runs
_ENDED = ("completed", "failed", "cancelled", "interrupted")
_COUNT = sa.select(sa.func.count()).where(_LINKS.c.experiment == store.experiments.c.number)
_ACTIVE = _COUNT.where(store.runs.c.number == _LINKS.c.run, store.runs.c.status.not_in(_ENDED))
_SHOWN = sa.select(
    store.experiments,
    _COUNT.scalar_subquery().label("run_count"),
    _ACTIVE.scalar_subquery().label("active_run_count"),
)


class Experiments:
    """The experiments of a store."""

    def __init__(self, writer: GroupWriter, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def create(self, actor: Actor, request: pb.CreateExperimentRequest) -> pb.Experiment:
        """See `PlannerService.CreateExperiment`."""
        name = request.name.strip()
        if not 1 <= len(name) <= MAX_NAME:
            raise checks.bad("name", request.name, f"a text of 1 to {MAX_NAME} characters", "BAD_NAME")
        key = request.idempotency_key
        if not 1 <= len(key) <= MAX_KEY:
            raise InvalidInput("BAD_IDEMPOTENCY_KEY", f"idempotency_key has {len(key)} characters; expected 1 to {MAX_KEY}")
        return message(await self._writer.run(lambda connection: _create(connection, actor, name, key)))

    async def get(self, actor: Actor, identifier: str) -> pb.Experiment:
        """One experiment. Raises: `NotFound` (`NO_SUCH_EXPERIMENT`)."""
        return message(await self.row(actor, identifier))

    async def row(self, actor: Actor, identifier: str) -> Any:
        """The row of an experiment. Raises: `NotFound` (`NO_SUCH_EXPERIMENT`)."""
        return await self._reader.run(lambda connection: find(connection, actor, identifier))

    async def list(self, actor: Actor, request: pb.ListExperimentsRequest) -> pb.ListExperimentsResponse:
        """Experiments, newest first. Raises: `InvalidInput` (`BAD_PAGE_TOKEN`, `BAD_PAGE_SIZE`)."""
        size = pages.page_size(request.page_size, PAGE, MAX_PAGE)
        filters = ("experiments", actor.id, actor.sees_all)
        before = pages.decode(request.page_token, *filters)
        query = _SHOWN.order_by(store.experiments.c.number.desc()).limit(size + 1)
        if not actor.sees_all:
            query = query.where(store.experiments.c.owner == actor.id)
        if before is not None:
            query = query.where(store.experiments.c.number < before)
        rows = await self._reader.run(lambda connection: list(connection.execute(query).all()))
        response = pb.ListExperimentsResponse(experiments=[message(row) for row in rows[:size]])
        if len(rows) > size:
            response.next_page_token = pages.encode(rows[size - 1].number, *filters)
        return response

    async def delete(self, actor: Actor, identifier: str) -> pb.DeletedExperiment:
        """Deletes an experiment, not its runs. Raises: `NotFound`, `Conflict` (`EXPERIMENT_ACTIVE_RUNS`)."""
        return await self._writer.run(lambda connection: _delete(connection, actor, identifier))

    async def attach(self, actor: Actor, identifier: str, run: int, role: str, hypothesis: str) -> Any:
        """Links a run that the actor may see. Raises: `NotFound`, `Conflict` (`ALREADY_ATTACHED`)."""

        def work(connection: Connection) -> Any:
            experiment = find(connection, actor, identifier)
            return link(connection, experiment.number, run, role=role, hypothesis=hypothesis)

        return await self._writer.run(work)

    async def members(self, experiment: Any, size: int, before: int | None) -> Sequence[Any]:
        """Links of an experiment, newest first, one more than `size`; each with the id of its run."""
        query = (
            sa.select(_LINKS, store.runs.c.id.label("run_id"))
            .select_from(_LINKS.join(store.runs, store.runs.c.number == _LINKS.c.run))
            .where(_LINKS.c.experiment == experiment.number)
            .order_by(_LINKS.c.number.desc())
            .limit(size + 1)
        )
        if before is not None:
            query = query.where(_LINKS.c.number < before)
        return await self._reader.run(lambda connection: list(connection.execute(query).all()))


def message(row: Any) -> pb.Experiment:
    """The message of an experiment's row."""
    return pb.Experiment(
        id=row.id,
        owner=row.owner,
        name=row.name,
        run_count=row.run_count,
        create_time=convert.timestamp(row.create_us),
        update_time=convert.timestamp(row.update_us),
        active_run_count=row.active_run_count,
    )


def find(connection: Connection, actor: Actor, identifier: str) -> Any:
    """The row of an experiment; those of other owners are not there. Raises: `NotFound` (`NO_SUCH_EXPERIMENT`)."""
    row = connection.execute(_SHOWN.where(store.experiments.c.id == identifier)).first()
    if row is None or not (actor.sees_all or row.owner == actor.id):
        raise NotFound("NO_SUCH_EXPERIMENT", f"there is no experiment {identifier!r}", experiment_id=identifier)
    return row


def link(connection: Connection, experiment: int, run: int, *, role: str, hypothesis: str) -> Any:
    """The link of a run to an experiment; the same again is the same. Raises: `Conflict` (`ALREADY_ATTACHED`)."""
    query = sa.select(_LINKS).where(_LINKS.c.experiment == experiment, _LINKS.c.run == run)
    found = connection.execute(query).first()
    if found is not None:
        if (found.role, found.hypothesis) == (role, hypothesis):
            return found
        raise Conflict("ALREADY_ATTACHED", f"the run is in this experiment already, as {found.role}; a link never changes")
    now = now_us()
    values = {"experiment": experiment, "run": run, "role": role, "hypothesis": hypothesis, "create_us": now}
    connection.execute(_LINKS.insert(), values)
    touched = store.experiments.update().where(store.experiments.c.number == experiment)
    connection.execute(touched.values(update_us=now))
    return connection.execute(query).one()


def roles_of(connection: Connection, runs: Iterable[int]) -> dict[int, list[pb.ExperimentLink]]:
    """The parts of runs in experiments, by run."""
    query = (
        sa.select(_LINKS.c.run, _LINKS.c.role, _LINKS.c.hypothesis, store.experiments.c.id)
        .select_from(_LINKS.join(store.experiments, store.experiments.c.number == _LINKS.c.experiment))
        .where(_LINKS.c.run.in_(list(runs)))
        .order_by(_LINKS.c.number)
    )
    found: dict[int, list[pb.ExperimentLink]] = {}
    for run, role, hypothesis, identifier in connection.execute(query):
        entry = pb.ExperimentLink(experiment_id=identifier, role=role, hypothesis=hypothesis)
        found.setdefault(run, []).append(entry)
    return found


def _create(connection: Connection, actor: Actor, name: str, key: str) -> Any:
    own = store.experiments.c.owner == actor.id, store.experiments.c.idempotency_key == key
    found = connection.execute(_SHOWN.where(*own)).first()
    if found is not None:
        if found.name != name:
            raise Conflict(
                "IDEMPOTENCY_CONFLICT", f"idempotency_key {key!r} created {found.id} under another name; use a new key"
            )
        return found
    gone = store.experiment_deletions
    deleted = connection.execute(
        sa.select(gone.c.id).where(gone.c.owner == actor.id, gone.c.idempotency_key == key)
    ).first()
    if deleted is not None:
        raise Conflict(
            "EXPERIMENT_DELETED", f"idempotency_key {key!r} created {deleted.id}, which was deleted; use a new key"
        )
    now = now_us()
    values = {"id": ids.prefixed("exp"), "owner": actor.id, "name": name, "idempotency_key": key}
    connection.execute(store.experiments.insert(), values | {"create_us": now, "update_us": now})
    return connection.execute(_SHOWN.where(*own)).one()


def _delete(connection: Connection, actor: Actor, identifier: str) -> pb.DeletedExperiment:
    row = find(connection, actor, identifier)
    active = connection.execute(
        sa.select(store.runs.c.id)
        .select_from(_LINKS.join(store.runs, store.runs.c.number == _LINKS.c.run))
        .where(_LINKS.c.experiment == row.number, store.runs.c.status.not_in(_ENDED))
        .limit(1)
    ).first()
    if active is not None:
        raise Conflict(
            "EXPERIMENT_ACTIVE_RUNS", f"run {active.id} of {identifier} has not ended; stop it or wait", run_id=active.id
        )
    now = now_us()
    tombstone = {"id": row.id, "owner": row.owner, "name": row.name, "idempotency_key": row.idempotency_key}
    connection.execute(store.experiment_deletions.insert(), tombstone | {"run_count": row.run_count, "delete_us": now})
    connection.execute(_LINKS.delete().where(_LINKS.c.experiment == row.number))
    connection.execute(store.experiments.delete().where(store.experiments.c.number == row.number))
    return pb.DeletedExperiment(id=row.id, name=row.name, run_count=row.run_count, delete_time=convert.timestamp(now))
