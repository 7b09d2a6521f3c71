"""CPU of the planner per cell: lease, save, complete, save, over real gRPC, the client's CPU told apart.

    .venv/bin/python bench/planner_queue.py [cells ...]

The planner runs in a process of its own on SQLite; this process plays four executors that lease in batches and complete at
once, and nothing else. Prints one line a plan size.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from srbench.v1 import planner_service_pb2, planner_service_pb2_grpc, work_queue_service_pb2, work_queue_service_pb2_grpc
from srbench_kit import auth, serving, wire
from srbench_kit.values import to_value

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "planner"))
from planner_doubles import Files, benchmarks, case, manifest, target

BATCH = 32
EXECUTORS = 4
TARGETS = 4


class NoFacts:
    """Nothing is ever in doubt here."""

    async def fence(self, run_id: str, fences: list[Any]) -> list[Any]:
        raise AssertionError("no lease runs out in this measurement")

    async def halt(self, run_id: str, reason: str) -> None:
        raise AssertionError("no run is stopped in this measurement")


async def serve(address: str, folder: Path) -> None:
    """The planner's process."""
    from srbench_planner import assembly
    from srbench_planner.grader_client import GraderClient
    from srbench_planner.hidden_parts import HiddenParts
    from srbench_planner.servicer import PlanServicer

    service = assembly.assemble(folder, benchmarks(), Files(), NoFacts())
    await service.start()
    server = serving.Server(address)
    plans = PlanServicer(
        *(service.registry, service.freezer, service.plans, service.runs, service.scheduler),
        benchmarks=benchmarks(),
        hidden=HiddenParts(folder),
        grader=GraderClient(""),
        runners=service.runners,
    )
    server.add(plans, planner_service_pb2_grpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    queue_add = work_queue_service_pb2_grpc.add_WorkQueueServiceServicer_to_server
    server.add(service.work_queue, queue_add, "srbench.v1.WorkQueueService")
    await serving.serve(server, [service.background()])


async def drain(stub: Any, name: str) -> int:
    """One executor: leases and completes until nothing comes."""
    done = 0
    ask = work_queue_service_pb2.LeaseCellsRequest(
        executor_id=name, incarnation="1", max_cells=BATCH, drivers=["single_turn"]
    )
    while True:
        leases = (await stub.LeaseCells(ask)).leases
        if not leases:
            return done
        report = work_queue_service_pb2.CompleteCellsRequest(executor_id=name)
        for lease in leases:
            ref = work_queue_service_pb2.LeaseRef(run_id=lease.run_id, cell=lease.cell, token=lease.token)
            report.completions.add(lease=ref, state=work_queue_service_pb2.CELL_STATE_DONE)
        await stub.CompleteCells(report)
        done += len(leases)


def cpu_s(pid: int) -> float:
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(address: str, pid: int, sizes: list[int]) -> None:
    """Runs one plan of each size."""
    question = "What is asked here? " * 20
    async with wire.channel(address, auth.service_metadata("executor")) as channel:
        plans = planner_service_pb2_grpc.PlannerServiceStub(channel)
        stub = work_queue_service_pb2_grpc.WorkQueueServiceStub(channel)
        await channel.channel_ready()
        for number, size in enumerate([TARGETS, *sizes]):
            cases = [
                case(f"q{n}", messages=[{"role": "user", "content": question + str(n)}]) for n in range(size // TARGETS)
            ]
            value = manifest(
                cases=cases, targets=[target(f"t{n}") for n in range(TARGETS)], limits={"concurrency": BATCH * EXECUTORS}
            )
            request = planner_service_pb2.CreateRunRequest(manifest=to_value(value), idempotency_key=str(number))
            began = time.perf_counter()
            run = await plans.CreateRun(request)
            created = time.perf_counter() - began
            before, own, began = cpu_s(pid), resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            done = sum(await asyncio.gather(*(drain(stub, f"e{n}") for n in range(EXECUTORS))))
            wall = time.perf_counter() - began
            spent, mine = cpu_s(pid) - before, resource.getrusage(resource.RUSAGE_SELF)
            client = mine.ru_utime + mine.ru_stime - own.ru_utime - own.ru_stime
            ended = await plans.GetRun(planner_service_pb2.GetRunRequest(id=run.id, summary=True))
            if number:
                print(
                    f"{done} cells: planner {spent / done * 1e3:.3f} ms CPU a cell, client {client / done * 1e3:.3f}, "
                    f"{done / wall:.0f} cells/s, run created in {created:.2f} s, ended {ended.status}",
                    flush=True,
                )


def table_bytes(folder: str) -> int:
    """Bytes of the planner's database."""
    return sum(path.stat().st_size for path in Path(folder).glob("planner.sqlite3*"))


async def main() -> None:
    """Starts the planner, measures, stops it."""
    sizes = [int(text) for text in sys.argv[1:]] or [1200, 6000, 16000, 24000]
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/planner.sock"
        command = [sys.executable, __file__, "--serve", address, folder]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        await process.stdout.readline()
        try:
            await measure(address, process.pid, sizes)
        finally:
            process.terminate()
            await process.wait()
        print(f"tables: {table_bytes(folder) / sum(sizes):.0f} bytes a cell, plans included")


if __name__ == "__main__":
    if "--serve" in sys.argv:
        at = sys.argv.index("--serve")
        serving.run(lambda: serve(sys.argv[at + 1], Path(sys.argv[at + 2])))
    else:
        serving.run(main)
