"""What a fleet must hold: executors that add up, many streams on one, scores that do not depend on either, a large ledger,
durable facts against the bare database.

    python bench/fleet_bench.py [--parts scale,streams,ledger,pages,facts] [--cells 1000000] [--rounds 3] [--write]

`scale` and `streams` start real processes on a PostgreSQL and a testbed whose answers take a while, so that the machine's
few cores are not what is measured. `ledger` fills a ledger by copying real cells inside the database. `facts` takes turns
with the bare driver, which writes rows of the same number and sizes in transactions of the same number of facts.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, planner_service_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting import schema, views
from srbench_accounting.column_keeping import ColumnKeeper
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.listing import Filter, Start
from srbench_accounting.ranking import ORDERS, Ranking
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.store import Store, open_store

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
import ledger_bench  # noqa: E402

from tests import postgres  # noqa: E402
from tests.e2e import evaluations  # noqa: E402
from tests.e2e.upstream import Upstream, upstream  # noqa: E402
from tests.fleet import fleet as fleets  # noqa: E402

SCALE_CAPACITY, SCALE_ROUNDS = 16, 12
STREAMS = 1000
Figures = list[tuple[str, str, str]]


@contextmanager
def fleet_of(executors: int, capacity: int, server: postgres.Database, folder: Path) -> Iterator[fleets.Fleet]:
    """A started fleet with one of everything else."""
    fleets.COUNTS.update(planner=1, accounting=1, grader=1, executor=executors)
    fleets.CAPACITY = capacity
    with fleets.running(folder, server.new(), {"SR_BENCH_LEASE_S": "15"}) as found:
        yield found


def slow_models(seconds: float) -> dict[str, Any]:
    """A testbed's model whose answer takes so long."""
    return {
        "models": [{"id": "one", "skill": {"default": 0.5}, "ttft_ms": seconds * 500, "itl_ms": seconds * 50, "chunks": 10}]
    }


def evaluate(fleet: fleets.Fleet, endpoint: Upstream, cases: int, concurrency: int, key: str) -> tuple[float, str]:
    """Seconds from the first lease to the end of a run, and its id."""
    target = evaluations.target("one", endpoint.base_url)
    run_id = evaluations.start(fleet, evaluations.manifest(cases, [target], concurrency=concurrency, max_cost_usd=100), key)
    run = evaluations.finish(fleet, run_id, 600)
    assert run.status == "completed", (run.status, run.reason, run.error)
    with fleet.planner() as stub:
        request = planner_service_pb2.ListRunEventsRequest(run_id=run_id)
        events = {event.type: event.create_time.ToMicroseconds() for event in stub.ListRunEvents(request).events}
    return (events["completed"] - events["running"]) / 1e6, run_id


def grades(fleet: fleets.Fleet, run_id: str) -> dict[str, bool]:
    """Which cases of a run were right."""
    found: dict[str, bool] = {}
    with fleet.accounting() as stub:
        request = pb.ListOutcomesRequest(run_id=run_id, page_size=500)
        while True:
            page = stub.ListOutcomes(request, timeout=60)
            found.update({row.case_id: row.correct for row in page.results})
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token


def scale(server: postgres.Database, folder: Path) -> Figures:
    """Four executors against one on work that waits for answers."""
    rates: dict[int, float] = {}
    right: dict[int, dict[str, bool]] = {}
    with upstream(folder, slow_models(2.0)) as endpoint:
        for executors in (1, 4):
            with fleet_of(executors, SCALE_CAPACITY, server, folder / f"fleet-{executors}") as fleet:
                room = executors * SCALE_CAPACITY
                evaluate(fleet, endpoint, room, room, "warm")
                cases = room * SCALE_ROUNDS
                seconds, run_id = evaluate(fleet, endpoint, cases, room, "measured")
                rates[executors], right[executors] = cases / seconds, grades(fleet, run_id)
    same = all(right[4][case] == grade for case, grade in right[1].items())
    assert same, "a score depends on the number of executors"
    what = f"{rates[4]:.1f} to {rates[1]:.1f} cells/s, answers of 2 s, {SCALE_CAPACITY} at once each"
    return [
        ("four executors against one, latency-bound", f"{rates[4] / rates[1]:.2f} ({what})", "3.6"),
        (f"grades that differ between them, of {len(right[1])}", "0", "0"),
    ]


