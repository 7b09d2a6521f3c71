"""The executor's transport against the raw client, and against the first token's true time.

    python bench/transport_bench.py [--rounds 5] [--json FILE]

Every figure comes from a process of its own; rounds are interleaved and shuffled, so that what else runs on the machine
falls on all alike. CPU is user and system time of the client's process while it was being timed; ratios are what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from raw_client import RawClient
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import target_pb2
from srbench_executor import receipts, request
from srbench_executor.call import Call, CallBounds
from srbench_executor.caller import Transports
from srbench_executor.guards import RepetitionGuard
from srbench_executor.spool import Spool
from srbench_kit.redact import Redactor
from srbench_kit.steady import SteadyClock

PROMPT = "Which of these holds? " * 40
SETTINGS = {
    # name: (first token ms, between tokens ms, chunks, one write or one each, calls, concurrency)
    "zero-32": (0, 0, 20, "all", 4000, 32),
    "each-32": (0, 0, 20, "each", 4000, 32),
    "live-256": (200, 20, 20, "each", 1024, 256),
    "live-1000": (200, 20, 20, "each", 4000, 1000),
    "long-8": (0, 0, 1000, "each", 200, 8),
}
Ask = Callable[[int], Awaitable[int]]


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def executor_client(port: int, folder: Path, settle: bool) -> Ask:
    """The product's transport, parser, guards and spool; with `settle` the receipt and the evidence, too."""
    target = target_pb2.Target(id="t", model="mock-1", base_url=f"http://127.0.0.1:{port}/v1")
    where = request.endpoint(target.base_url)
    head = request.headers(target, where.host_header, "", "")
    spool, redactor = Spool(folder), Redactor([])
    transports = Transports(spool.flush)
    bounds = CallBounds(total_s=120, idle_s=60, max_output_chars=131_072, repetition_window=128, repetition_limit=5)

    async def ask(seed: int) -> int:
        fields = request.request_fields(
            target, {"temperature": 0, "max_tokens": 512, "seed": seed}, [{"role": "user", "content": PROMPT}], {}
        )
        outgoing = request.outgoing(where, fields, head)
        key = pb.CallKey(run_id="bench", cell=seed)
        number = spool.open(pb.Dispatch(key=key), redactor)
        call = Call(number, bounds, spool, SteadyClock())
        transport = transports.for_request(outgoing)
        call.attach(transport.start_now(outgoing, call) or await transport.start(outgoing, call, 10))
        await call.ended
        assert call.completion is not None
        assert not call.completion.reason, call.completion.message
        if settle:
            settled = receipts.settlement(call, target, request_sha256="", session_id="", redactor=redactor)
            spool.receipt(number, receipts.settle_facts(key, settled))
        spool.acknowledged(number)
        return call.first.token_ns or 0

    return ask


def raw_client(port: int) -> Ask:
    """The yardstick."""
    client = RawClient(port)

    async def ask(seed: int) -> int:
        return (await client.ask(PROMPT, seed))[0]

    return ask


async def drive(ask: Ask, count: int, concurrency: int, pace_s: float) -> dict[str, object]:
    """Makes `count` calls in a closed loop of `concurrency`, whose beginnings are spread over `pace_s`."""
    seeds = iter(range(1_000_000, 1_000_000 + count))
    first: dict[int, int] = {}

    async def worker(position: int) -> None:
        await asyncio.sleep(pace_s * position / concurrency)
        for seed in seeds:
            first[seed] = await ask(seed)

    await asyncio.gather(*(ask(seed) for seed in range(1, concurrency + 1)))  # connects
    before_kb = _rss_kb()
    began_cpu, began = cpu_s(), time.monotonic()
    await asyncio.gather(*(worker(position) for position in range(concurrency)))
    used, wall = cpu_s() - began_cpu, time.monotonic() - began
    return {"cpu_ms": 1000 * used / count, "rate": count / wall, "rss_kb": before_kb, "first": first}


def _rss_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def ignore_repetition() -> None:
    """The mock's text is one word over and over: the guard does its work, and its finding is put aside."""
    look = RepetitionGuard._look
    setattr(RepetitionGuard, "_look", lambda self: look(self) and False)  # noqa: B010 - mypy forbids the assignment


def child(client: str, setting: str, port: int, folder: Path) -> None:
    """One measurement, printed as JSON."""
    ttft_ms, _, _, _, count, concurrency = SETTINGS[setting]
    ignore_repetition()
    ask_of = {
        "raw": lambda: raw_client(port),
        "executor": lambda: executor_client(port, folder, False),
        "executor+settle": lambda: executor_client(port, folder, True),
    }

    async def body() -> dict[str, object]:
        return await drive(ask_of[client](), count, concurrency, 0.58 if ttft_ms else 0)

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(body())))


@contextmanager
def mock(setting: str) -> Iterator[int]:
    """The mock's port for one setting."""
    ttft_ms, between_ms, chunks, flush, _, _ = SETTINGS[setting]
    command = [sys.executable, str(Path(__file__).parent / "mock_openai.py"), "--chunks", str(chunks)]
    command += ["--ttft-ms", str(ttft_ms), "--between-ms", str(between_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        at_once, paced = process.stdout.readline().split()
        yield int(at_once if flush == "all" else paced)
    finally:
        process.kill()
        process.wait()


def lateness_ms(port: int, dated: dict[str, int]) -> list[float]:
    """How much later than the mock wrote it each first token was dated."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/first") as answer:
        written = json.load(answer)
    return sorted((dated[seed] - written[seed]) / 1e6 for seed in dated)


def measure(client: str, setting: str, folder: Path) -> dict[str, float]:
    """Runs one client in a process of its own against a mock of its own, and compares its stamps with the mock's."""
    with mock(setting) as port:
        command = [sys.executable, __file__, "--child", client, setting, str(port), str(folder)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        late = lateness_ms(port, found["first"]) if SETTINGS[setting][0] else []
    result = {"cpu_ms": found["cpu_ms"], "rate": found["rate"], "rss_mb": found["rss_kb"] / 1024}
    if late:
        result |= {"late_p50_ms": late[len(late) // 2], "late_p99_ms": late[int(len(late) * 0.99)]}
    return result


def main() -> None:
    """Runs all settings in shuffled rounds and prints medians, with the ratio to the raw client."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    clients = ["raw", "executor", "executor+settle"]
    with tempfile.TemporaryDirectory() as spools:
        for turn in range(given.rounds):
            cells = [(setting, client) for setting in given.settings.split(",") for client in clients]
            random.Random(turn).shuffle(cells)
            for number, (setting, client) in enumerate(cells):
                folder = Path(spools) / f"spool-{turn}-{number}"
                results.setdefault((setting, client), []).append(measure(client, setting, folder))
    _show(results, given.json)


def _show(results: dict[tuple[str, str], list[dict[str, float]]], file: Path | None) -> None:
    rows = []
    for (setting, client), found in sorted(results.items()):
        row: dict[str, object] = {"setting": setting, "client": client}
        for name in found[0]:
            row[name] = round(statistics.median(one[name] for one in found), 4)
        pairs = zip(found, results[setting, "raw"], strict=True)
        row["cpu_ratio"] = round(statistics.median(one["cpu_ms"] / raw["cpu_ms"] for one, raw in pairs), 2)
        rows.append(row)
        print(json.dumps(row))
    if file is not None:
        file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
