"""Segments that no receipt refers to: what was written for facts that were never recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from srbench_kit.depot import PREFIX, SUFFIX
from srbench_kit.garbage import GarbageCollector, Kept
from srbench_kit.objects import PATIENCE_S, Objects

from srbench_accounting import schema
from srbench_accounting.evidence import EvidenceStore


def collector(objects_url: str, evidence: EvidenceStore, engine: Engine) -> GarbageCollector:
    """The collector of accounting's garbage."""
    return GarbageCollector(partial(_segments, objects_url, evidence), engine)


def _segments(objects_url: str, evidence: EvidenceStore) -> Kept:
    return Kept(
        objects=Objects(objects_url, patience_s=PATIENCE_S),
        prefix=PREFIX,
        name_of=_name_of,
        referenced=partial(_referenced, evidence),
        table=schema.receipts,
    )


def _name_of(path: str) -> str | None:
    name = path.rpartition("/")[2]
    return name if name.endswith(SUFFIX) else None


def _referenced(evidence: EvidenceStore, connection: Connection, names: Sequence[str]) -> set[str]:
    words = schema.vocabulary
    found = {name for name in names if evidence.is_written(name)}
    for table in (schema.receipts, schema.receipts_apart):
        query = (
            sa.select(words.c.word)
            .where(words.c.word.in_(names))
            .where(sa.exists().where(table.c.segment == words.c.word_no))
        )
        found |= set(connection.execute(query).scalars())
    return found