def streams(server: postgres.Database, folder: Path) -> Figures:
    """As many streams as one executor is asked for."""
    with (
        upstream(folder, slow_models(20.0)) as endpoint,
        fleet_of(1, 1024, server, folder / "fleet-streams") as fleet,
    ):
        target = evaluations.target("one", endpoint.base_url)
        document = evaluations.manifest(STREAMS, [target], concurrency=STREAMS, max_cost_usd=100, max_run_seconds=600)
        run_id = evaluations.start(fleet, document)
        most, deadline = 0, time.monotonic() + 60
        while time.monotonic() < deadline and most < STREAMS:
            most = max(most, sum(not row["ended"] for row in endpoint.ledger()))
            time.sleep(0.5)
        run = evaluations.finish(fleet, run_id, 300)
        completed = run.progress.completed
    return [(f"streams at once on one executor, of {STREAMS}", f"{most}, {completed} completed", str(STREAMS))]


def replicate(store: Store, run: KnownRun, have: int, want: int) -> None:
    """Copies the cells of a run inside the database until there are `want`."""
    first = schema.row_id(run.run_no, 0)
    moved = {
        "call_id": "call_id + :add",
        "outcome_id": "outcome_id + :add",
        "cell": "cell + :add",
        "case_index": f"case_index + :add / {ledger_bench.TARGETS}",
    }
    with store.engine.connect() as opened:
        connection = opened.execution_options(srbench_write=True)
        with connection.begin():
            for add in range(have, want, have):
                for table, key in (
                    (schema.calls, "call_id"),
                    (schema.receipts, "call_id"),
                    (schema.outcomes, "outcome_id"),
                ):
                    names = [column.name for column in table.columns]
                    values = ", ".join(moved.get(name, name) for name in names)
                    where = f"{key} > :first AND {key} <= :first + :have"
                    text = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {values} FROM {table.name} WHERE {where}"
                    connection.execute(sa.text(text), {"add": add, "first": first, "have": have})
            counts = {"call_count": want, "outcome_count": want}
            connection.execute(sa.update(schema.runs).where(schema.runs.c.run_no == run.run_no).values(counts))
    if store.engine.dialect.name == "postgresql":
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")


