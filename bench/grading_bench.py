"""How many LiveCodeBench-shaped solutions a grader's machine can judge: warm sandboxes against cold ones.

`python bench/grading_bench.py [--sandbox bwrap|docker] [--count 60] [--workers 1]`; one line of JSON a way.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from srbench_grader import solutions
from srbench_grader.hidden_tests import IoTest, IoTests
from srbench_grader.pool import WarmPool
from srbench_grader.sandbox import selection
from srbench_grader.sandbox.limits import MIB
from srbench_grader.sandbox.session import Session

CORES = os.cpu_count() or 1
CODE = "import sys\nn = int(sys.stdin.readline())\nprint(sum(i * i for i in range(n)) % 1000007)\n"
TESTS = IoTests(tests=tuple(IoTest(f"{n}\n", str(sum(i * i for i in range(n)) % 1000007)) for n in range(100, 2100, 100)))


def cpu_s() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def judge_one(take: Callable[[], Session]) -> None:
    """Judges one solution."""
    session = take()
    solved = solutions.solve(session, CODE, TESTS, test_timeout_s=6, grade_timeout_s=60)
    session.close()
    assert solved.passed, solved


def measure(label: str, count: int, workers: int, take: Callable[[], Session]) -> None:
    """Judges `count` solutions, `workers` at a time, and prints what it took."""
    began, used = time.monotonic(), cpu_s()
    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(judge_one, [take] * count))
    wall = time.monotonic() - began
    figures = {"way": label, "solutions": count, "tests_each": len(TESTS.tests), "workers": workers}
    figures |= {"per_second": round(count / wall, 2), "per_second_per_core": round(count / wall / min(workers, CORES), 2)}
    print(json.dumps(figures | {"cpu_ms_each": round((cpu_s() - used) / count * 1000, 1), "load": os.getloadavg()[0]}))


def main() -> None:
    """Measures the sandbox that the environment names."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sandbox", choices=("bwrap", "docker"), default="bwrap")
    options.add_argument("--count", type=int, default=60)
    options.add_argument("--workers", type=int, default=1)
    given = options.parse_args()
    os.environ["SR_BENCH_SANDBOX"] = given.sandbox
    sandbox = selection.choose({})
    print(json.dumps({"sandbox": sandbox.identity, "cores": os.cpu_count()}))
    measure("cold", given.count, given.workers, lambda: solutions.ready_runner(sandbox, 1024 * MIB))
    pool = WarmPool(lambda: solutions.ready_runner(sandbox, 1024 * MIB), 4)
    try:
        measure("warm", given.count, given.workers, pool.take)
    finally:
        pool.close()


if __name__ == "__main__":
    main()
