"""Problems in steps in real sandboxes: what passes, what fails and why, and that no program ever meets a target."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from srbench_grader import scicode, step_targets
from srbench_grader.grading import Case, Grading, Submission
from srbench_grader.sandbox import build
from srbench_grader.sandbox.selection import PREPARED
from srbench_grader.workshop import Workshop
from srbench_kit.errors import SrBenchError

from tests.sandbox.conftest import leftovers, until_gone
from tests.waiting import until

PYTHON = os.environ.get("SR_BENCH_SANDBOX_PYTHON") or PREPARED
SECRET = 271.828182845
LONG_S = 60
DEPENDENCIES = "import numpy as np\nfrom scipy.sparse import csr_matrix\nimport sympy"
STEPS: list[dict[str, Any]] = [
    {
        "step_number": "901.1",
        "function_header": "def scale(x):\n    '''Twice x.'''",
        "test_cases": [
            "x = np.array([1.0, 2.0])\nassert np.allclose(scale(x), target)",
            "assert np.allclose(scale(x + 1), target)",
        ],
    },
    {
        "step_number": "901.2",
        "function_header": "def summary(x):\n    '''Sum and largest of twice x.'''",
        "test_cases": [
            "from scicode.compare.cmp import cmp_tuple_or_list\nassert cmp_tuple_or_list(summary(np.arange(3.0)), target)"
        ],
    },
    {
        "step_number": "901.3",
        "function_header": "def table(n):\n    '''Values by name.'''",
        "test_cases": [
            "from scicode.compare.cmp import are_dicts_close\nassert are_dicts_close(table(2), target)",
            "a, b = target\nassert a == table(2)['n'] and np.allclose(table(3)['m'].toarray(), b)",
            "assert (table(1)['n'] > 0) == target",
        ],
    },
    {"step_number": "901.4", "function_header": "def unchecked():\n    '''Without tests.'''", "test_cases": []},
]
GOOD = (
    "def scale(x):\n    return np.asarray(x) * 2\n",
    "def summary(x):\n    y = scale(x)\n    return float(y.sum()), float(y.max())\n",
    "def table(n):\n    return {sympy.Symbol('n'): n, 'n': n, 'm': csr_matrix(np.eye(n))}\n"
    "def symbols(n):\n    return {sympy.Symbol('n'): n}\n",
    "def unchecked():\n    return None\n",
)
ROW = {"problem_id": "901", "required_dependencies": DEPENDENCIES, "sub_steps": STEPS}


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Targets in upstream's layout, with a sparse matrix in a dictionary and values of several kinds."""
    path = tmp_path_factory.mktemp("targets") / "test_data.h5"
    with h5py.File(path, "w") as file:
        file["901.1/test1/var1"] = np.array([2.0, 4.0])
        file["901.1/test2/var1"] = np.array([4.0, 6.0])
        file["901.2/test1/var1"], file["901.2/test1/var2"] = 6.0, 4.0
        file["901.3/test1/var1/n"] = 2
        matrix = file.create_group("901.3/test1/var1/m/sparse_matrix")
        for name, values in {"data": [1.0, 1.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}.items():
            matrix[name] = np.array(values)
        file["901.3/test2/var1"], file["901.3/test2/var2"] = 2, np.eye(3)
        file["901.3/test3/var1"] = True
        file["999.1/test1/var1"] = SECRET
    return path


async def fetch(_name: str) -> bytes:
    raise AssertionError("the row is in the case")


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    """Sandboxes that wait, for most tests of this file."""
    made = Workshop(fetch, 1)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    """The workshop keeps sandboxes between the tests of this file; `alone` looks after it."""


@pytest.fixture
def quiet(workshop: Workshop) -> None:
    """The workshop has started all sandboxes that it wants: what comes now is another's."""
    until(lambda: all(pool._waiting.qsize() >= pool._size for pool in workshop._pools.values()))


@pytest.fixture
def graded(targets: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Grades answers to the problem's steps in bubblewrap."""
    monkeypatch.setenv("SR_BENCH_SANDBOX", "bwrap")
    monkeypatch.setenv("SR_BENCH_SANDBOX_PYTHON", PYTHON)
    monkeypatch.setenv(step_targets.VARIABLE, str(targets))
    monkeypatch.setattr(scicode, "VALUE_BYTES", 4 << 20)

    async def grade(steps: Sequence[str], **options: Any) -> Grading:
        options = {step_targets.OPTION: step_targets.file_sha256(targets), "test_timeout_s": LONG_S} | options
        case = Case(case_id="scicode/901", metadata={"source_record": ROW}, options=options)
        parts = tuple(f"```python\n{step}```" for step in steps)
        return await scicode.run(Submission(text=parts[-1], parts=parts), case, workshop)

    return grade


def changed(place: int, code: str) -> list[str]:
    return [*GOOD[:place], code, *GOOD[place + 1 :]]


def statuses(grading: Grading) -> list[str]:
    steps: Any = grading.details["steps"]
    return [step["status"] for step in steps]


async def test_right_steps_pass_and_one_wrong_step_makes_the_problem_wrong(graded: Any) -> None:
    table = "def table(n):\n    return {'n': n, 'm': csr_matrix(np.eye(n))}\n"
    right = await graded(changed(2, table))
    assert (right.correct, statuses(right)) == (True, ["passed"] * 4)
    wrong = await graded([*changed(1, "def summary(x):\n    return 6.0, 5.0\n")[:2], table, GOOD[3]])
    assert (wrong.correct, wrong.details["steps_passed"]) == (False, 3)
    assert statuses(wrong) == ["passed", "wrong_answer", "passed", "passed"]
    # A symbol as a key counts by its name, as upstream has it; here it meets the key of that name.
    assert statuses(await graded(GOOD))[2] == "passed"


@pytest.mark.parametrize(
    ("label", "code", "status"),
    [
        ("wrong value", "def scale(x):\n    return x * 3\n", "wrong_answer"),
        ("wrong in the second test alone", "def scale(x):\n    return x * 2 if x[0] == 1 else x\n", "wrong_answer"),
        ("no function", "y = 1\n", "runtime_error"),
        ("raises", "def scale(x):\n    raise ValueError\n", "runtime_error"),
        ("no Python", "def scale(x:\n", "compile_error"),
        ("leaves at once", "raise SystemExit(0)\n", "runtime_error"),
        ("leaves for good", "import os\nos._exit(0)\n", "runtime_error"),
        ("leaves in a test", "import os\ndef scale(x):\n    os._exit(0)\n", "runtime_error"),
        ("never ends", "def scale(x):\n    while True: pass\n", "time_limit"),
        ("equal to all", "class Y:\n    def __eq__(self, o): return True\ndef scale(x):\n    return Y()\n", "wrong_answer"),
        (
            "an array that is close to all",
            "class Y(np.ndarray):\n    def __array_function__(self, *a, **k): return True\n"
            "    def __array_ufunc__(self, *a, **k): return np.array(True)\n"
            "def scale(x):\n    return np.zeros(2).view(Y)\n",
            "wrong_answer",
        ),
        ("everything is close", "np.allclose = lambda *a, **k: True\ndef scale(x):\n    return 0\n", "wrong_answer"),
        ("own words to the grader", "import os\nfor n in range(3, 64):\n"
         "  try: os.write(n, b'[[\"plain\",true]]\\n' * 2)\n  except OSError: pass\ndef scale(x):\n    return 0\n",
         "runtime_error"),
        ("keeps nothing", "_srbench.keep = lambda v: None\ndef scale(x):\n    return 0\n", "wrong_answer"),
        ("without end", "def scale(x):\n    y = []\n    y.append(y)\n    return y\n", "runtime_error"),
        ("shapes that blow up", "def scale(x):\n    return np.zeros((100_000, 1, 1))\n", "wrong_answer"),
        ("too large", "def scale(x):\n    return np.zeros(2_000_000)\n", "output_limit"),
    ],
)  # fmt: skip
async def test_steps_that_are_wrong_or_cheat_do_not_pass(graded: Any, label: str, code: str, status: str) -> None:
    # Only a program that never ends is to meet its time; the others have as much as a busy machine may want.
    grading = await graded(changed(0, code), test_timeout_s=3 if status == "time_limit" else LONG_S)
    assert grading.correct is False, label
    assert statuses(grading)[0] == status, grading.details


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (1, "def summary(x):\n    return np.array([]), np.array([])\n"),
        (1, "def summary(x):\n    return [], np.zeros((0, 1))\n"),
    ],
)
async def test_nothing_at_all_is_close_to_no_number(graded: Any, place: int, code: str) -> None:
    """NumPy broadcasts a number to an empty array, and finds all of nothing close."""
    grading = await graded(changed(place, code))
    assert statuses(grading)[place] == "wrong_answer", grading.details