class Planner(ledger_bench.Planner):
    """As the ledger's benchmark has it, with what a report asks for."""

    async def run(self, run_id: str, *, summary: bool = False) -> planner_service_pb2.Run:
        return planner_service_pb2.Run(id=run_id, status="completed")

    async def lineage(self, run_id: str) -> list[planner_service_pb2.Run]:
        return [await self.run(run_id)]

    async def plan_cases(self, plan_sha256: str) -> list[plan_pb2.PlanCase]:
        targets = range(ledger_bench.TARGETS)
        return [
            plan_pb2.PlanCase(index=n, case_id=f"case-{n}", benchmark="mmlu-pro", target_indexes=targets)
            for n in range(self.cell_count // ledger_bench.TARGETS)
        ]


async def ledger(url: str, name: str, cells: int, folder: Path, *, pages: bool) -> Figures:
    """The report of a large ledger and, if asked, its pages."""
    planner, seed = Planner(cells), 10_000
    store = open_store(folder, url, planner, CoreDeriving())
    run = await store.registry.run(ledger_bench.RUN)
    batches = [pb.RecordFactsRequest(facts=facts).SerializeToString() for facts in ledger_bench.messages(seed, 64)]
    await ledger_bench.write_ledger(store, run, batches)
    replicate(store, run, seed, cells)
    keeper = ColumnKeeper(store)
    began, used = time.perf_counter(), time.process_time()
    for _ in range(2):
        await keeper.look()
    saving = f"{time.perf_counter() - began:.1f} s ({time.process_time() - used:.1f} s of CPU)"
    size = sum(path.stat().st_size for path in (folder / "columns").rglob("*.i64")) / cells
    cases = await store.registry.cases(run)
    store.close()

    def opened() -> Store:
        return open_store(folder, url, planner, CoreDeriving())

    figures = await _pages(name, opened, cases, cells) if pages else []
    with_columns = await _report_times(opened, run, cases)
    shutil.rmtree(folder / "columns")
    without = await _report_times(opened, run, cases)
    return [
        *figures,
        (
            f"{name}: columns of {cells:,} cells read and saved for the first time",
            f"{saving}, {size:.0f} bytes a cell",
            "told",
        ),
        (f"{name}: report of {cells:,} cells, first and again", with_columns, "5 s"),
        (f"{name}: the same where no columns are saved", without, "told"),
    ]


async def _report_times(opened: Callable[[], Store], run: KnownRun, cases: PlanCases) -> str:
    """What the first report after a start takes, and the next one."""
    store, times = opened(), []
    shown = await store.registry.planner_run(run.run_id)
    for _ in range(2):
        began, used = time.perf_counter(), time.process_time()
        report = await store.reader.run(lambda connection: views.report(store, connection, [(run, shown)], cases))
        times.append((time.perf_counter() - began, time.process_time() - used))
        assert report.run_id == run.run_id
    store.close()
    (first, used), (again, _) = times
    return f"{first:.2f} s ({used:.2f} s of CPU), {again:.2f} s"


def asked_outcomes(cells: int) -> Iterator[tuple[str, Filter, Ranking]]:
    """Each filter and order of outcomes, and some of both."""
    yield "all", Filter(), Ranking()
    half = frozenset(range(cells // 8))
    for title, wanted in (
        ("of a target", Filter(target=1)),
        ("of a benchmark", Filter(cases=half)),
        ("done", Filter(state=int(queue_pb.CELL_STATE_DONE))),
        ("wrong", Filter(correct=0)),
        ("wrong of a target and a benchmark", Filter(target=1, correct=0, cases=half)),
    ):
        yield title, wanted, Ranking()
    for title, ranking in (
        ("of a model", Ranking(words=(("model", "m"),))),
        ("of a reason", Ranking(words=(("reason", "stream_cut"),))),
        ("of a decision", Ranking(words=(("decision", "rule"),))),
        ("newest first", Ranking(descending=True)),
    ):
        yield title, Filter(), ranking
    yield from _ordered()
    yield "wrong of a target by cost", Filter(target=1, correct=0), Ranking(order_by="cost", descending=True)


def asked_calls(cells: int) -> Iterator[tuple[str, Filter, Ranking]]:
    """Each filter and order of calls."""
    yield "all", Filter(), Ranking()
    yield "of a target", Filter(target=1), Ranking()
    yield "of a case", Filter(cases=frozenset({cells // 8})), Ranking()
    completed = int(pb.CALL_STATUS_COMPLETED)
    for title, ranking in (
        ("completed", Ranking(numbers=(("status", completed),))),
        ("of a role", Ranking(numbers=(("role", int(pb.CALL_ROLE_SUBJECT)),))),
        ("of a model", Ranking(words=(("model", "m"),))),
        ("of an end", Ranking(words=(("finish_reason", "stop"),))),
        ("of unknown cost", Ranking(unknown_cost=True)),
    ):
        yield title, Filter(), ranking
    yield from _ordered()


def _ordered() -> Iterator[tuple[str, Filter, Ranking]]:
    for name in ORDERS:
        for descending in (False, True):
            yield f"by {name}{', falling' * descending}", Filter(), Ranking(order_by=name, descending=descending)


SIZE = 100


@dataclass(frozen=True, slots=True, order=True)
class _Time:
    """What a page took: CPU of the service's thread, which other work on the machine changes little, and in all."""

    cpu_ms: float
    wall_ms: float

    def __str__(self) -> str:
        return f"{self.cpu_ms:.1f} ms of CPU, {self.wall_ms:.1f} ms"


def _timed(work: Callable[[], object]) -> tuple[_Time, _Time]:
    """The first time, and the median of those after it by CPU."""
    times: list[_Time] = []
    for _ in range(6):
        began, used = time.perf_counter(), time.thread_time()
        work()
        times.append(_Time((time.thread_time() - used) * 1e3, (time.perf_counter() - began) * 1e3))
    return times[0], statistics.median_low(times[1:])


def _reading(kind: str, cases: PlanCases, wanted: tuple[Filter, Ranking]) -> Callable[[Store, KnownRun, Start], int]:
    """Reads a page of outcomes or calls as the service does, and gives how many rows fit."""

    def read(store: Store, run: KnownRun, start: Start) -> int:
        def work(opened: Any) -> int:
            if kind == "outcomes":
                return views.outcomes(store, opened, run, cases, wanted, start, SIZE)[0].total
            return views.calls(store, opened, run, cases, wanted, False, start, SIZE)[0].total

        return store.reader.run_now(work)

    return read


async def _pages(name: str, opened: Callable[[], Store], cases: PlanCases, cells: int) -> Figures:
    """Milliseconds of every list's first, middle and last page: the first page that a process reads, and then."""
    kinds = {"outcomes": asked_outcomes, "calls": asked_calls}
    found: dict[str, list[tuple[_Time, _Time, str]]] = {}
    for kind, asked in kinds.items():
        for title, *wanted in asked(cells):
            read, total = _reading(kind, cases, (wanted[0], wanted[1])), 0
            for place, part in (("first", 0.0), ("middle", 0.5), ("last", 1.0)):
                store = opened()
                run, _ = await store.registry.run(ledger_bench.RUN), store.ranks.outcomes
                start = Start(offset=max(int(total * part) - SIZE, 0))
                work = functools.partial(read, store, run, start)
                first, again = await asyncio.to_thread(_timed, work)
                total = work()
                store.close()
                print(f"{name:12} {kind:10} {title:36} {place:8} first {first}, again {again}", flush=True)
                found.setdefault(f"{kind}, {place} page", []).append((first, again, title))
    return [
        (
            f"{name}: {kind} of {len(pages)} lists of {cells:,} cells, slowest",
            "{} ({}); first of a process {} ({})".format(
                *max((again, title) for _, again, title in pages), *max((first, title) for first, _, title in pages)
            ),
            "50 ms",
        )
        for kind, pages in found.items()
    ]


def bare_postgres(url: str, batches: list[bytes]) -> None:
    """Rows of the ledger's sizes with the bare driver, a transaction a message, as `ledger_bench.write_bare`."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE calls (id BIGINT PRIMARY KEY, cell BIGINT UNIQUE, data BYTEA)")
        connection.execute("CREATE TABLE receipts (id BIGINT PRIMARY KEY, data BYTEA)")
        connection.execute("CREATE TABLE outcomes (id BIGINT PRIMARY KEY, cell BIGINT UNIQUE, data BYTEA)")
        for number, data in enumerate(batches):
            first, rows = number * 1000, pb.RecordFactsRequest.FromString(data).facts
            with connection.transaction(), connection.cursor() as cursor:
                match number % 3:
                    case 0:
                        values = [(first + n, first + n, bytes(70)) for n in range(len(rows))]
                        cursor.executemany("INSERT INTO calls VALUES (%s, %s, %s)", values)
                    case 1:
                        cursor.executemany(
                            "INSERT INTO receipts VALUES (%s, %s)", [(first + n, bytes(180)) for n in range(len(rows) // 2)]
                        )
                    case _:
                        values = [(first + n, first + n, bytes(50)) for n in range(len(rows))]
                        cursor.executemany("INSERT INTO outcomes VALUES (%s, %s, %s)", values)


async def facts(new_url: Callable[[Path], str], name: str, rounds: int, folder: Path) -> Figures:
    """Durable facts a second, against the bare database with the same numbers of rows and commits."""
    cells, size, mine, bare = 6000, 64, [], []
    batches = [pb.RecordFactsRequest(facts=found).SerializeToString() for found in ledger_bench.messages(cells, size)]
    for number in range(rounds):
        place = folder / f"{name}-{number}"
        place.mkdir()
        store = open_store(place, new_url(place), ledger_bench.Planner(cells), CoreDeriving())
        run = await store.registry.run(ledger_bench.RUN)
        began = time.perf_counter()
        await ledger_bench.write_ledger(store, run, batches)
        mine.append(3 * cells / (time.perf_counter() - began))
        store.close()
        began = time.perf_counter()
        if name == "SQLite":
            await asyncio.to_thread(ledger_bench.write_bare, place, batches)
        else:
            await asyncio.to_thread(bare_postgres, new_url(place), batches)
        bare.append(3 * cells / (time.perf_counter() - began))
    here, there = statistics.median(mine), statistics.median(bare)
    what = f"{here / there:.2f} ({here:,.0f} to {there:,.0f} facts/s, {size} a message)"
    return [(f"{name}: durable facts against the bare database", what, "told")]


def table(figures: Figures) -> str:
    """The figures as a page shows them."""
    cpus, load = os.cpu_count(), os.getloadavg()[0]
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = [
        f"Measured {when} on {cpus} shared cores, CPython {platform.python_version()}, at a load average of {load:.1f}.",
        "",
    ]
    lines += ["| what | measured | must |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {what} | {found} | {must} |" for what, found, must in figures)])


def write(text: str) -> None:
    """Puts the figures between the marks of the page."""
    page = ROOT / "docs" / "performance.md"
    place = re.compile(r"(<!-- fleet -->\n).*?(<!-- /fleet -->)", re.DOTALL)
    written, places = place.subn(lambda marks: f"{marks[1]}{text}\n{marks[2]}", page.read_text())
    assert places == 1, f"{page} has no place for the figures"
    page.write_text(written)


def main() -> None:
    """Measures the parts that are asked for and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="scale,streams,ledger,pages,facts")
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    options = parser.parse_args()
    parts, figures = options.parts.split(","), Figures()
    with tempfile.TemporaryDirectory() as name, postgres.server(durable=True) as server:
        folder = Path(name)

        def sqlite(place: Path) -> str:
            return f"sqlite:///{place / 'accounting.sqlite3'}"

        def postgresql(_place: Path) -> str:
            return server.new()

        for part, work in (("scale", scale), ("streams", streams)):
            if part in parts:
                figures += work(server, folder)
        for title, new_url in (("SQLite", sqlite), ("PostgreSQL", postgresql)):
            place = folder / f"ledger-{title}"
            place.mkdir()
            if {"ledger", "pages"} & set(parts):
                figures += asyncio.run(ledger(new_url(place), title, options.cells, place, pages="pages" in parts))
            if "facts" in parts:
                figures += asyncio.run(facts(new_url, title, options.rounds, folder))
    text = table(figures)
    print(text)
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
