"""Solutions on their tests in a real sandbox: what passes, what fails and why, and that nothing hidden gets inside."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from srbench_grader import solutions
from srbench_grader.code_blocks import program_in
from srbench_grader.hidden_tests import IoTest, IoTests, io_tests
from srbench_grader.pool import WarmPool
from srbench_grader.sandbox.limits import MIB, Limits
from srbench_grader.sandbox.session import Session
from srbench_grader.sandbox.values import Program, Sandbox
from srbench_grader.solutions import Solved, solve
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.packed_tests import hidden_part
from srbench_kit.values import to_value

STDIN = IoTests(tests=(IoTest("3\n", "9\n"), IoTest("4\n", "16\n")))
CALL = IoTests(tests=(IoTest("3", "9"), IoTest("4", "16")), function="square")
SHARED = Path(os.environ.get("SR_BENCH_CASES", "../shared/cases")).parent / "data" / "livecodebench" / "synthetic"


@pytest.fixture(scope="module")
def pool(bwrap: Sandbox) -> Iterator[WarmPool]:
    """Two sandboxes that wait."""
    pool = WarmPool(lambda: solutions.ready_runner(bwrap, 1024 * MIB), 2)
    yield pool
    pool.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    """The pool keeps sandboxes between the tests of this file; `test_a_closed_pool_leaves_nothing` looks after it."""


# What ends by itself has as long as a busy machine may want; only what never ends is to meet its time.
LONG_S, SHORT_S = 60.0, 2.0


def graded(pool: WarmPool, code: str, tests: IoTests, timeout_s: float = LONG_S) -> Solved:
    session = pool.take()
    try:
        return solve(session, code, tests, test_timeout_s=timeout_s, grade_timeout_s=300)
    finally:
        session.close()


@pytest.mark.parametrize(
    "code",
    [
        "print(int(input()) ** 2)",
        "import sys\nfor line in sys.stdin: print(int(line) ** 2.0)",
        "import sys\nn = int(sys.stdin.buffer.readline())\nsys.stdout.write(str(n * n))",
        "n = int(open(0).read())\nprint(n * n)",
        "import sys\ndef main():\n    print(int(input()) ** 2)\n    sys.exit(0)\nif __name__ == '__main__':\n    main()",
        "import os\nn = int(input())\nprint(n * n, flush=True)\nos._exit(0)",
        "import atexit, os\nn = int(input())\natexit.register(lambda: os.write(1, str(n * n).encode()))",
        "import threading\ndef f(): print(int(input()) ** 2)\nthreading.Thread(target=f).start()",
        "import sys\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(20000) - 20000 + int(input()) ** 2)",
        "print(reduce(lambda a, b: a * b, [int(input())] * 2))",
        "d = Counter()\nd['x'] += int(input()) ** 2\nprint(d['x'])",
        "import io, sys\nsys.stdout = io.StringIO()\nprint(int(input()) ** 2)\nsys.__stdout__.write(sys.stdout.getvalue())",
        "import sys\nprint(int(input()) ** 2)\nsys.stdout.close()",
        "import os\nassert os.path.isabs(__file__)\nprint(int(input()) ** 2)",
    ],
)
def test_programs_that_print_the_answer_pass(pool: WarmPool, code: str) -> None:
    assert graded(pool, code, STDIN) == Solved(passed=True, status="passed", tests_passed=2, test_count=2)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print(int(input()) * 3)", "wrong_answer"),
        ("", "wrong_answer"),
        ("1 / 0", "runtime_error"),
        ("print(int(input()) ** 2)\nraise ValueError", "runtime_error"),
        ("print(9", "compile_error"),
        ("import time\ntime.sleep(30)", "time_limit"),
        ("while True: pass", "time_limit"),
        ("while True: print('x' * 10000)", "output_limit"),
        ("import sys\nprint(9)\nwhile True: sys.stderr.write('e' * 10000)", "output_limit"),
        ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "time_limit"),
        ("import os\nos.kill(os.getppid(), 9)\nprint(9)", "runtime_error"),
        ("import os, signal\nos.kill(-1, 9)", "runtime_error"),
        ("import os\nos.write(1, b'\\xff\\xfe')", "wrong_answer"),
    ],
)
def test_programs_that_do_anything_else_fail_with_a_reason(pool: WarmPool, code: str, status: str) -> None:
    solved = graded(pool, code, STDIN, timeout_s=SHORT_S if status == "time_limit" else LONG_S)
    assert (solved.passed, solved.status) == (False, status)


def test_a_program_that_wants_too_much_memory_does_not_pass(pool: WarmPool) -> None:
    code = "x = bytearray(3 << 30)\nprint(int(input()) ** 2)"
    assert graded(pool, code, STDIN).status in ("runtime_error", "time_limit")


@pytest.mark.parametrize(
    "code",
    [
        "def square(n): return n * n",
        "class Solution:\n    def square(self, n: int) -> int:\n        return n * n",
        "class Solution:\n    def square(self, n: List[int]) -> Optional[int]:\n        print('!')\n        return n * n",
        "class Answer(int): pass\ndef square(n): return Answer(n * n)",
        "from decimal import Decimal\ndef square(n): return Decimal(n) * n",
        "from fractions import Fraction\ndef square(n): return Fraction(2 * n * n, 2)",
        "def square(n): return complex(n * n, 0)",
    ],
)
def test_functions_that_return_the_answer_pass(pool: WarmPool, code: str) -> None:
    assert graded(pool, code, CALL).passed


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("fake report", 'import os\nprint(\'{"passed": true, "tests": 2, "failed": 0}\', flush=True)\nos._exit(0)'),
        ("early exit", "raise SystemExit(0)"),
        (
            "equal to anything",
            "class Y(int):\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n"
            "    def __int__(self): return 9\n    def __repr__(self): return '9'\ndef square(n): return Y(0)",
        ),
        ("equal object", "class Y:\n    def __eq__(self, o): return True\ndef square(n): return Y()"),
        ("wrong type", "def square(n): return str(n * n)"),
        ("tuple", "def square(n): return (n * n,)"),
        ("no real number", "def square(n): return complex(n * n, 1)"),
        ("no float", "from decimal import Decimal\ndef square(n): return n * n + Decimal('1e-9')"),
        ("missing", "def cube(n): return n ** 3"),
        (
            "frames of its own",
            'import os\nfor fd in range(3, 64):\n  try: os.write(fd, b\'2 {"status":"ok"}\\n99\')\n  except OSError: pass\n'
            "def square(n): return 0",
        ),
        ("patched json", "import json\njson.dumps = lambda *a, **k: '9'\ndef square(n): return 0"),
        ("infinite list", "x = []\nx.append(x)\ndef square(n): return x"),
    ],
)
def test_functions_that_cheat_or_fail_do_not_pass(pool: WarmPool, label: str, code: str) -> None:
    solved = graded(pool, code, CALL)
    assert not solved.passed
    assert solved.tests_passed < 2


DIGITS = "7" * 6000


@pytest.mark.parametrize(
    ("code", "test", "function"),
    [
        ("print(int(input()))", IoTest(f"{DIGITS}\n", DIGITS), ""),
        ("def same(n): return n", IoTest(DIGITS, DIGITS), "same"),
        ("def same(n): return [n]", IoTest(DIGITS, f"[{DIGITS}]"), "same"),
    ],
)
def test_whole_numbers_may_be_as_long_as_upstream_allows(pool: WarmPool, code: str, test: IoTest, function: str) -> None:
    assert graded(pool, code, IoTests(tests=(test,), function=function)).passed


def test_an_input_that_is_no_json_is_a_failure_to_grade(pool: WarmPool) -> None:
    with pytest.raises(InvalidInput) as caught:
        graded(pool, "def same(n): return n", IoTests(tests=(IoTest("one", "1"),), function="same"))
    assert caught.value.reason == "BAD_TESTS"


def test_tuples_count_as_lists_at_the_top_and_nowhere_else(pool: WarmPool) -> None:
    tests = IoTests(tests=(IoTest("3", "[3, 9]"),), function="f")
    assert graded(pool, "def f(n): return n, n * n", tests).passed
    nested = IoTests(tests=(IoTest("3", "[[3, 9]]"),), function="f")
    assert not graded(pool, "def f(n): return [(n, n * n)]", nested).passed


def test_a_program_sees_no_expected_output_and_no_other_test(pool: WarmPool) -> None:
    secret = "271828182845"
    tests = IoTests(tests=(IoTest("look\n", "nothing"), IoTest(f"{secret}\n", secret)))
    code = (
        "import glob, os\nfound = []\nfor path in glob.glob('/proc/[0-9]*/*') + glob.glob('/tmp/**', recursive=True):\n"
        "    try: found.append(open(path, 'rb').read(1 << 20))\n    except OSError: pass\n"
        "found.append(repr(os.environ).encode())\nprint('found' if b'2718' + b'28182845' in b''.join(found) else 'nothing')"
    )
    assert graded(pool, code, tests).tests_passed == 1


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("First idea:\n```python\nprint(int(input())*3+1)\n```\nFinal:\n```python\nprint(int(input())**2)\n```\n", True),
        ("```Python\r\nprint(int(input())**2)\r\n```\r\n", True),
        ("```python\nprint(int(input())**2)\n```\nThis squares the input.\n```\n", True),
        ("Use n squared.", False),
    ],
)
def test_answers_in_all_spellings_of_fences(pool: WarmPool, text: str, passed: bool) -> None:
    code = program_in(text)
    assert (code is not None and graded(pool, code, IoTests(tests=(IoTest("3\n", "9\n"),))).passed) is passed


@dataclass(frozen=True)
class Swapping:
    """Starts `text` where another program was asked for. The pool's own thread goes on starting what it should."""

    sandbox: Sandbox
    text: str

    def start(self, program: Program, limits: Limits) -> Session:
        return self.sandbox.start(replace(program, python=("-I", "-c", self.text)), limits)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.stderr.write('no room')\nraise SystemExit(3)", "exit code 3: no room"),
        ("raise SystemExit(3)", "exit code 3: no message"),
    ],
)
def test_a_runner_that_cannot_start_is_no_wrong_answer_and_says_why(bwrap: Sandbox, text: str, said: str) -> None:
    with pytest.raises(Unreachable, match=said) as caught:
        solutions.ready_runner(cast("Sandbox", Swapping(bwrap, text)), 256 * MIB)
    assert caught.value.reason == "SANDBOX_FAILED"


