"""Columns that are saved beside the database: the next process has what this one had, and whatever happened since."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench_accounting import column_files
from srbench_accounting.column_keeping import ColumnKeeper
from srbench_accounting.ranking import LazyRanks
from srbench_accounting.vocabulary import Vocabulary
from srbench_kit.metrics import METERS
from srbench_kit.values import to_value

RUN = "run-0123456789abcdef0123"
KINDS = ("calls", "outcomes")


def ranks(service: Any, folder: Path) -> LazyRanks:
    """The lists of a process that has just started."""
    dialect = service.store.engine.dialect
    return LazyRanks(dialect, Vocabulary(dialect), folder)


def columns(service: Any, lists: LazyRanks) -> dict[str, list[list[int]]]:
    """All columns of both kinds."""
    found = {}
    for kind in KINDS:
        view, count = service.store.reader.run_now(lambda c, k=kind: getattr(lists, k).kept.load(c, 1))
        assert count == view.rows
        found[kind] = [column.tolist() for column in view.table()]
    return found


def columns_until_sound(service: Any, lists: LazyRanks) -> dict[str, list[list[int]]]:
    """As lists and reports look at them."""
    return column_files.until_sound(lambda: columns(service, lists))


def save(service: Any, lists: LazyRanks) -> list[bool]:
    return [service.store.reader.run_now(lambda c, k=kind: getattr(lists, k).kept.save(c, 1)) for kind in KINDS]


def saved_rows(lists: LazyRanks) -> list[int]:
    return [getattr(lists, kind).kept.saved_rows(1) for kind in KINDS]


async def write_cells(writer: Any, facts: Any, cells: range) -> None:
    for cell in cells:
        await writer.send(facts.dispatch(cell), facts.settle(cell, cost=cell + 1), facts.outcome(cell))


@pytest.fixture
async def saved(planner: Any, service: Any, writer: Any, facts: Any, tmp_path: Path) -> LazyRanks:
    """Ten whole cells, saved."""
    planner.add_run(max_cost=10**9)
    await write_cells(writer, facts, range(10))
    lists = ranks(service, tmp_path / "columns")
    columns(service, lists)
    assert save(service, lists) == [True, True]
    return lists


@pytest.mark.usefixtures("saved")
async def test_the_next_process_has_what_was_saved_and_reads_what_came_since(
    service: Any, writer: Any, facts: Any, tmp_path: Path
) -> None:
    await write_cells(writer, facts, range(10, 14))
    later = ranks(service, tmp_path / "columns")
    assert columns(service, later) == columns(service, ranks(service, tmp_path / "elsewhere"))
    assert saved_rows(later) == [10, 10]
    assert save(service, later) == [True, True]
    assert saved_rows(later) == [14, 14]
    assert save(service, later) == [False, False], "there is nothing to save"


async def test_whatever_happens_to_old_rows_every_process_tells_the_truth(
    planner: Any, service: Any, writer: Any, facts: Any, tmp_path: Path
) -> None:
    """Open calls that end, unknown ends that become known, calls that operators settle, in any order with saves by two
    processes and starts of others."""
    planner.add_run(max_cost=10**9)
    await service.spend()
    dice, cells = random.Random(6), iter(range(1000))
    lists = [ranks(service, tmp_path / "columns") for _ in range(2)]
    still_open: list[int] = []
    unknown: list[int] = []

    async def begin() -> None:
        still_open.append(next(cells))
        await writer.send(facts.dispatch(still_open[-1]))

    async def end() -> None:
        if still_open:
            cell = still_open.pop(dice.randrange(len(still_open)))
            await writer.send(facts.settle(cell, cost=dice.choice([None, 5, 7])), facts.outcome(cell))

    async def lose() -> None:
        if still_open:
            unknown.append(still_open.pop(0))
            await service.fence(unknown[-1], 9)

    async def come_back() -> None:
        if unknown:
            await writer.send(facts.settle(unknown.pop(0), cost=11))

    async def settle() -> None:
        asked = pb.ListCallsRequest(run_id=RUN, unknown_cost=True, page_size=1)
        for call in (await service.gateway.ListCalls(asked)).calls:
            verdicts = [pb.SETTLEMENT_VERDICT_HAPPENED, pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN]
            verdict = dice.choice(verdicts[: 1 + (call.status == pb.CALL_STATUS_SENT_UNKNOWN)])
            request = ledger_pb.SettleCallRequest(run_id=RUN, call_id=call.id, verdict=verdict, note="a look")
            if verdict == pb.SETTLEMENT_VERDICT_HAPPENED:
                request.usage.CopyFrom(to_value({"in": 1, "out": 2, "cost": 13}))
                request.model = "m"
            await service.ledger().SettleCall(request)

    async def look() -> None:
        process = dice.randrange(2)
        if dice.random() < 0.3:
            lists[process] = ranks(service, tmp_path / "columns")
        found = columns(service, lists[process])
        assert found == columns(service, ranks(service, tmp_path / "elsewhere"))
        if dice.random() < 0.5:
            save(service, lists[process])

    steps = [begin, begin, begin, end, end, lose, come_back, settle, look, look]
    for _ in range(150):
        await dice.choice(steps)()
    await look()
    assert max(saved_rows(lists[0])) > 10


@pytest.mark.parametrize("column", ["cell", "status", "cost", "receipt_cost", "manifest"])
async def test_a_process_that_dies_while_it_writes_over_rows_leaves_none_of_them_in_doubt(
    planner: Any, service: Any, writer: Any, facts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """An open call was saved, and has ended since; the process is killed when it comes to `column`."""
    planner.add_run(max_cost=10**9)
    await writer.send(facts.dispatch(0), facts.dispatch(1))
    first = ranks(service, tmp_path / "columns")
    columns(service, first)
    save(service, first)
    await writer.send(facts.settle(0, cost=5), facts.outcome(0))
    write = column_files._write

    def until_killed(path: Path, *arguments: Any) -> None:
        if path.stem == column:
            raise KeyboardInterrupt
        write(path, *arguments)

    def manifest_until_killed(path: Path, content: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(column_files, "_write", until_killed)
    monkeypatch.setattr(column_files, "write_whole", manifest_until_killed)
    with pytest.raises(KeyboardInterrupt):
        service.store.reader.run_now(lambda c: first.calls.kept.save(c, 1))
    monkeypatch.undo()
    truth = columns(service, ranks(service, tmp_path / "elsewhere"))
    later = ranks(service, tmp_path / "columns")
    assert columns(service, later) == truth
    assert save(service, later)[0], "what was half written is written again"
    assert columns(service, ranks(service, tmp_path / "columns")) == truth


async def test_files_of_another_ledger_are_not_believed(
    saved: LazyRanks, service: Any, writer: Any, facts: Any, tmp_path: Path
) -> None:
    """As after a restored backup, or with another database: the run's number is the same, its rows are not."""
    truth = columns(service, saved)
    folder = tmp_path / "columns" / "1-calls"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest.pop("digest")
    manifest["witness"][2] += 1
    (folder / "manifest.json").write_bytes(column_files.signed(manifest))
    cost = folder / "cost.i64"
    cost.write_bytes(np.full(10, 77, dtype=np.int64).tobytes())
    later = ranks(service, tmp_path / "columns")
    assert columns(service, later)["calls"] == truth["calls"]
    assert saved_rows(later)[0] == 0
    assert not folder.exists()


