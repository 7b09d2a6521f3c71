"""Runs one solution on its tests in a sandbox and compares outside of it. Blocking; called from threads."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from srbench_kit.errors import InvalidInput, Unreachable

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


def ready_runner(sandbox: Sandbox, memory_bytes: int, ready_s: float = READY_S) -> Session:
    """As `start_runner`, with a runner that takes requests already, within `ready_s` seconds.

    Raises: `Unreachable` (`SANDBOX_FAILED`).
    """
    session = start_runner(sandbox, memory_bytes)
    try:
        wait_ready(session, ready_s)
    except Unreachable:
        session.close()
        raise
    return session


def wait_ready(session: Session, ready_s: float) -> None:
    """Waits until the runner in `session` takes requests. Raises: `Unreachable` (`SANDBOX_FAILED`)."""
    try:
        _ask(session, b"", 0, ready_s)
    except SandboxEnded as error:
        said = f"{error.message}; {session.last_words()}"
        raise Unreachable("SANDBOX_FAILED", f"the sandbox's runner did not start: {said}") from error


def solve(session: Session, code: str, tests: IoTests, *, test_timeout_s: float, grade_timeout_s: float) -> Solved:
    """Runs `code` on all `tests` in a ready `session`, to the first failure; the session is to be closed afterwards."""
    deadline = time.monotonic() + grade_timeout_s
    count = len(tests.tests)
    problem = load(session, code, function=tests.function)
    if problem is not None:
        return Solved(passed=False, status="compile_error", tests_passed=0, test_count=count, message=problem)
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
    asked["input"] = _arguments(test.input) if function else test.input
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


def _arguments(text: str) -> str:
    """The arguments of a call, a JSON value a line in `text`, as one JSON list; numbers stay as they are written.

    Raises: `InvalidInput` (`BAD_TESTS`).
    """
    lines = text.split("\n")
    try:
        for line in lines:
            json.loads(line, parse_int=str)
    except ValueError:
        raise InvalidInput("BAD_TESTS", "the input of a call is not one JSON value a line") from None
    return f"[{','.join(lines)}]"


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


def load(session: Session, code: str, *, function: str = "", bare: bool = False, imports: Sequence[str] = ()) -> str | None:
    """Gives a program to the runner in `session`; what is wrong with it, or `None`.

    Args:
        bare: the program finds no names but its own; else those that programs for contests take for granted.
        imports: modules to import before the program runs; those that are missing are the program's own matter.
    """
    asked = {"op": "load", "code": code, "function": function, "bare": bare, "imports": list(imports)}
    try:
        said, _ = _ask(session, json.dumps(asked).encode() + b"\n", 0, READY_S)
    except SandboxEnded as error:
        return error.message
    return None if said.get("status") == "ok" else _text(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of a whole program. Attributes: `status` as in `Solved`, `ok` when it came to a good end."""

    status: str
    output: bytes = b""
    message: str = ""


def run(session: Session, text: str, *, timeout_s: float, most_bytes: int) -> Ran:
    """Runs the loaded program on the standard input `text`; what it wrote, or why it came to no good end."""
    asked = {"op": "test", "timeout_s": timeout_s, "output_bytes": most_bytes, "input": text}
    try:
        said, output = _ask(session, json.dumps(asked).encode() + b"\n", most_bytes, timeout_s + GRACE_S)
    except SandboxEnded as error:
        return Ran(status=_ENDS[error.end], message=error.message)
    status = str(said.get("status"))
    if status == "ok":
        return Ran(status="ok", output=output)
    return Ran(status=_STATUS.get(status, "runtime_error"), output=output, message=_text(said))


def _ask(session: Session, request: bytes, most: int, timeout_s: float) -> tuple[dict[str, Any], bytes]:
    line, payload = session.exchange(request, header_bytes=HEADER_BYTES, most_bytes=most, timeout_s=timeout_s)
    try:
        said = json.loads(line.split(b" ", 1)[1])
    except (IndexError, ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise SandboxEnded("exited", "the program wrote something else than its runner would")
    return said, payload


def _text(said: dict[str, Any]) -> str:
    # Whatever took the runner over may write halves of characters, which no message of ours can carry.
    return str(said.get("message", ""))[:500].encode("utf-8", "replace").decode()
