"""What survives: a restart, a full disk, a reader that holds on, many writers at once."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import db

RUN = "run-0123456789abcdef0123"


async def test_a_restart_keeps_everything_and_needs_no_planner(
    restartable: Any, planner: Any, facts: Any, evidence_of: Any
) -> None:
    async with restartable() as (service, writer):
        await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("B")), facts.outcome(0))
        await writer.send(facts.dispatch(1, token=5))
        before = await service.spend()
    planner.contexts.clear()
    async with restartable() as (service, writer):
        assert await service.spend() == before
        assert await writer.reasons(facts.dispatch(1, token=4)) == ["ALREADY_DISPATCHED"]
        assert await writer.reasons(facts.dispatch(1, token=5), facts.settle(1), facts.outcome(1, token=5)) == [""] * 3
        calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
        whole = await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=calls[0].id))
        assert (whole.final, whole.model, whole.cost_picodollars) == ("B", "m", 60)
        outcomes = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN))
        assert [row.sequence for row in outcomes.results] == [1, 2]


async def test_a_full_disk_refuses_whole_messages_and_recovers(
    service: Any, writer: Any, facts: Any, evidence_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case B121: what was acknowledged is readable, what was not left no trace."""
    await writer.send(*[facts.dispatch(cell) for cell in range(3)])
    settled = [facts.settle(cell, evidence=evidence_of(f"answer {cell}")) for cell in range(3)]
    assert await writer.reasons(settled[0]) == [""]
    real = os.pwrite

    def full(file: int, data: bytes, offset: int) -> int:
        if offset > 60:
            real(file, bytes(data)[:30], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    reasons = await writer.reasons(settled[1], facts.dispatch(3))
    assert reasons == ["STORAGE_FULL", "STORAGE_FULL"]
    spend = await service.spend()
    assert (spend.call_count, spend.open_call_count) == (3, 2)
    monkeypatch.undo()
    assert await writer.reasons(settled[1], settled[2], facts.dispatch(3)) == ["", "", ""]
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    whole = [await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id)) for call in calls[:3]]
    assert [call.final for call in whole] == ["answer 0", "answer 1", "answer 2"]


async def test_a_failed_sync_loses_nothing_that_is_acknowledged_later(
    service: Any, writer: Any, facts: Any, evidence_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.send(facts.dispatch(0))
    settled = facts.settle(0, evidence=evidence_of("A"))
    failures = [OSError(errno.ENOSPC, "No space left on device")]
    real = os.fdatasync

    def once(file: int) -> None:
        if failures:
            raise failures.pop()
        real(file)

    monkeypatch.setattr(os, "fdatasync", once)
    assert await writer.reasons(settled) == [""]
    segments = sorted((tmp_path / "segments").iterdir())
    assert len(segments) == 2
    segments[0].unlink()
    (call,) = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    assert (await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id))).final == "A"


@pytest.mark.sqlite_only
async def test_full_tables_are_told_as_a_full_store(
    service: Any, writer: Any, facts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.send(facts.dispatch(0))
    with service.store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    await service.store.writer.run(lambda found: found.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar())
    long = {"state": queue_pb.CELL_STATE_FAILED, "message": os.urandom(20000).hex()}
    assert await writer.reasons(facts.outcome(7, **long)) == ["STORAGE_FULL"]
    await service.store.writer.run(lambda found: found.exec_driver_sql("PRAGMA max_page_count=100000").scalar())
    assert await writer.reasons(facts.outcome(7, **long)) == [""]


@pytest.mark.sqlite_only
async def test_eight_writers_beside_a_reader_that_holds_on_lose_nothing(
    service: Any, planner: Any, tmp_path: Path, fact_writer: Any, facts_of: Any
) -> None:
    """Case B113: 8 writers of 200 rows, a reader that holds its view for 3 s and then writes."""
    planner.add_run(max_cost=10**9)
    planner.add_cases(1000)
    held = sqlite3.connect(tmp_path / "accounting.sqlite3", isolation_level=None)
    held.execute("BEGIN")
    held.execute("SELECT count(*) FROM calls").fetchone()
    release = asyncio.get_running_loop().call_later(3, held.rollback)

    async def write(number: int) -> list[str]:
        facts, writer = facts_of(number * 10_000), fact_writer()
        reasons = [await writer.reasons(facts.dispatch(cell)) for cell in range(number * 200, number * 200 + 200)]
        await writer.close()
        return [reason for (reason,) in reasons]

    reasons = await asyncio.gather(*[write(number) for number in range(8)])
    assert [reason for part in reasons for reason in part] == [""] * 1600
    release.cancel()
    held.close()
    calls = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, page_size=1))
    assert calls.total == 1600
    spend = await service.spend()
    assert (spend.call_count, spend.reserved_picodollars) == (1600, 160_000)


async def test_a_fact_that_trips_a_bug_is_refused_alone(
    service: Any, writer: Any, facts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.send(facts.dispatch(0), facts.dispatch(1))
    real = service.store.ledger.record

    def trip(connection: Any, items: Any) -> Any:
        if any(item.fact.settle.key.cell == 1 for item in items):
            raise KeyError("bug")
        return real(connection, items)

    monkeypatch.setattr(type(service.store.ledger), "record", lambda _self, connection, items: trip(connection, items))
    reasons = await writer.reasons(facts.settle(0), facts.settle(1), facts.outcome(0))
    assert reasons == ["", "INTERNAL_ERROR", ""]


@pytest.mark.postgres_only
async def test_facts_wait_for_a_database_server_that_is_away_for_longer_than_a_commit_is_tried(
    service: Any, writer: Any, facts: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All connections fail, new ones, too; what is told meanwhile is acknowledged when the server answers again."""
    await writer.send(facts.dispatch(0))
    monkeypatch.setattr(db, "PATIENCE_S", 0.0)
    monkeypatch.setattr("srbench_accounting.recording.AWAY_PAUSE_S", 0.01)
    pool, away = service.store.engine.pool, threading.Event()
    connect = pool._creator

    def refused(*given: Any) -> Any:
        if away.is_set():
            raise psycopg.OperationalError("connection refused")
        return connect(*given)

    monkeypatch.setattr(pool, "_creator", refused)
    away.set()
    pool.dispose()
    telling = asyncio.create_task(writer.reasons(facts.settle(0), facts.outcome(0), facts.dispatch(1)))
    async with asyncio.timeout(60):
        while "facts wait for the database" not in caplog.text:  # noqa: ASYNC110 - a log sets no event
            await asyncio.sleep(0.01)
    assert not telling.done()
    away.clear()
    assert await asyncio.wait_for(telling, 60) == ["", "", ""]
    spend = await service.spend()
    assert (spend.call_count, spend.open_call_count) == (2, 1)