def test_a_runner_that_says_nothing_is_ended_and_what_it_told_of_itself_is_said(bwrap: Sandbox) -> None:
    text = "import sys, time\nprint('waits', file=sys.stderr, flush=True)\ntime.sleep(600)"
    session = solutions.start_runner(cast("Sandbox", Swapping(bwrap, text)), 256 * MIB)
    try:
        assert select.select([session._err], [], [], 60)[0], "it has told why it waits"
        with pytest.raises(Unreachable, match="ended for its silence: waits") as caught:
            solutions.wait_ready(session, 0.2)
        assert caught.value.reason == "SANDBOX_FAILED"
    finally:
        session.close()


OVERTAKEN = """
import sys, time
def say(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
say(b'0 {"status":"ready"}\\n')
for line in sys.stdin:
    say(%r if '"op": "load"' in line else %r)
time.sleep(30)
"""
FINE = b'0 {"status":"ok"}\n'
DEEP, HALF = b"0 " + b"[" * 8000 + b"\n", b'0 {"status":"error","message":"\\ud800"}\n'


@pytest.mark.parametrize(
    ("load", "test"),
    [
        (DEEP, FINE),
        (HALF, FINE),
        (FINE, DEEP),
        (FINE, HALF),
        (FINE, b'0 {"status":["ok"],"message":{"a":1}}\n'),
        (FINE, b'0 {"status":' + b"9" * 6000 + b"}\n"),
        (FINE, b'99999999999999 {"status":"ok"}\n'),
        (FINE, b'-5 {"status":"ok"}\n'),
        (FINE, b'5 {"status":"ok"}\nsNaN\n'),
        (FINE, b'3 {"status":"ok"}\n\xff\xfe\n'),
        (FINE, b'0 {"status":"ok"}' * 1000),
        (FINE, b""),
    ],
)
def test_a_program_that_has_taken_its_runner_over_is_wrong_and_nothing_worse(
    bwrap: Sandbox, monkeypatch: pytest.MonkeyPatch, load: bytes, test: bytes
) -> None:
    """Whatever comes out of a sandbox in the runner's place is a verdict that can be told, never a failure to grade."""
    monkeypatch.setattr(solutions, "runner_source", lambda: OVERTAKEN % (load, test))
    session = solutions.ready_runner(bwrap, 256 * MIB)
    try:
        found = solve(session, "print(1)", STDIN, test_timeout_s=1, grade_timeout_s=300)
    finally:
        session.close()
    assert not found.passed
    to_value({"status": found.status, "message": found.message}).SerializeToString()


