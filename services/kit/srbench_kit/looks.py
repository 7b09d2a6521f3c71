"""What processes that keep things have in common to look at when they are inspected: database and object store."""

from __future__ import annotations

import os
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from srbench.v1 import operations_service_pb2 as pb

from srbench_kit.db import storage_error
from srbench_kit.depot import Depot
from srbench_kit.errors import SrBenchError
from srbench_kit.ids import uuid7_hex
from srbench_kit.objects import Objects
from srbench_kit.operations import Look, failed, ok, warning

WAITING_SEGMENTS = 3


def database(engine: Engine, head: str) -> tuple[str, Look]:
    """Whether the tables can be reached, are of this version, and can be written to."""

    def look(_request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
        kind = engine.dialect.name
        try:
            with engine.connect() as opened:
                connection = opened.execution_options(srbench_write=True)
                with connection.begin():
                    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
                    connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))
        except (sa.exc.SQLAlchemyError, OSError) as error:
            known = storage_error(error)
            what = known.message if known is not None else type(error).__name__
            return [failed("database", f"{kind}: {what}", "start the database, check its address, rights and disk")]
        checks = [ok("database", f"{kind} answers and can be written to")]
        if found == head:
            return [*checks, ok("migrations", f"tables are at {head}")]
        remedy = "run the same version everywhere; the newest one migrates the tables when it starts"
        return [*checks, failed("migrations", f"tables are at {found}; this version expects {head}", remedy)]

    return "database", look


def object_store(url: str, depot: Depot | None = None) -> tuple[str, Look]:
    """Whether objects can be written, read and deleted, and whether sealed segments wait for that."""

    def look(_request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
        path, data = f"probes/{uuid7_hex()}", b"sr-bench doctor"
        try:
            objects = Objects(url)
            objects.check_bucket()
            objects.put(path, data)
            same = objects.get(path) == data
            objects.delete(path)
        except SrBenchError as error:
            remedy = "start the object store; check SR_BENCH_OBJECTS_URL, the bucket and the AWS_* credentials"
            return [failed("object_store", error.message, remedy)]
        except OSError as error:
            return [failed("object_store", os.strerror(error.errno or 0), "check the folder's rights and its disk")]
        if not same:
            return [failed("object_store", "it gave back other bytes than were written", "do not use this store")]
        checks = [ok("object_store", "objects can be written, read and deleted")]
        if depot is not None and depot.waiting > WAITING_SEGMENTS:
            found = f"{depot.waiting} sealed segments wait to be carried to the object store"
            checks.append(warning("segments", found, "see accounting's log; keep its volume until they are carried"))
        return checks

    return "object_store", look
