"""The whole product measured: `sr-bench serve` on a store of its own, runs through the gRPC front door, a mock model.

    python bench/stack_bench.py [--rounds 3] [--cells 6000] [--live 3000] [--few 300] [--report 16000] [--json FILE]

Per round, interleaved with a raw uvloop client on the same mock: cells at zero delay (many and few), cells at live pace.
CPU is user and system time of each process from the kernel, beyond what it had used when the run was created, so that
freezing a plan counts for the planner. Ratios are to the raw client's CPU per call. What else runs on the machine falls
on all alike; read wall-clock rates as lower bounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import uvloop
from raw_client import RawClient
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub
from srbench.v1.planner_service_pb2_grpc import PlannerServiceStub
from srbench_kit.values import Json, to_value

HERE = Path(__file__).parent
CONCURRENCY = 256
STREAM_S = 0.58
PRICE: dict[str, Json] = {"input": 1, "cached_input": 0.1, "cache_write": 1, "output": 4}
WORDS = (
    *("reaction", "enthalpy", "matrix", "voltage", "market", "elasticity", "treaty", "genome", "orbit", "lattice"),
    *("entropy", "contract", "ledger", "theorem", "vector", "kernel", "photon", "isotope", "mineral", "glacier"),
)


def case(number: int) -> Json:
    """A question of the size of MMLU-Pro's: about 800 characters with ten choices."""
    words = [WORDS[(number * 7 + place * (1 + number % 13)) % len(WORDS)] for place in range(55)]
    choices = [" ".join(words[place : place + 4]) for place in range(0, 40, 4)]
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCDEFGHIJ", choices, strict=True))
    prompt = f"Question {number}: given {' '.join(words)}, which holds?\n\n{lines}\n\nEnd with: The answer is: X"
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": prompt}],
        "answer": "ABCDEFGHIJ"[number % 10],
        "choices": list(choices),
        "metadata": {"stratum": ("math", "law", "physics")[number % 3], "split": "dev"},
    }


