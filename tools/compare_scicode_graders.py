"""Compares our grading of SciCode with upstream's own grader, step by step, on right programs and on altered ones.

    pip download --no-deps inspect_evals==0.28.0 nvidia-scicode==26.3, unpack both into UPSTREAM
    python tools/compare_scicode_graders.py --upstream UPSTREAM --problems problems_dev.jsonl

Problems whose steps carry `ground_truth_code` get targets from that code, written by upstream's writer (nvidia-scicode);
others need `--targets` and `--solutions`. Upstream's verdict is that of its script (inspect_evals: `scorer.py`,
`process_data.py`, `test_util.py`), run by the same interpreter as ours. Needs bubblewrap and SR_BENCH_SANDBOX_PYTHON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from altering import altered
from grader_tally import Pair, Tally
from srbench_grader import scicode, step_targets
from srbench_grader.grading import Case, Submission
from srbench_grader.step_splitting import split
from srbench_grader.workshop import Workshop

STEP_S = 60.0
_WRITE = """
import json, sys
from scicode.parse.parse import save_data_to_hdf5
import h5py, pickle
made = pickle.load(open(sys.argv[1], "rb"))
with h5py.File(sys.argv[2], "a") as file:
    for name, value in made:
        group = file.create_group(name)
        values = value if isinstance(value, tuple) else (value,)
        for place, one in enumerate(values):
            save_data_to_hdf5(f"var{place + 1}", one, group)
"""


async def _no_fetch(_name: str) -> bytes:
    raise AssertionError("tests come with the problem")


def main() -> None:
    """Prints one line a problem and every disagreement; exits with 1 when there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", type=Path, required=True)
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--targets", type=Path)
    parser.add_argument("--solutions", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="these problems; all when left out")
    parser.add_argument("--leave-out", nargs="*", default=[], help="problems whose own code takes minutes a step")
    parser.add_argument("--altered", type=int, default=2, help="altered programs for each step")
    parser.add_argument("--altered-alone", action="store_true", help="judge an altered program at its own step only")
    parser.add_argument("--step-s", type=float, default=STEP_S, help="seconds that a step may take on either side")
    parser.add_argument("--output", type=Path, help="a file for every verdict of both sides, a line of JSON each")
    given = parser.parse_args()
    python = os.environ["SR_BENCH_SANDBOX_PYTHON"]
    read = [json.loads(line) for line in given.problems.read_text().splitlines()]
    rows = [row for row in read if row["problem_id"] not in given.leave_out]
    if given.only:
        rows = [row for row in rows if row["problem_id"] in given.only]
    known = {}
    if given.solutions:
        found = map(json.loads, given.solutions.read_text().splitlines())
        known = {row["problem_id"]: row["steps"] for row in found}
    tally = Tally(given.output)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_compare(given, rows, known, Path(folder), python, tally))
    sys.exit(tally.end())


async def _compare(given: Any, rows: list[Any], known: dict[str, Any], folder: Path, python: str, tally: Tally) -> None:
    targets = given.targets or folder / "test_data.h5"
    workshop = Workshop(_no_fetch, 2)
    for row in rows:
        code = known.get(row["problem_id"]) or [step["ground_truth_code"] for step in row["sub_steps"]]
        if not given.targets and not _write_targets(row, code, targets, given.upstream, python, folder):
            print(f"{row['problem_id']}: its own code makes no targets; left out", flush=True)
            continue
        for label, programs, judged in _variants(code, given.altered, given.altered_alone):
            # Both sides at once: each has a processor of its own where there are two.
            asked = asyncio.to_thread(_upstream_all, row, programs, judged, targets, given, python)
            ours, theirs = await asyncio.gather(_ours(row, programs, judged, targets, workshop, given.step_s), asked)
            for place in judged:
                step, found = row["sub_steps"][place], ours[place]
                verdict = None if found["status"] == "time_limit" else found["status"] == "passed"
                tally.add(Pair(step["step_number"], label, theirs[place], verdict, str(found)))
        print(f"{row['problem_id']}: {tally.told()}", flush=True)
    workshop.close()


