"""Audits in the table: appended, the newest of a run in force."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection
from srbench.v1 import judging_pb2 as pb

from srbench_accounting import schema

MAX_BYTES = 1 << 26


def audit_id(request: pb.ImportAuditRequest) -> str:
    """The name of an audit: the same content has the same one."""
    return f"audit-{hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()[:20]}"


def newest(connection: Connection, run_no: int) -> tuple[str, int, pb.ImportAuditRequest] | None:
    """A run's audit in force: its name, when it came in microseconds since 1970, and what it says."""
    kept = schema.audits
    asked = sa.select(kept.c.audit_id, kept.c.create_us, kept.c.artifact).where(kept.c.run_no == run_no)
    row = connection.execute(asked.order_by(kept.c.audit_no.desc()).limit(1)).first()
    if row is None:
        return None
    data = zstandard.decompress(row.artifact, max_output_size=MAX_BYTES)
    return row.audit_id, row.create_us, pb.ImportAuditRequest.FromString(data)


def append(connection: Connection, run_no: int, request: pb.ImportAuditRequest, now_us: int) -> None:
    """Keeps an audit, unless it is there."""
    kept, name = schema.audits, audit_id(request)
    if connection.execute(sa.select(kept.c.audit_no).where(kept.c.audit_id == name)).first() is not None:
        return
    packed = zstandard.compress(request.SerializeToString(deterministic=True))
    values = {"audit_id": name, "run_no": run_no, "create_us": now_us, "artifact": packed}
    connection.execute(sa.insert(kept).values(values))
