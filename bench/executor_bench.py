"""What one executor process costs per cell, everything included, between services that do as little as possible.

    python bench/executor_bench.py --mock PATH/mock_openai.py --folder DIR [--cells 4000] [--concurrency 256] [--live]

The fake planner, accounting and grader live in this process and answer at once; the executor is a process of its own, and
its CPU is read from the kernel before and after. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as accounting
from srbench.v1 import grader_service_pb2 as grader_pb
from srbench.v1 import grader_service_pb2_grpc as grader
from srbench.v1 import plan_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1 import work_queue_service_pb2_grpc as queue
from srbench_kit import serving
from srbench_kit.values import to_value

PROMPT = "Which of these holds? " * 40


class Queue(queue.WorkQueueServiceServicer):
    """Hands out cells, at most `concurrency` at a time, and marks when each hundredth is done."""

    def __init__(self, base_url: str, cells: int, concurrency: int) -> None:
        self._left, self._free, self.total, self.done = cells, concurrency, cells, 0
        self._changed = asyncio.Event()
        self.finished = asyncio.Event()
        self.warm = asyncio.Event()
        self.context = queue_pb.RunContext(run_id="run", case_sha256="c")
        limits = self.context.limits
        limits.total_timeout_s, limits.idle_timeout_s, limits.case_timeout_s = 120, 60, 600
        limits.max_output_tokens, limits.max_output_chars = 512, 131_072
        limits.repetition_window, limits.repetition_limit = 128, 5
        self.context.targets.add(id="t", model="mock-1", base_url=base_url, kind=1)
        self.context.sampling.CopyFrom(to_value({"temperature": 0, "max_tokens": 512}))
        self.case = plan_pb2.PublicCase(case_id="c", benchmark="b")
        self.case.messages.add(role="user", content=to_value(PROMPT))

    async def LeaseCells(self, request: Any, context: Any) -> Any:
        while not (self._left and self._free):
            self._changed.clear()
            await self._changed.wait()
        count = min(self._left, self._free, request.max_cells)
        first = self.total - self._left
        self._left -= count
        self._free -= count
        common: dict[str, Any] = {"driver": "single_turn", "grader": "choice", "public_case": self.case, "token": 1}
        leases = [
            queue_pb.Lease(run_id="run", cell=cell, case_index=cell, **common) for cell in range(first, first + count)
        ]
        return queue_pb.LeaseCellsResponse(leases=leases)

    async def RenewLeases(self, request: Any, context: Any) -> Any:
        return queue_pb.RenewLeasesResponse()

    async def CompleteCells(self, request: Any, context: Any) -> Any:
        assert all(done.state == queue_pb.CELL_STATE_DONE for done in request.completions)
        self.done += len(request.completions)
        self._free += len(request.completions)
        self._changed.set()
        if self.done >= self.total // 4:
            self.warm.set()
        if self.done == self.total:
            self.finished.set()
        return queue_pb.CompleteCellsResponse()

    async def GetRunContext(self, request: Any, context: Any) -> Any:
        return self.context


class Ledger(accounting.AccountingServiceServicer):
    """Acknowledges everything and counts."""

    messages = facts = 0

    async def RecordFacts(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        async for batch in requests:
            self.messages += 1
            self.facts += len(batch.facts)
            silent = ("evidence", "activity")
            acks = [pb.FactAck(sequence=fact.sequence) for fact in batch.facts if fact.WhichOneof("fact") not in silent]
            if acks:
                yield pb.RecordFactsResponse(acks=acks)


class Grader(grader.GraderServiceServicer):
    """Finds everything right."""

    async def Grade(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        async for batch in requests:
            yield grader_pb.GradeResponse(
                grades=[grader_pb.Grade(sequence=answer.sequence, correct=True, score=1) for answer in batch.answers]
            )


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


async def bench(given: argparse.Namespace, port: int) -> dict[str, object]:
    """One run."""
    work, ledger = Queue(f"http://127.0.0.1:{port}/v1", given.cells, given.concurrency), Ledger()
    server = serving.Server("127.0.0.1:0")
    server.add(work, queue.add_WorkQueueServiceServicer_to_server, "srbench.v1.WorkQueueService")
    server.add(ledger, accounting.add_AccountingServiceServicer_to_server, "srbench.v1.AccountingService")
    server.add(Grader(), grader.add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
    await server.start()
    address = f"127.0.0.1:{server.port}"
    environment = os.environ | {f"SR_BENCH_{name}_ADDRESS": address for name in ("PLANNER", "ACCOUNTING", "GRADER")}
    command = [sys.executable, "-m", "srbench_executor", "--listen", "127.0.0.1:0", "--spool", str(given.folder)]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.PIPE)
    await work.warm.wait()
    before, began, counted = cpu_s(process.pid), time.monotonic(), work.done
    rss_mb = resident_mb(process.pid)
    await work.finished.wait()
    cells, wall, used = work.done - counted, time.monotonic() - began, cpu_s(process.pid) - before
    process.terminate()
    await process.wait()
    await server.drain(0)
    return {
        "cells": cells,
        "cpu_ms_per_cell": round(1000 * used / cells, 4),
        "cells_per_s": round(cells / wall),
        "cells_per_cpu_s": round(cells / used),
        "facts_per_message": round(ledger.facts / ledger.messages, 1),
        "rss_mb": rss_mb,
    }


def main() -> None:
    """Starts the mock, runs once, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mock", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--cells", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--live", action="store_true", help="200 ms to the first token, 20 ms between tokens")
    given = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    mock = subprocess.Popen([sys.executable, str(given.mock), "--port", str(port)], stdout=subprocess.PIPE, text=True)
    assert mock.stdout is not None
    mock.stdout.readline()
    try:
        pace = "ttft_ms=200&itl_ms=20&flush=each" if given.live else "ttft_ms=0&itl_ms=0&flush=all"
        urllib.request.urlopen(f"http://127.0.0.1:{port}/config?chunks=20&{pace}").close()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(bench(given, port))))
    finally:
        mock.terminate()
        mock.wait()


if __name__ == "__main__":
    main()
