"""Synthetic files of the benchmarks with programs, LiveCodeBench and SciCode, in the true upstream layouts."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

from srbench_kit.values import Json

SHARDS = ("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl", "test6.jsonl")
DIFFICULTIES = ("easy", "medium", "hard")
STEPS = 3


def packed(tests: list[dict[str, str]]) -> str:
    """Hidden tests as upstream packs them: base64 of zlib of a pickled JSON text."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def code_row(number: int, rng: Random) -> dict[str, Json]:
    """A problem: a linear map of a number, by standard input or as a function."""
    factor, offset, functional = rng.randint(2, 99), rng.randint(1, 999), number % 2 == 1
    kind = "functional" if functional else "stdin"
    inputs = rng.sample(range(1, 10_000), 8)
    tests = [{"input": str(n), "output": str(factor * n + offset), "testtype": kind} for n in inputs]
    asks = (
        f"return {factor} times the number plus {offset}."
        if functional
        else (f"Read one whole number and print {factor} times the number plus {offset}.")
    )
    return {
        "question_title": f"Linear map {number}",
        "question_content": f"Problem {number}. Given a whole number, {asks}"
        if functional
        else f"Problem {number}. {asks}",
        "platform": "leetcode" if functional else "atcoder",
        "question_id": f"syn{number:04d}",
        "contest_id": f"syn{number // 6:03d}",
        "contest_date": "2025-01-01T00:00:00",
        "starter_code": "class Solution:\n    def linear(self, n: int) -> int:\n        " if functional else "",
        "difficulty": DIFFICULTIES[number % 3],
        "public_test_cases": json.dumps(tests[:2]),
        "private_test_cases": packed(tests[2:]),
        "metadata": json.dumps({"func_name": "linear"} if functional else {}),
    }


def write_livecodebench(folder: Path, seed: int = 1, per_shard: int = 30) -> int:
    """Writes the six files; 30 problems in each are enough for all profiles. Returns the number of problems."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = Random(f"livecodebench|{seed}")
    for place, name in enumerate(SHARDS):
        rows = [code_row(place * per_shard + number, rng) for number in range(per_shard)]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return len(SHARDS) * per_shard


def steps_row(number: int, rng: Random) -> tuple[dict[str, Json], list[list[float]]]:
    """A problem in steps with the code that solves them, as upstream's development set has it, and each step's target."""
    steps: list[Json] = []
    targets: list[list[float]] = []
    for step in range(1, STEPS + 1):
        factor, name = rng.randint(2, 9), f"scale_{number}_{step}"
        given = [float(rng.randint(1, 50)) for _ in range(3)]
        header = f"def {name}(x):\n    '''The array x, times {factor}.'''"
        steps.append(
            {
                "step_number": f"{number}.{step}",
                "step_description_prompt": f"Problem {number}, part {step}: multiply each element of an array by {factor}.",
                "step_background": "Background: none.",
                "ground_truth_code": f"{header}\n    return np.asarray(x) * {factor}",
                "function_header": header,
                "test_cases": [f"assert np.allclose({name}(np.array({given})), target)"],
                "return_line": "    return y",
            }
        )
        targets.append([factor * value for value in given])
    texts = ("problem_description_main", "problem_background_main", "problem_io", "general_solution")
    row: dict[str, Json] = {"problem_name": f"Synthetic_{number}", "problem_id": str(number)}
    row |= {"required_dependencies": "import numpy as np", "sub_steps": steps, "general_tests": []}
    return row | dict.fromkeys(texts, "SYNTHETIC"), targets


def write_scicode(folder: Path, seed: int = 1, count: int = 24) -> int:
    """Writes the task file and the targets `test_data.h5`. Returns the number of problems."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    rng = Random(f"scicode|{seed}")
    made = [steps_row(number, rng) for number in range(1, count + 1)]
    (folder / "problems_test.jsonl").write_text("".join(json.dumps(row) + "\n" for row, _ in made))
    with h5py.File(folder / "test_data.h5", "w") as file:
        for row, targets in made:
            for step, target in enumerate(targets, 1):
                file[f"{row['problem_id']}.{step}/test1/var1"] = target
    return count


def programs_in(path: Path) -> Iterator[tuple[str, str]]:
    """(step number, code that solves it) of every step of a SciCode task file that tells it."""
    for line in path.read_text().splitlines():
        for step in json.loads(line).get("sub_steps", ()) if line.strip() else ():
            if isinstance(step.get("ground_truth_code"), str):
                yield str(step["step_number"]), step["ground_truth_code"]