def manifest(name: str, cells: int, port: int, targets: int = 1) -> dict[str, Json]:
    """A plan of `cells` cells over `targets` targets of the mock at `port`."""
    return {
        "version": "sr-bench-1.0",
        "name": name,
        "cases": [case(number) for number in range(cells // targets)],
        "targets": [
            {
                "id": f"t{number}",
                "kind": "single",
                "model": "mock-1",
                "base_url": f"http://127.0.0.1:{port}/v1",
                "prices": {"mock-1": PRICE},
            }
            for number in range(targets)
        ],
        "limits": {"concurrency": CONCURRENCY, "max_cost_usd": 1000, "max_output_tokens": 64, "max_run_seconds": 3600},
    }


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, from its own clock (Linux: `~pid << 3 | 2` names it)."""
    return time.clock_gettime(~pid << 3 | 2)


@dataclass
class Stack:
    """A running stack."""

    process: subprocess.Popen[bytes]
    store: Path
    ready_s: float
    channel: grpc.Channel
    pids: dict[str, int] = field(default_factory=dict)

    @property
    def planner(self) -> PlannerServiceStub:
        """The planner through the front door."""
        return PlannerServiceStub(self.channel)

    @property
    def accounting(self) -> AccountingServiceStub:
        """Accounting through the front door."""
        return AccountingServiceStub(self.channel)

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each process so far."""
        return {name: cpu_s(pid) for name, pid in self.pids.items()}

    def stored_bytes(self) -> int:
        """Bytes that the store keeps: without logs and spool, the databases' logs folded in."""
        for path in self.store.glob("*.sqlite3"):
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
        found = (path for path in self.store.rglob("*") if path.is_file() and not {"logs", "spool"} & set(path.parts))
        return sum(path.stat().st_size for path in found)


def _children(pid: int) -> dict[str, int]:
    """The services of a supervisor by module."""
    found = {"supervisor": pid}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        argv = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        found[argv[argv.index("-m") + 1].removeprefix("srbench_")] = int(child)
    return found


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """`sr-bench serve` on a new store in `folder`."""
    store = folder / "store"
    command = [sys.executable, "-m", "srbench_cli", "--store", str(store), "serve", "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
    began = time.monotonic()
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        while not (store / "service.json").exists():
            if process.poll() is not None:
                raise RuntimeError((folder / "serve.log").read_text())
            time.sleep(0.01)
        ready_s = time.monotonic() - began
        record = json.loads((store / "service.json").read_text())
        options = [("grpc.max_receive_message_length", 1 << 26), ("grpc.max_send_message_length", 1 << 26)]
        with grpc.insecure_channel(record["grpc_address"], options=options) as channel:
            yield Stack(process, store, ready_s, channel, _children(record["pid"]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def mock() -> Iterator[tuple[int, int]]:
    """The mock's two ports: at once, and at live pace."""
    process = subprocess.Popen([sys.executable, str(HERE / "mock_openai.py")], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        zero, live = process.stdout.readline().split()
        yield int(zero), int(live)
    finally:
        process.kill()
        process.wait()


def raw(port: int, calls: int, spread_s: float) -> dict[str, float]:
    """The raw client's CPU per call and its rate, in a process of its own."""
    command = [sys.executable, __file__, "--raw", str(port), str(calls), str(spread_s)]
    found: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


async def drive_raw(port: int, calls: int, spread_s: float) -> dict[str, float]:
    """The raw client in a closed loop."""
    client = RawClient(port)
    prompt = json.dumps(case(1))
    seeds = iter(range(calls))

    async def worker(position: int) -> None:
        await asyncio.sleep(spread_s * position / CONCURRENCY)
        for seed in seeds:
            await client.ask(prompt, seed)

    used, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    before = used.ru_utime + used.ru_stime
    await asyncio.gather(*(worker(position) for position in range(CONCURRENCY)))
    used = resource.getrusage(resource.RUSAGE_SELF)
    client.close()
    wall = time.monotonic() - began
    return {"cpu_ms": (used.ru_utime + used.ru_stime - before) * 1e3 / calls, "rate": calls / wall}


def run(found: Stack, name: str, cells: int, port: int, targets: int = 1) -> tuple[dict[str, float], str]:
    """One run to its end: CPU ms a cell of every process and in all, cells a second, stored bytes a cell."""
    request = planner_pb.CreateRunRequest(manifest=to_value(manifest(name, cells, port, targets)), idempotency_key=name)
    bytes_before, frozen_from = found.stored_bytes(), found.cpu()
    created = found.planner.CreateRun(request, timeout=600)
    before, began = found.cpu(), time.monotonic()
    *_, last = found.planner.WatchRun(planner_pb.WatchRunRequest(id=created.id), timeout=1200)
    wall, after = time.monotonic() - began, found.cpu()
    if last.status != "completed":
        raise RuntimeError(f"the run ended {last.status}: {last.progress} {last.error}")
    figures = {name: (after[name] - before[name]) * 1e3 / cells for name in after}
    figures["all processes"] = sum(figures.values())
    figures["freezing"] = sum(before[name] - frozen_from[name] for name in before) * 1e3 / cells
    figures["cells/s"] = cells / wall
    figures["bytes a cell"] = (found.stored_bytes() - bytes_before) / cells
    return figures, created.id


def timed(work: Callable[[], object], repeats: int = 7) -> tuple[float, float]:
    """Milliseconds of the first time and the median of the others."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return times[0], statistics.median(times[1:])


def read_side(found: Stack, run_id: str) -> dict[str, tuple[float, float]]:
    """Times of pages and of the report through the front door, in ms: first, median."""
    ledger, planner = found.accounting, found.planner
    one = ledger.ListCalls(accounting_pb.ListCallsRequest(run_id=run_id, page_size=1)).calls[0]
    outcomes, calls = accounting_pb.ListOutcomesRequest, accounting_pb.ListCallsRequest
    works: dict[str, Callable[[], object]] = {
        "report": lambda: ledger.GetReport(accounting_pb.GetReportRequest(run_id=run_id)),
        "outcomes, 500": lambda: ledger.ListOutcomes(outcomes(run_id=run_id, page_size=500)),
        "outcomes, 100": lambda: ledger.ListOutcomes(outcomes(run_id=run_id, page_size=100)),
        "outcomes, 100 of a target, wrong": lambda: ledger.ListOutcomes(
            outcomes(run_id=run_id, target_id="t0", correct=False)
        ),
        "calls, 500": lambda: ledger.ListCalls(calls(run_id=run_id, page_size=500)),
        "calls, 100": lambda: ledger.ListCalls(calls(run_id=run_id, page_size=100)),
        "calls of a case": lambda: ledger.ListCalls(calls(run_id=run_id, case_id="mmlu-pro/5")),
        "one call with its texts": lambda: ledger.GetCall(accounting_pb.GetCallRequest(run_id=run_id, call_id=one.id)),
        "cells, 100": lambda: planner.ListCells(planner_pb.ListCellsRequest(run_id=run_id, page_size=100)),
        "runs": lambda: planner.ListRuns(planner_pb.ListRunsRequest()),
        "run, summary": lambda: planner.GetRun(planner_pb.GetRunRequest(id=run_id, summary=True)),
    }
    return {name: timed(work) for name, work in works.items()}


def median_of(rounds: list[dict[str, float]]) -> dict[str, str]:
    """`median (least-most)` of each figure."""
    found = {}
    for name in rounds[0]:
        values = [figures[name] for figures in rounds]
        found[name] = f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"
    return found


def table(title: str, rounds: list[dict[str, float]], raws: list[dict[str, float]]) -> None:
    """Prints one setting; ratios to the raw client of the same round."""
    print(f"\n{title}, load {os.getloadavg()[0]:.1f}")
    for name, text in median_of(rounds).items():
        ratio = ""
        if name not in ("cells/s", "bytes a cell", "freezing"):
            ratios = [figures[name] / base["cpu_ms"] for figures, base in zip(rounds, raws, strict=True)]
            ratio = f"{statistics.median(ratios):8.2f} x raw"
        print(f"  {name:16} {text:32} {ratio}")
    for name, text in median_of(raws).items():
        print(f"  raw {name:12} {text}")


def main() -> None:
    """Runs the rounds and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", nargs=3, type=float, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=6000, help="cells at zero delay")
    parser.add_argument("--few", type=int, default=300, help="cells of the small plan")
    parser.add_argument("--live", type=int, default=3000, help="cells at live pace")
    parser.add_argument("--report", type=int, default=16_000, help="cells of the run that is reported and listed; 0: none")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    if options.raw:
        port, calls, spread_s = options.raw
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(drive_raw(int(port), int(calls), spread_s))))
        return
    measure(options)


def measure(options: argparse.Namespace) -> None:
    """All settings in turn, `rounds` times; then the read side."""
    load = os.getloadavg()
    settings = {
        f"zero delay, {options.cells} cells": (options.cells, 0),
        f"zero delay, {options.few} cells": (options.few, 0),
        f"live pace, {options.live} cells": (options.live, 1),
    }
    settings = {title: how for title, how in settings.items() if how[0]}
    results: dict[str, list[dict[str, float]]] = {title: [] for title in settings}
    raws: dict[str, list[dict[str, float]]] = {title: [] for title in settings}
    with mock() as ports, tempfile.TemporaryDirectory(dir=options.folder) as folder, stack(Path(folder)) as found:
        print(f"stack ready after {found.ready_s:.2f} s, its CPU {sum(found.cpu().values()):.2f} s")
        run(found, "warm", 300, ports[0])
        for number in range(options.rounds):
            for title, (cells, pace) in settings.items():
                raws[title].append(raw(ports[pace], max(cells, 2000) if not pace else cells, pace * STREAM_S))
                results[title].append(run(found, f"{title} {number}", cells, ports[pace])[0])
        for title in settings:
            table(title, results[title], raws[title])
        pages: dict[str, tuple[float, float]] = {}
        if options.report:
            _, run_id = run(found, "report", options.report, ports[0], targets=4)
            pages = read_side(found, run_id)
            print(f"\nread through the front door, {options.report} cells, load {os.getloadavg()[0]:.1f}")
            for name, (first, median) in pages.items():
                print(f"  {name:36} {first:8.1f} ms first {median:8.1f} ms")
        if options.json:
            figures = {"load": load, "ready_s": found.ready_s, "runs": results, "raw": raws, "pages": pages}
            options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