def flip(path: Path, at: int) -> None:
    """Turns one bit of a file over."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def damaged(kind: str) -> float:
    """How many files were counted as damaged."""
    return METERS["srbench_damaged_columns"].values.get((kind,), 0)


@pytest.mark.parametrize("damage", ["cut", "missing", "manifest", "rows", "figure", "word", "state", "folder"])
async def test_damaged_files_are_told_and_made_again_from_the_tables(
    saved: LazyRanks, service: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    truth, folder, before = columns(service, saved), tmp_path / "columns" / "1-outcomes", damaged("outcomes")
    manifest, file = folder / "manifest.json", folder / "cost.i64"
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:-1])
        case "missing":
            file.unlink()
        case "manifest":
            file = manifest
            file.write_bytes(b"{")
        case "rows":
            file = manifest
            flip(file, file.read_bytes().index(b'"rows": 10') + 8)
        case "folder":
            file.unlink()
            file.mkdir()
        case _:
            file = folder / f"{ {'figure': 'finish_after_us', 'word': 'model'}.get(damage, damage) }.i64"
            flip(file, 8 * 7 + 1)
    later = ranks(service, tmp_path / "columns")
    assert columns_until_sound(service, later) == truth
    assert (str(file) in caplog.text, damaged("outcomes") - before) == (True, 1)
    assert saved_rows(later) == [10, 0]
    assert save(service, later) == [False, True]
    assert columns(service, ranks(service, tmp_path / "columns")) == truth
    assert damaged("outcomes") - before == 1


async def test_any_file_of_what_is_saved_may_rot_anywhere(saved: LazyRanks, service: Any, tmp_path: Path) -> None:
    truth, folder = columns(service, saved), tmp_path / "columns"
    shutil.copytree(folder, tmp_path / "whole")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix)
    dice = random.Random(4)
    for name in names:
        flip(folder / name, dice.randrange((folder / name).stat().st_size))
        assert columns_until_sound(service, ranks(service, folder)) == truth, name
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "whole", folder)


async def test_one_process_notices_that_another_made_damaged_files_again(
    saved: LazyRanks, service: Any, tmp_path: Path
) -> None:
    """The one has mapped a file, and not looked at it yet."""
    truth = columns(service, saved)
    first, second = (ranks(service, tmp_path / "columns") for _ in range(2))
    for lists in (first, second):
        assert service.store.reader.run_now(lambda c, one=lists: one.calls.kept.load(c, 1))[1] == 10
    flip(tmp_path / "columns" / "1-calls" / "cost.i64", 3)
    before = damaged("calls")
    assert columns_until_sound(service, second) == truth
    save(service, second)
    assert columns_until_sound(service, first) == truth
    assert damaged("calls") - before == 1
    assert saved_rows(first) == [10, 10]


async def test_what_a_dead_process_left_behind_the_rows_is_written_over(
    saved: LazyRanks, service: Any, tmp_path: Path
) -> None:
    truth, before = columns(service, saved), damaged("outcomes")
    with (tmp_path / "columns" / "1-outcomes" / "cost.i64").open("ab") as file:
        file.write(b"left by a process that died")
    assert columns(service, ranks(service, tmp_path / "columns")) == truth
    assert damaged("outcomes") == before


async def test_the_keeper_saves_large_runs_that_rest(
    planner: Any, service: Any, writer: Any, facts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srbench_accounting.column_keeping.SMALL", 5)
    planner.add_run(max_cost=10**9)
    keeper, folder = ColumnKeeper(service.store), tmp_path / "columns"
    await write_cells(writer, facts, range(4))
    await keeper.look()
    await keeper.look()
    assert not list(folder.rglob("*.i64")), "a small run is not worth it"
    await write_cells(writer, facts, range(4, 8))
    await keeper.look()
    assert not list(folder.rglob("*.i64")), "it may still be growing"
    await keeper.look()
    assert saved_rows(service.store.ranks) == [8, 8]
    assert columns(service, ranks(service, folder)) == columns(service, ranks(service, tmp_path / "elsewhere"))
    flip(folder / "1-calls" / "status.i64", 9)
    later = ranks(service, folder)
    assert columns_until_sound(service, later) == columns(service, ranks(service, tmp_path / "elsewhere"))
    assert not (folder / "1-calls").exists()
    await keeper.look()
    assert [kept.is_saved(1) for kept in (later.calls.kept, later.outcomes.kept)] == [True, True], (
        "what was damaged is saved again"
    )
    monkeypatch.setattr("srbench_accounting.column_keeping.MANY", 3)
    await write_cells(writer, facts, range(8, 12))
    await keeper.look()
    assert saved_rows(service.store.ranks) == [12, 12], "one that grows for long does not wait for its end"
