"""What calls are doing now, where several accounting processes share a database: an executor reports to one of them, and a
reader may ask any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import func
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.db import GroupWriter
from srbench_kit.errors import SrBenchError

from srbench_accounting import schema
from srbench_accounting.activity import STALE_S, ActivityBoard
from srbench_accounting.evidence import CallKey, key_of
from srbench_accounting.statements import InStatement, Statement, upsert

SHARE_S = 1.0
_log = logging.getLogger(__name__)


class Activities:
    """Finds what calls are doing: in this process on one machine, else in the rows that all processes write."""

    def __init__(self, dialect: Dialect, board: ActivityBoard) -> None:
        self._board = board
        self.shared = dialect.name == "postgresql"
        table = schema.activity
        # The database's clock, for the processes' may differ.
        now = sa.cast(sa.extract("epoch", func.clock_timestamp()), sa.Double)
        young = table.c.told_s > now - sa.literal_column(str(STALE_S))
        self._reports = InStatement(
            lambda names: sa.select(table.c.report).where(table.c.executor_id.in_(names), young), dialect
        )
        self._tell = Statement(upsert(table, dialect, {"told_s": now}), dialect)
        self._forget = Statement(sa.delete(table).where(~young), dialect)

    def of(self, connection: Connection, asked: Iterable[tuple[CallKey, str]]) -> dict[CallKey, pb.CallActivity]:
        """What calls, given with their executor, are doing; those of which nobody said anything lately are left out."""
        calls = dict(asked)
        if not self.shared:
            found = {key: self._board.find(key) for key in calls}
            return {key: doing for key, doing in found.items() if doing is not None}
        doing: dict[CallKey, pb.CallActivity] = {}
        for (data,) in self._reports.rows(connection, sorted(set(calls.values()))):
            report = pb.ActivityReport.FromString(zstandard.decompress(data))
            doing.update({key: call for call in report.calls if (key := key_of(call.key)) in calls})
        return doing

    async def share_for_ever(self, writer: GroupWriter) -> None:
        """Writes what executors told this process since, once a second. No fact: what cannot be written is told anew."""
        while True:
            await asyncio.sleep(SHARE_S)
            reports = self._board.told()
            if not reports:
                continue
            try:
                await writer.run(lambda connection, told=reports: self._write(connection, told))  # type: ignore[misc]
            except SrBenchError as error:
                _log.warning("what calls are doing is not shared at the moment: %s", error)

    def _write(self, connection: Connection, reports: list[pb.ActivityReport]) -> None:
        # In one order everywhere, so that two processes never wait for each other's rows.
        rows = sorted((one.executor_id, zstandard.compress(one.SerializeToString())) for one in reports)
        self._tell.run_many(connection, rows)
        self._forget.run(connection)