async def test_no_program_can_find_a_target(graded: Any, targets: Path) -> None:
    """What a program could read is searched for a number that only the file of targets holds, and for the file itself."""
    code = (
        "import glob, os, struct\n"
        f"needle = struct.pack('<d', {int(SECRET)} + {SECRET - int(SECRET)!r})\n"
        "def scale(x):\n    found = []\n"
        "    for path in glob.glob('/proc/[0-9]*/*') + glob.glob('/tmp/**', recursive=True) + glob.glob('/proc/*/fd/*'):\n"
        "        try: found.append(os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 1 << 22))\n"
        "        except OSError: pass\n"
        f"    seen = needle in b''.join(found) or os.path.exists('{targets}') or b'HD' + b'F' in b''.join(found)\n"
        "    return np.asarray(x) * 2 if not seen else 'seen'\n"
    )
    assert statuses(await graded(changed(0, code), test_timeout_s=LONG_S))[0] == "passed"


async def test_data_that_is_not_what_the_plan_names_fails_grading(graded: Any) -> None:
    with pytest.raises(SrBenchError) as caught:
        await graded(GOOD, test_data_sha256="0" * 64)
    assert caught.value.reason == "BAD_TEST_DATA"


@pytest.mark.usefixtures("quiet")
async def test_a_sandbox_without_libraries_is_no_wrong_answer(targets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SR_BENCH_SANDBOX", "bwrap")
    monkeypatch.setenv("SR_BENCH_SANDBOX_PYTHON", "/usr/bin/python3")
    with pytest.raises(SrBenchError) as caught:
        await alone(targets, monkeypatch, GOOD)
    assert caught.value.reason == "NO_LIBRARIES"


async def test_time_that_runs_out_is_no_wrong_answer(graded: Any) -> None:
    grading = await graded(changed(0, "import time\ntime.sleep(1.5)\n" + GOOD[0]), grade_timeout_s=1)
    assert (grading.correct, grading.failure_reason) == (None, "GRADE_TIMEOUT")


@pytest.mark.usefixtures("quiet")
async def test_the_image_that_setup_builds_grades_alike(
    targets: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SR_BENCH_SANDBOX", "docker")
    monkeypatch.setenv("SR_BENCH_SANDBOX_IMAGE", build.build(build.BASE, tmp_path))
    grading = await alone(targets, monkeypatch, changed(0, "def scale(x):\n    return x * 3\n"))
    assert statuses(grading) == ["wrong_answer", "wrong_answer", "passed", "passed"]


async def alone(targets: Path, monkeypatch: pytest.MonkeyPatch, steps: Sequence[str]) -> Grading:
    """Grades in a workshop of its own, which leaves nothing."""
    monkeypatch.setenv(step_targets.VARIABLE, str(targets))
    options: Any = {step_targets.OPTION: step_targets.file_sha256(targets)}
    case = Case(case_id="scicode/901", metadata={"source_record": ROW}, options=options)
    parts = tuple(f"```python\n{step}```" for step in steps)
    workshop, before = Workshop(fetch, 1), leftovers()
    try:
        return await scicode.run(Submission(text=parts[-1], parts=parts), case, workshop)
    finally:
        workshop.close()
        until_gone(before)
