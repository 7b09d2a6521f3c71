"""Blobs of inline cases that no plan refers to. Datasets and hidden tests are never garbage: people asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench_kit.blobs import name_of
from srbench_kit.garbage import GarbageCollector, Kept
from srbench_kit.objects import PATIENCE_S, Objects

from srbench_planner import store
from srbench_planner.plans import BLOBS


def collector(objects_url: str, engine: Engine) -> GarbageCollector:
    """The collector of the planner's garbage."""
    return GarbageCollector(partial(_blobs, objects_url), engine)


def _blobs(objects_url: str) -> Kept:
    return Kept(
        objects=Objects(objects_url, patience_s=PATIENCE_S),
        prefix=BLOBS,
        name_of=name_of,
        referenced=_referenced,
        table=store.plans,
    )


def _referenced(connection: Connection, names: Sequence[str]) -> set[str]:
    column = store.plans.c.cases_blob
    return set(connection.execute(sa.select(column).where(column.in_(names)).distinct()).scalars())
