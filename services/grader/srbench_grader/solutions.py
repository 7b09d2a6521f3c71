"""Runs one solution on its tests in a sandbox and compares outside of it. Blocking; called from threads."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from importlib import resources
from typing import Any

from srbench_kit.errors import Unreachable

from srbench_grader.comparing import same_output, same_value
from srbench_grader.hidden_tests import IoTest, IoTests
from srbench_grader.sandbox.limits import MIB, Limits
from srbench_grader.sandbox.session import SandboxEnded, Session
from srbench_grader.sandbox.values import Program, Sandbox

HEADER_BYTES = 8192
READY_S = 60.0
# Reads of an output stop here unless the expected one is longer; a power of two, so that it tells nothing of that length.
OUTPUT_BYTES = 16 * MIB
# A runner that is not slowed down says within this time that a test took too long.
GRACE_S = 2.0
LIFE_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What became of a solution.

    Attributes:
        passed: whether all tests passed.
        status: `passed`, or why the first failing test failed: `wrong_answer`, `time_limit`, `runtime_error`,
            `output_limit`, `compile_error`, `grade_time_limit`.
        test: the failing test's position, from 0; `None` without one.
        message: what the program wrote to standard error at its end; never an expected output.
    """

    passed: bool
    status: str
    tests_passed: int
    test_count: int
    test: int | None = None
    message: str = ""


def runner_source() -> str:
    """The text of the program that runs solutions inside."""
    return (resources.files("srbench_grader.sandbox") / "runner.py").read_text()


def start_runner(sandbox: Sandbox, memory_bytes: int) -> Session:
    """A sandbox with a runner that waits for a solution.

    Raises: `Unreachable` (`SANDBOX_FAILED`).
    """
    limits = Limits(wall_s=LIFE_S, memory_bytes=memory_bytes, output_bytes=1024 * MIB)
    return sandbox.start(Program(python=("-I", "-c", runner_source())), limits)


def ready_runner(sandbox: Sandbox, memory_bytes: int) -> Session:
    """As `start_runner`, with a runner that takes requests already. Raises: `Unreachable` (`SANDBOX_FAILED`)."""
    session = start_runner(sandbox, memory_bytes)
    try:
        wait_ready(session)
    except Unreachable:
        session.close()
        raise
    return session


def wait_ready(session: Session) -> None:
    """Waits until the runner in `session` takes requests. Raises: `Unreachable` (`SANDBOX_FAILED`)."""
    try:
        _ask(session, b"", 0, READY_S)
    except SandboxEnded as error:
        said = session.stderr.strip()[-300:]
        raise Unreachable("SANDBOX_FAILED", f"the sandbox's runner did not start: {said or error.message}") from error


def solve(session: Session, code: str, tests: IoTests, *, test_timeout_s: float, grade_timeout_s: float) -> Solved:
    """Runs `code` on all `tests` in a ready `session`, to the first failure; the session is to be closed afterwards."""
    deadline = time.monotonic() + grade_timeout_s
    count = len(tests.tests)
    try:
        said, _ = _ask(session, _load(code, tests.function), 0, READY_S)
        if said.get("status") != "ok":
            return Solved(passed=False, status="compile_error", tests_passed=0, test_count=count, message=_text(said))
    except SandboxEnded as error:
        return Solved(passed=False, status="compile_error", tests_passed=0, test_count=count, message=error.message)
    for place, test in enumerate(tests.tests):
        if time.monotonic() > deadline:
            status, message = "grade_time_limit", f"the tests together took more than {grade_timeout_s:g} s"
        else:
            status, message = _one(session, test, tests.function, test_timeout_s)
        if status != "passed":
            return Solved(passed=False, status=status, tests_passed=place, test_count=count, test=place, message=message)
    return Solved(passed=True, status="passed", tests_passed=count, test_count=count)


_STATUS = {"timeout": "time_limit", "output": "output_limit", "odd": "wrong_answer", "error": "runtime_error"}
_ENDS = {"timeout": "time_limit", "output_limit": "output_limit", "exited": "runtime_error"}


def _one(session: Session, test: IoTest, function: str, timeout_s: float) -> tuple[str, str]:
    most = _room(len(test.output))
    asked: dict[str, Any] = {"op": "test", "timeout_s": timeout_s, "output_bytes": most}
    asked["input"] = [json.loads(line) for line in test.input.split("\n")] if function else test.input
    try:
        said, output = _ask(session, json.dumps(asked).encode() + b"\n", most, timeout_s + GRACE_S)
    except SandboxEnded as error:
        return _ENDS[error.end], error.message
    status = str(said.get("status"))
    if status != "ok":
        return _STATUS.get(status, "runtime_error"), _text(said)
    if function:
        good = same_value(output, test.output)
    else:
        good = same_output(output.decode("utf-8", "surrogatepass" if _is_utf8(output) else "replace"), test.output)
    return ("passed", "") if good else ("wrong_answer", "")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _room(expected_chars: int) -> int:
    most = OUTPUT_BYTES
    while most < 8 * expected_chars:
        most *= 2
    return most


def _load(code: str, function: str) -> bytes:
    return json.dumps({"op": "load", "code": code, "function": function}).encode() + b"\n"


def _ask(session: Session, request: bytes, most: int, timeout_s: float) -> tuple[dict[str, Any], bytes]:
    line, payload = session.exchange(request, header_bytes=HEADER_BYTES, most_bytes=most, timeout_s=timeout_s)
    try:
        said = json.loads(line.split(b" ", 1)[1])
    except (IndexError, ValueError):
        said = None
    if not isinstance(said, dict):
        raise SandboxEnded("exited", "the program wrote something else than its runner would")
    return said, payload


def _text(said: dict[str, Any]) -> str:
    return str(said.get("message", ""))[:500]
