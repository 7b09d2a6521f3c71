"""Compares our grading of τ³ with upstream's own evaluator, conversation by conversation, on all of its tasks.

    python -m srbench_executor.harness.installing --benchmark tau3     or SR_BENCH_TAU3_PYTHON, an interpreter with tau2
    python tools/compare_tau3_graders.py --root TAU2_BENCH             a checkout of the pin: its data/tau2 are used

Each task is played in upstream's environment in several ways (as its author expects, nothing done, an action left out, what
is to be said left unsaid, a judge who is not content, broken off) and rewarded by upstream's evaluator in one process. Ours
has it as the result of a harness, packed, with the hidden part apart, and is told what a judge says when it asks for one.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from grader_tally import Pair, Tally
from srbench_grader import tau3
from srbench_grader.grading import Case, JudgeReply, Submission
from srbench_grader.workshop import Workshop
from srbench_kit import upstreams


def main() -> None:
    """Prints every disagreement; exits with 1 when there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True, help="a folder with data/tau2; databases may be packed (.gz)")
    parser.add_argument("--domains", nargs="*", default=[], help="these alone")
    parser.add_argument("--variants", nargs="*", default=[], help="these ways of playing alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, help="a file for every verdict of both sides, a line of JSON each")
    parser.add_argument("--resume", action="store_true", help="go on from what --output holds already")
    given = parser.parse_args()
    tally = Tally(given.output, resume=given.resume)
    with tempfile.TemporaryDirectory() as folder:
        root = _unpacked(given.root, Path(folder, "root"))
        os.environ["SR_BENCH_TAU3_ROOT"] = str(root)
        command = [str(upstreams.python("TAU3", "tau3")), str(Path(__file__).with_name("tau3_upstream.py")), str(root)]
        command += [json.dumps(given.domains), json.dumps(given.variants)]
        piped = subprocess.PIPE
        with subprocess.Popen(command, stdin=piped, stdout=piped, text=True, cwd=folder) as upstream:
            assert upstream.stdin is not None
            upstream.stdin.write(json.dumps(list(tally.known)))
            upstream.stdin.close()
            asyncio.run(_compare(upstream, given.workers, tally))
    sys.exit(tally.end() or upstream.returncode)


def _unpacked(source: Path, target: Path) -> Path:
    """A copy of the checkout's data, with nothing packed."""
    shutil.copytree(source / "data", target / "data", copy_function=shutil.copyfile)
    for path in list(target.rglob("*.gz")):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    return target


async def _compare(upstream: subprocess.Popen[str], workers: int, tally: Tally) -> None:
    hidden: dict[str, bytes] = {}

    async def fetch(name: str) -> bytes:
        return hidden[name]

    workshop, turns = Workshop(fetch, workers), asyncio.Semaphore(workers)
    assert upstream.stdout is not None
    async with asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(upstream.stdout.readline):
            row = json.loads(line)
            name = f"{row['domain']}/{row['task']['id']}"
            hidden[name] = json.dumps(row["task"]).encode()
            await turns.acquire()
            group.create_task(_one(name, row, workshop, turns, tally))
    workshop.close()


async def _one(name: str, row: dict[str, Any], workshop: Workshop, turns: asyncio.Semaphore, tally: Tally) -> None:
    try:
        reward, asked = await _ours(name, row, workshop)
    finally:
        turns.release()
    same = reward == row["reward"] and asked == row["judge_asked"]
    said = f"rewards {row['reward']} and {reward}, judge asked {row['judge_asked']} and {asked} times"
    right = row["reward"] == 1
    # Verdicts that agree for other reasons do not.
    tally.add(Pair(name, row["variant"], right, right if same else not right, said))


async def _ours(name: str, row: dict[str, Any], workshop: Workshop) -> tuple[Any, int]:
    """The reward that our grader gives, and how often it asks for a judge."""
    packed = base64.b64encode(zlib.compress(json.dumps(row["record"]).encode())).decode()
    text = json.dumps({"status": "completed", "details": {"conversation": packed}})
    metadata = {"domain": row["domain"], "task_id": row["task"]["id"], "hidden_sha256": name}
    case = Case(case_id=f"tau3/{name}", benchmark="tau3", metadata=metadata)
    replies: tuple[JudgeReply, ...] = ()
    while True:
        grading = await tau3.run(Submission(text=text, replies=replies), case, workshop)
        if grading.judge_call is None:
            return grading.details["reward"], len(replies)
        replies = (*replies, JudgeReply(text=row["judge_text"]))


if __name__ == "__main__":
    main()
