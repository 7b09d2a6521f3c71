"""The columns of a report are kept in memory, and are at every moment what a fresh start would read."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
from srbench.v1 import accounting_service_pb2 as pb
from srbench_accounting.columns import Labels
from srbench_accounting.loading import ColumnLoader
from srbench_accounting.ranking import LazyRanks

RUN = "run-0123456789abcdef0123"
UNKNOWN_END = {"status": pb.CALL_STATUS_SENT_UNKNOWN, "reason": "executor_lost", "cost": None}


def plain(table: Any) -> dict[str, list[Any]]:
    """Columns as lists, texts spelled out."""
    found: dict[str, list[Any]] = {}
    for name in table.__slots__:
        column = getattr(table, name)
        if column is None:
            found[name] = []
        elif isinstance(column, Labels):
            found[name] = [column.vocabulary[code] if code >= 0 else None for code in column.codes]
        else:
            found[name] = np.nan_to_num(column, nan=-7.0).tolist()
    return found


def loader(service: Any, folder: Path) -> ColumnLoader:
    """A loader that has seen nothing but what is saved in `folder`."""
    store = service.store
    lists = LazyRanks(store.engine.dialect, store.vocabulary, folder)
    return ColumnLoader(lists.outcomes.kept, lists.calls.kept, store.vocabulary, store.corrections, store.settlements)


def save(service: Any) -> None:
    """Saves what the service has, as its keeper does."""
    for lists in (service.store.ranks.calls, service.store.ranks.outcomes):
        service.store.reader.run_now(lambda connection, kept=lists.kept: kept.save(connection, 1))


async def kept_and_fresh(service: Any, tmp_path: Path) -> tuple[Any, Any]:
    """What the service's next report is made from, and what a loader that has seen nothing reads."""
    await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    kept = plain(service.deriving.outcomes), plain(service.deriving.calls)
    run = service.store.registry.known(RUN)
    fresh = loader(service, tmp_path / "nothing-saved")
    outcomes, calls = await service.store.reader.run(lambda connection: fresh.load(connection, run.run_no, 1000.0))
    return kept, (plain(outcomes), plain(calls))


async def test_a_report_after_any_facts_is_that_of_a_fresh_start(
    service: Any, planner: Any, writer: Any, facts: Any, tmp_path: Path
) -> None:
    planner.contexts[RUN].limits.max_cost_picodollars = 10**9
    choose = random.Random(7)
    opened: list[int] = []
    unknown: list[int] = []
    for cell in range(60):
        batch = [facts.dispatch(cell)]
        opened.append(cell)
        while len(opened) > 3 and choose.random() < 0.6:
            ended = opened.pop(choose.randrange(len(opened)))
            lost = choose.random() < 0.3
            batch += facts.settle(ended, **(UNKNOWN_END if lost else {"response_model": f"m{ended % 3}"}))
            unknown += [ended] if lost else []
            batch += [] if lost else [facts.outcome(ended, correct=ended % 2 == 0)]
        if len(unknown) > 2 and choose.random() < 0.4:
            batch += facts.settle(unknown.pop(0), cost=5, finish_reason="length")
        assert await writer.reasons(*batch) == [""] * len(batch)
        if choose.random() < 0.5:
            kept, fresh = await kept_and_fresh(service, tmp_path)
            assert kept == fresh
        if choose.random() < 0.2:
            save(service)
            if choose.random() < 0.5:
                # As after a start: what is saved is mapped, and what came since is read.
                service.store.loader._made = loader(service, tmp_path / "columns")
    kept, fresh = await kept_and_fresh(service, tmp_path)
    assert kept == fresh
    assert set(kept[1]["end"]) == {1, 2, 5}


async def test_what_a_report_was_made_from_stays_as_it_was(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0), facts.dispatch(1))
    await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    before = service.deriving.calls
    await writer.send(*facts.settle(0), facts.dispatch(2))
    await service.gateway.GetReport(pb.GetReportRequest(run_id=RUN))
    assert before.end.tolist() == [1, 1]
    assert service.deriving.calls.end.tolist() == [2, 1, 1]


async def test_a_reader_whose_view_is_older_than_what_another_read_goes_on(
    service: Any, writer: Any, facts: Any, tmp_path: Path
) -> None:
    """A report begins, calls come, somebody looks at a list of them, and only then the report comes to its calls."""
    store = service.store
    await writer.send(facts.dispatch(0), *facts.settle(0), facts.outcome(0), facts.dispatch(1))
    lists = LazyRanks(store.engine.dialect, store.vocabulary, tmp_path / "columns")
    begun, looked = threading.Event(), threading.Event()

    def report(connection: Any) -> tuple[int, int, list[int]]:
        _, ended = lists.outcomes.kept.load(connection, 1)
        begun.set()
        assert looked.wait(60)
        view, called = lists.calls.kept.load(connection, 1)
        return ended, called, view.column("cell")[:called].tolist()

    reading = asyncio.create_task(store.reader.run(report))
    assert await asyncio.to_thread(begun.wait, 60)
    await writer.send(*facts.settle(1), *[facts.dispatch(cell) for cell in range(2, 6)])
    view, called = await store.reader.run(lambda connection: lists.calls.kept.load(connection, 1))
    assert (called, view.column("status").tolist()) == (6, [2, 2, 1, 1, 1, 1])
    looked.set()
    assert await reading == (1, 2, [0, 1])
    view, called = await store.reader.run(lambda connection: lists.calls.kept.load(connection, 1))
    assert (called, view.column("status").tolist()) == (6, [2, 2, 1, 1, 1, 1])
