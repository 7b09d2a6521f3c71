"""Runs beside `compare_livecodebench_graders.py`: upstream's own loader and grader on programs, one line of JSON each.

    python livecodebench_upstream.py UPSTREAM < REQUESTS     requests are `{"row": {...}, "programs": ["...", ...]}`

Replies are lists with one list of upstream's results a program. A program that is caught in its own process is upstream's
own matter: the grader starts one for each. Needs NumPy; of the package nvidia-livecodebench only three files are loaded,
for the rest of it needs clients of models and data sets.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import sys
import types
from pathlib import Path
from typing import Any

TIMEOUT_S = 6


def load(folder: Path, name: str) -> Any:
    """The module `name` of the unpacked package, without the package around it."""
    path = folder.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name: str, **members: Any) -> None:
    """An import of upstream's that what is used here never reaches."""
    module = types.ModuleType(name)
    module.__dict__.update(members, __path__=[])
    sys.modules[name] = module


def graded(run_test: Any, sample: dict[str, str], program: str, told: Any) -> None:
    """What upstream says of one program; in a process of its own, for upstream takes functions of `os` away."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    told.send(json.dumps(run_test(sample, test=program, timeout=TIMEOUT_S)[0], default=bool))


def verdict(run_test: Any, sample: dict[str, str], program: str) -> list[Any]:
    """Upstream's results; `[-1]` when its own bound on all tests ran out, as `check_correctness` has it."""
    count = len(json.loads(sample["input_output"])["inputs"])
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=graded, args=(run_test, sample, program, sending))
    process.start()
    sending.close()
    try:
        found: list[Any] = json.loads(receiving.recv()) if receiving.poll((TIMEOUT_S + 1) * count + 5) else [-1]
    except EOFError:
        found = [-1]
    process.kill()
    process.join()
    return found


def main() -> None:
    """Serves requests until there are no more."""
    folder = Path(sys.argv[1])
    # As the module that computes upstream's metrics does.
    sys.set_int_max_str_digits(50_000)
    stand_in("datasets", load_dataset=None)
    for name in ("livecodebench", "livecodebench.benchmarks", "livecodebench.evaluation"):
        stand_in(name)
    stand_in("livecodebench.benchmarks.utils", filter_dataset_by_date=None)
    loader = load(folder, "livecodebench.benchmarks.code_generation")
    run_test = load(folder, "livecodebench.evaluation.testing_util").run_test
    for line in sys.stdin:
        asked = json.loads(line)
        sample = loader.CodeGenerationProblem(**asked["row"]).get_evaluation_sample()
        print(json.dumps([verdict(run_test, sample, program) for program in asked["programs"]]), flush=True)


if __name__ == "__main__":
    main()
