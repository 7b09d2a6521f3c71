"""Compares our grading of LiveCodeBench with upstream's own loader and grader, program by program.

    pip download --no-deps nvidia-livecodebench==26.3, unpack it into UPSTREAM
    python tools/compare_livecodebench_graders.py --upstream UPSTREAM --shards test*.jsonl --solutions solutions.jsonl

A line of `--solutions` is `{"question_id": ..., "correct": "...", "incorrect": "..."}`; other names go as well.
Right is what upstream's metric calls right: every result is true. Upstream runs in the same interpreter as our sandbox
(SR_BENCH_SANDBOX_PYTHON), without one. `--altered` adds programs with one change each to both kinds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from altering import altered
from grader_tally import Pair, Tally
from srbench_grader import code
from srbench_grader.grading import Case, Submission
from srbench_grader.workshop import Workshop


async def _no_fetch(_name: str) -> bytes:
    raise AssertionError("tests come with the problem")


def main() -> None:
    """Prints every disagreement; exits with 1 when there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", type=Path, required=True)
    parser.add_argument("--shards", type=Path, nargs="+", required=True)
    parser.add_argument("--solutions", type=Path, required=True)
    parser.add_argument("--altered", type=int, default=0, help="altered programs for each program")
    parser.add_argument("--output", type=Path, help="a file for every verdict of both sides, a line of JSON each")
    given = parser.parse_args()
    programs = {row["question_id"]: row for row in map(json.loads, given.solutions.read_text().splitlines())}
    rows = [json.loads(line) for shard in given.shards for line in shard.read_text().splitlines()]
    tally = Tally(given.output)
    command = [os.environ["SR_BENCH_SANDBOX_PYTHON"], str(Path(__file__).with_name("livecodebench_upstream.py"))]
    with subprocess.Popen(
        [*command, str(given.upstream)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as them:
        asyncio.run(_compare(given.altered, rows, programs, them, tally))
    sys.exit(tally.end())


async def _compare(
    count: int, rows: list[Any], programs: dict[str, Any], upstream: subprocess.Popen[str], tally: Tally
) -> None:
    workshop = Workshop(_no_fetch)
    for row in rows:
        found = dict(_variants(programs[row["question_id"]], count))
        asked = json.dumps({"row": row, "programs": list(found.values())})
        theirs = asyncio.to_thread(_ask, upstream, asked)
        grades = (_ours(row, text, workshop) for text in found.values())
        ours, said = await asyncio.gather(asyncio.gather(*grades), theirs)
        for label, grading, results in zip(found, ours, said, strict=True):
            right = bool(results) and all(result is True for result in results)
            tally.add(Pair(row["question_id"], label, right, grading.correct, f"{results} {grading.details}"))
    workshop.close()


def _variants(solution: dict[str, Any], count: int) -> Iterator[tuple[str, str]]:
    for name, text in solution.items():
        if name == "question_id":
            continue
        yield name, text
        for number in range(count):
            yield f"{name}, altered ({number})", altered(text, random.Random(f"{number} {text}"))


def _ask(upstream: subprocess.Popen[str], asked: str) -> list[list[Any]]:
    assert upstream.stdin is not None
    assert upstream.stdout is not None
    upstream.stdin.write(asked + "\n")
    upstream.stdin.flush()
    found: list[list[Any]] = json.loads(upstream.stdout.readline())
    return found


async def _ours(row: Any, text: str, workshop: Workshop) -> Any:
    """Our grade of a program."""
    name = f"livecodebench/{row['question_id']}"
    case = Case(case_id=name, benchmark="livecodebench", metadata={"source_record": row}, options={})
    return await code.run(Submission(text=f"```python\n{text}\n```"), case, workshop)


if __name__ == "__main__":
    main()
