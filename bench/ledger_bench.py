"""What the ledger costs: CPU per cell against the bare database, bytes per cell, pages and report columns.

A cell is a dispatch, a settlement with its evidence, and an outcome. The reference writes rows of the same sizes with the
bare `sqlite3` driver, a transaction a message, beside the same synced file of evidence. Rounds are interleaved
and the median counts; CPU seconds (user and system) are the figure, since wall time depends on the neighbours.

    python bench/ledger_bench.py [--cells 20000] [--facts 16] [--rounds 3] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, planner_service_pb2, target_pb2, usage_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting import views
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.evidence import Assembly
from srbench_accounting.ledger import Item
from srbench_accounting.listing import Filter, Start
from srbench_accounting.ranking import Ranking
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.store import Store, open_store

RUN = "run-bench"
TARGETS = 4
# Messages of one stream that wait for their commit at the same time.
IN_FLIGHT = 6


class Planner:
    """Answers for one run of four priced targets."""

    def __init__(self, cells: int) -> None:
        self.cell_count = cells

    async def run_context(self, run_id: str) -> queue_pb.RunContext:
        price = usage_pb2.Price(
            input_picodollars=10**6,
            cached_input_picodollars=10**5,
            cache_write_picodollars=10**6,
            output_picodollars=4 * 10**6,
        )
        targets = [target_pb2.Target(id=f"t{n}", kind=target_pb2.TARGET_KIND_SINGLE, model="m") for n in range(TARGETS)]
        for target in targets:
            target.prices["m"].CopyFrom(price)
        limits = plan_pb2.Limits(max_cost_picodollars=10**18, max_calls_per_case=4)
        return queue_pb.RunContext(
            run_id=run_id, plan_sha256="p", limits=limits, targets=targets, cost_policy="require_priced"
        )

    async def run(self, run_id: str) -> planner_service_pb2.Run:
        return planner_service_pb2.Run(id=run_id)

    async def plan_cases(self, plan_sha256: str) -> list[plan_pb2.PlanCase]:
        count = self.cell_count // TARGETS + 1
        return [plan_pb2.PlanCase(index=n, case_id=f"case-{n}", benchmark="mmlu-pro") for n in range(count)]


def stream_body(cell: int) -> bytes:
    """A streamed answer of 20 chunks, as the testbed makes them."""
    head = {"id": f"chatcmpl-{cell}", "object": "chat.completion.chunk", "created": 1_700_000_000 + cell, "model": "m"}
    words = hashlib.sha256(str(cell).encode()).hexdigest()
    chunks = [head | {"choices": [{"index": 0, "delta": {"content": words[n * 3 : n * 3 + 3]}}]} for n in range(20)]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append(head | {"choices": [], "usage": usage(cell)})
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def usage(cell: int) -> dict[str, object]:
    """What the answer used."""
    prompt, output = 100 + cell % 400, 20 + cell % 50
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cell % 64},
    }


def stamp(micros: int) -> Timestamp:
    """A time as a message."""
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def cell_facts(cell: int) -> list[pb.Fact]:
    """The facts of one cell."""
    key = pb.CallKey(run_id=RUN, cell=cell)
    at = 1_790_000_000_000_000 + cell * 311
    evidence = pb.Evidence(http_status=200, body=stream_body(cell), clean_end=True)
    evidence.headers.add(name="content-type", value="text/event-stream")
    packed = zstandard.compress(evidence.SerializeToString())
    dispatch = pb.Dispatch(
        key=key,
        token=1,
        case_index=cell // TARGETS,
        target_index=cell % TARGETS,
        role=pb.CALL_ROLE_SUBJECT,
        request_sha256=hashlib.sha256(str(cell).encode()).hexdigest(),
        request_byte_count=900 + cell % 300,
        message_count=1,
        max_output_tokens=1024,
        dispatch_time=stamp(at),
        executor_id="executor-1",
    )
    receipt = pb.Receipt(
        status=pb.CALL_STATUS_COMPLETED,
        http_status=200,
        finish_reason="stop",
        output_complete=True,
        response_model="m",
        usage_json=json.dumps(usage(cell), separators=(",", ":")).encode(),
        usage_final=True,
        start_time=stamp(at + 400),
        finish_time=stamp(at + 600_400 + cell % 977),
        ttft_ns=200_123_456 + cell * 17,
        first_content_ns=200_123_456 + cell * 17,
        latency_ns=600_123_456 + cell * 13,
        first_token_lag_ns=12_345 + cell,
        first_token_clock="kernel",
        received_bytes=len(evidence.body),
        content_chars=60,
    )
    settle = pb.Settle(
        key=key,
        receipt=receipt,
        evidence_sha256=hashlib.sha256(packed).hexdigest(),
        evidence_byte_count=len(packed),
    )
    outcome = pb.CellOutcome(
        run_id=RUN,
        cell=cell,
        token=1,
        case_index=cell // TARGETS,
        target_index=cell % TARGETS,
        state=queue_pb.CELL_STATE_DONE,
        correct=cell % 3 > 0,
        score=float(cell % 3 > 0),
        answer_status="parsed",
        grader_version="choice-v3",
        strict_format=True,
        start_time=stamp(at),
        finish_time=stamp(at + 601_000),
    )
    outcome.answer.string_value = "ABCDEFGHIJ"[cell % 10]
    return [
        pb.Fact(sequence=4 * cell, dispatch=dispatch),
        pb.Fact(sequence=4 * cell + 1, evidence=pb.EvidenceChunk(key=key, data=packed)),
        pb.Fact(sequence=4 * cell + 2, settle=settle),
        pb.Fact(sequence=4 * cell + 3, outcome=outcome),
    ]


def messages(cells: int, size: int) -> Iterator[list[pb.Fact]]:
    """All facts in messages of `size` acknowledged facts: dispatches, settlements and outcomes of as many cells each."""
    for start in range(0, cells, size):
        group = [cell_facts(cell) for cell in range(start, min(start + size, cells))]
        yield [facts[0] for facts in group]
        yield [fact for facts in group for fact in facts[1:3]]
        yield [facts[3] for facts in group]


def cpu_s() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def write_ledger(store: Store, run: KnownRun, batches: list[bytes]) -> None:
    """The service's path of a message without the wire: parse, assemble, one job, acknowledgements; some in flight, in
    order, as on one stream."""
    assembly, room = Assembly(), asyncio.Semaphore(IN_FLIGHT)

    async def commit(items: list[Item]) -> None:
        acks = await store.recorder.commit(items)
        refused = [ack.reason for ack in acks if ack.reason]
        assert not refused, refused
        pb.RecordFactsResponse(acks=acks).SerializeToString()
        room.release()

    async with asyncio.TaskGroup() as group:
        for data in batches:
            await room.acquire()
            items = []
            for fact in pb.RecordFactsRequest.FromString(data).facts:
                kind = fact.WhichOneof("fact")
                if kind == "evidence":
                    assembly.add(fact.evidence)
                else:
                    items.append(Item(fact, run, assembly.take(fact.settle) if kind == "settle" else None))
            group.create_task(commit(items))


def write_bare(folder: Path, batches: list[bytes]) -> None:
    """Rows of the ledger's sizes with the bare driver: three inserts a cell, evidence synced before the commit."""
    connection = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, cell INT, data BLOB)")
    connection.execute("CREATE UNIQUE INDEX by_cell ON calls (cell)")
    connection.execute("CREATE TABLE receipts (id INTEGER PRIMARY KEY, data BLOB)")
    connection.execute("CREATE TABLE outcomes (id INTEGER PRIMARY KEY, cell INT, data BLOB)")
    connection.execute("CREATE UNIQUE INDEX outcome_by_cell ON outcomes (cell)")
    segment = os.open(folder / "bare.seg", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for number, data in enumerate(batches):
        first, rows = number * 1000, pb.RecordFactsRequest.FromString(data).facts
        connection.execute("BEGIN IMMEDIATE")
        match number % 3:
            case 0:
                values = [(first + n, first + n, bytes(70)) for n in range(len(rows))]
                connection.executemany("INSERT INTO calls VALUES (?, ?, ?)", values)
            case 1:
                os.write(segment, b"".join(fact.evidence.data for fact in rows if fact.HasField("evidence")))
                os.fdatasync(segment)
                settled = [(first + n, bytes(180)) for n in range(len(rows) // 2)]
                connection.executemany("INSERT INTO receipts VALUES (?, ?)", settled)
            case _:
                values = [(first + n, first + n, bytes(50)) for n in range(len(rows))]
                connection.executemany("INSERT INTO outcomes VALUES (?, ?, ?)", values)
        connection.execute("COMMIT")
    os.close(segment)
    connection.close()


async def measure(cells: int, size: int, folder: Path) -> tuple[float, float, Store, KnownRun]:
    """CPU seconds of the ledger and of the bare database for the same messages."""
    batches = [pb.RecordFactsRequest(facts=facts).SerializeToString() for facts in messages(cells, size)]
    store = open_store(folder, f"sqlite:///{folder / 'accounting.sqlite3'}", Planner(cells), CoreDeriving())
    run = await store.registry.run(RUN)
    began = cpu_s()
    await write_ledger(store, run, batches)
    ledger = cpu_s() - began
    began = cpu_s()
    await asyncio.to_thread(write_bare, folder, batches)
    return ledger, cpu_s() - began, store, run


def stored_bytes(folder: Path, cells: int) -> dict[str, float]:
    """Bytes a cell, after the log is folded in."""
    connection = sqlite3.connect(folder / "accounting.sqlite3")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    tables = dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall())
    connection.close()
    found = {name: size / cells for name, size in tables.items() if size > cells}
    found["segments"] = sum(path.stat().st_size for path in (folder / "segments").iterdir()) / cells
    found["in all"] = sum(found.values())
    return found


def timed(work: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """Milliseconds of the first time and the median of the others."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return times[0], statistics.median(times[1:])


async def read_side(store: Store, run: KnownRun, cells: int) -> None:
    """Prints how long pages and columns take."""
    cases = PlanCases(await Planner(cells).plan_cases(""))
    with store.engine.connect() as connection:
        for title, wanted, after in (
            ("outcomes, first page of 500", Filter(), 0),
            ("outcomes, last page of 100", Filter(), cells - 100),
            ("outcomes, filter target and wrong, page of 100", Filter(target=1, correct=0), cells // 2),
        ):
            size = 500 if "500" in title else 100
            first, median = timed(
                lambda w=wanted, a=after, s=size: views.outcomes(store, connection, run, cases, (w, Ranking()), Start(a), s)
            )  # type: ignore[misc]
            print(f"{title:55} {first:8.1f} ms first {median:8.1f} ms")
        for title, wanted, active in (
            ("calls, page of 100", Filter(), False),
            ("calls, filter case, page of 100", Filter(cases=frozenset({7})), False),
            ("calls, active", Filter(), True),
        ):
            first, median = timed(
                lambda w=wanted, a=active: views.calls(store, connection, run, cases, (w, Ranking()), a, Start(), 100)
            )  # type: ignore[misc]
            print(f"{title:55} {first:8.1f} ms first {median:8.1f} ms")
        connection.rollback()
        first, median = timed(lambda: store.loader.load(connection, run.run_no, 0.0))
        print(f"{'report columns':55} {first:8.1f} ms first {median:8.1f} ms")


async def main() -> None:
    """Runs the rounds and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=20_000)
    parser.add_argument("--facts", type=int, default=16, help="acknowledged facts a message")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    ledgers, bares = [], []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            ledger, bare, store, run = await measure(options.cells, options.facts, folder)
            ledgers.append(ledger / options.cells * 1e3)
            bares.append(bare / options.cells * 1e3)
            if number == options.rounds - 1:
                print(f"cells {options.cells}, facts a message {options.facts}, load {os.getloadavg()[0]:.1f}")
                await read_side(store, run, options.cells)
                for table, size in stored_bytes(folder, options.cells).items():
                    print(f"{table:55} {size:8.1f} bytes a cell")
            store.close()
    ledger, bare = statistics.median(ledgers), statistics.median(bares)
    print(f"{'ledger, CPU a cell':55} {ledger:8.4f} ms ({min(ledgers):.4f}-{max(ledgers):.4f})")
    print(f"{'bare database, CPU a cell':55} {bare:8.4f} ms ({min(bares):.4f}-{max(bares):.4f})")
    print(f"{'ratio':55} {ledger / bare:8.2f}")


if __name__ == "__main__":
    asyncio.run(main())