def _upstream_all(
    row: Any, code: list[str], judged: range, targets: Path, given: Any, python: str
) -> dict[int, bool | None]:
    return {place: _upstream(row, code, place, targets, given, python) for place in judged}


def _variants(code: list[str], count: int, alone: bool) -> Iterator[tuple[str, list[str], range]]:
    """The programs as they are, and each step altered in a few ways, with the steps to judge: none that knows only
    programs which were judged before."""
    yield "as it is", list(code), range(len(code))
    for place, text in enumerate(code):
        for number in range(count):
            changed = altered(text, random.Random(f"{place} {number} {text}"))
            judged = range(place, place + 1 if alone else len(code))
            yield f"step {place + 1} altered ({number})", [*code[:place], changed, *code[place + 1 :]], judged


def _write_targets(row: Any, code: list[str], targets: Path, upstream: Path, python: str, folder: Path) -> bool:
    """Targets from a problem's own code: what its tests compare `target` with."""
    for place, step in enumerate(row["sub_steps"]):
        lines = [row["required_dependencies"], *code[: place + 1], "_made = []"]
        for number, test in enumerate(step["test_cases"]):
            halves = split(test, step["step_number"])
            lines += ["class _srbench:\n    kept = []\n    keep = kept.append", halves.beside]
            lines.append(f"_name = '{step['step_number']}/test{number + 1}'")
            # No comparison with a target: any will do.
            lines.append("_kept = _srbench.kept")
            lines.append("_made.append((_name, _kept[0] if len(_kept) == 1 else tuple(_kept) or 0))")
        lines.append(f"import pickle\npickle.dump(_made, open({str(folder / 'made')!r}, 'wb'))")
        if subprocess.run([python, "-c", "\n".join(lines)], capture_output=True, timeout=600, check=False).returncode:
            return False
        environment = {"PYTHONPATH": str(upstream), "PATH": os.environ["PATH"]}
        subprocess.run([python, "-c", _WRITE, str(folder / "made"), str(targets)], env=environment, check=True)
    return True


def _upstream(row: Any, code: list[str], place: int, targets: Path, given: Any, python: str) -> bool | None:
    """Whether a step passes in upstream's script; `None` when it does not end in time."""
    step = row["sub_steps"][place]
    tests = [test.replace("from scicode.compare.cmp import", "from test_util import") for test in step["test_cases"]]
    lines = [row["required_dependencies"], "from test_util import are_dicts_close, cmp_tuple_or_list", *code[: place + 1]]
    lines.append("import process_data\n" + f"process_data.H5PY_FILE = {str(targets)!r}")
    lines.append("from process_data import process_hdf5_to_tuple")
    lines.append(f"targets = process_hdf5_to_tuple('{step['step_number']}', {len(tests)})")
    for number, test in enumerate(tests):
        lines += [f"target = targets[{number}]", test]
    environment = {"PYTHONPATH": str(given.upstream / "inspect_evals" / "scicode"), "PATH": os.environ["PATH"]}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    try:
        command = [python, "-c", "\n".join(lines)]
        done = subprocess.run(command, capture_output=True, timeout=given.step_s, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


async def _ours(
    row: Any, code: list[str], judged: range, targets: Path, workshop: Workshop, step_s: float
) -> list[dict[str, Any]]:
    """What became of each step in our grader; the tests of steps that are not judged are left out."""
    os.environ["SR_BENCH_SCICODE_TEST_DATA"] = str(targets)
    options: dict[str, Any] = {"test_data_sha256": step_targets.file_sha256(targets), "test_timeout_s": step_s}
    options["grade_timeout_s"] = (step_s + 5) * len(code)
    steps = [step if place in judged else step | {"test_cases": []} for place, step in enumerate(row["sub_steps"])]
    metadata = {"source_record": row | {"sub_steps": steps}}
    case = Case(case_id=f"scicode/{row['problem_id']}", benchmark="scicode", metadata=metadata, options=options)
    parts = tuple(f"```python\n{text}\n```" for text in code)
    grading = await scicode.run(Submission(text=parts[-1], parts=parts), case, workshop)
    found: Any = grading.details["steps"]
    return list(found)


if __name__ == "__main__":
    main()