def test_a_pool_hands_out_each_sandbox_once_and_leaves_nothing(bwrap: Sandbox) -> None:
    pool = WarmPool(lambda: solutions.ready_runner(bwrap, 256 * MIB), 1)
    taken = [pool.take() for _ in range(3)]
    assert len({id(session) for session in taken}) == 3
    assert all(session.alive for session in taken)
    pool.close()
    for session in taken:
        session.close()
        assert not session.alive


def test_the_docker_backend_grades_alike(sandbox: Sandbox) -> None:
    session = solutions.ready_runner(sandbox, 512 * MIB)
    try:
        assert solve(session, "print(int(input()) ** 2)", STDIN, test_timeout_s=LONG_S, grade_timeout_s=300).passed
    finally:
        session.close()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the larger synthetic set is not beside this checkout")
def test_right_programs_of_the_synthetic_set_pass_and_wrong_ones_fail(pool: WarmPool) -> None:
    names = ["test.jsonl", *(f"test{number}.jsonl" for number in range(2, 7))]
    rows = [json.loads(line) for name in names for line in (SHARED / name).read_text().splitlines()]
    programs = {row["question_id"]: row for row in map(json.loads, (SHARED / "solutions.jsonl").read_text().splitlines())}
    for row in rows[::6]:
        tests = io_tests(hidden_part(row), row["question_id"])
        known = programs[row["question_id"]]
        assert graded(pool, known["correct"], tests).passed, row["question_id"]
        assert graded(pool, known["incorrect"], tests).status in ("wrong_answer", "runtime_error"), row["question_id"]
