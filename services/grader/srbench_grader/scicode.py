"""Judges problems in steps by running their functions on each step's tests. A problem is right when every step is.

Two sandboxes take part: one runs the answers and hands values out, the other, which no answer ever enters, compares them
with the targets. See `step_splitting`.
"""

from __future__ import annotations

import ast
import base64
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources

from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.step_tests import Step, StepTests, hidden_part, step_tests
from srbench_kit.values import Json

from srbench_grader import solutions, step_targets
from srbench_grader.code import MAX_KEPT_CHARS, MOST_GRADE_S, seconds
from srbench_grader.grading import PARSED, UNPARSED, Case, Grader, Grading, Submission
from srbench_grader.sandbox.limits import MIB
from srbench_grader.sandbox.session import Session
from srbench_grader.step_code import step_code
from srbench_grader.step_splitting import SplitTest, split
from srbench_grader.workshop import Workshop

VERSION = "sr-bench-steps-v3"
STEP_TIMEOUT_S = 60.0
LEAST_GRADE_S = 300.0
# All values that the tests of one step take out of a program.
VALUE_BYTES = 256 * MIB
COMPARE_S = 120.0
PROBLEM_BYTES = 4096
_COMPARING = ("numpy", "scipy.sparse", "sympy", "h5py")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What became of a step: `passed`, or a reason; which test failed, from 0; what the program wrote at its end."""

    status: str
    test: int | None = None
    message: str = ""


@dataclass(slots=True, kw_only=True)
class _Work:
    """All that grading one answer takes; `deadline` by `time.monotonic`."""

    code: list[str]
    tests: StepTests
    splits: list[tuple[SplitTest, ...]]
    targets: dict[str, bytes]
    step_s: float
    deadline: float
    session: Callable[[], Session]
    sessions: dict[str, Session] = field(default_factory=dict)


async def run(submission: Submission, case: Case, workshop: Workshop) -> Grading:
    """Judges the programs in the answers to all steps.

    Raises: `InvalidInput` (`BAD_TESTS`, `BAD_OPTION`), `NotFound` (`NO_HIDDEN_TESTS`, `NO_TEST_DATA`), `DataLoss`
    (`BAD_TEST_DATA`), `Unreachable` (`NO_SANDBOX`, `SANDBOX_FAILED`, `NO_LIBRARIES`): never wrong answers.
    """
    tests = step_tests(await workshop.hidden(case, hidden_part), case.case_id)
    if len(submission.parts) != len(tests.steps):
        message = f"{case.case_id} has {len(tests.steps)} steps, and {len(submission.parts)} answers came"
        raise InvalidInput("BAD_TESTS", message)
    told = zip(submission.parts, tests.steps, strict=True)
    code = [await workshop.apart.read(step_code, text, step.header) for text, step in told]
    step_s = seconds(case.options, "test_timeout_s", STEP_TIMEOUT_S)
    usual_s = min(max((step_s + 5) * len(tests.steps), LEAST_GRADE_S), MOST_GRADE_S)
    grade_s = seconds(case.options, "grade_timeout_s", usual_s)

    def work() -> tuple[list[StepResult], str]:
        file = step_targets.verified(case.options)
        found = _Work(
            code=code,
            tests=tests,
            splits=_splits(tests, case.case_id),
            targets=step_targets.extracts(file, [step.number for step in tests.steps if step.tests]),
            step_s=step_s,
            deadline=time.monotonic() + grade_s,
            session=lambda: workshop.ready_session(case.options),
        )
        return _graded(found), workshop.sandbox(case.options).identity

    results, identity = await workshop.work(work)
    return _grading(results, code, tests, identity, grade_s)


def _splits(tests: StepTests, where: str) -> list[tuple[SplitTest, ...]]:
    return [
        tuple(split(test, f"test {place} of step {step.number} of {where}") for place, test in enumerate(step.tests))
        for step in tests.steps
    ]


def _grading(
    results: Sequence[StepResult], code: Sequence[str], tests: StepTests, identity: str, grade_s: float
) -> Grading:
    """The grade that the steps make, with what became of each of them."""
    passed = sum(result.status == "passed" for result in results)
    steps: list[Json] = [_told(step, result) for step, result in zip(tests.steps, results, strict=False)]
    details: dict[str, Json] = {
        "steps_passed": passed,
        "steps_total": len(tests.steps),
        "steps": steps,
        "sandbox": identity,
    }
    if passed == len(results) < len(tests.steps):
        message = f"the tests of all steps together took more than {grade_s:g} s"
        reason = "GRADE_TIMEOUT"
        return Grading(correct=None, status=PARSED, details=details, failure_reason=reason, failure_message=message)
    whole = "\n\n".join(part for part in code if part)
    status = PARSED if whole else UNPARSED
    return Grading(
        correct=passed == len(tests.steps), status=status, extracted=whole[:MAX_KEPT_CHARS] or None, details=details
    )


def _told(step: Step, result: StepResult) -> Json:
    told: dict[str, Json] = {"step": step.number, "status": result.status}
    if result.test is not None:
        told["test"] = result.test
    if result.message:
        told["message"] = result.message
    return told


def _graded(work: _Work) -> list[StepResult]:
    """The results of the steps in order; fewer when time is up."""
    results: list[StepResult] = []
    try:
        for place in range(len(work.tests.steps)):
            if time.monotonic() > work.deadline:
                break
            results.append(_step(work, place))
    finally:
        for session in work.sessions.values():
            session.close()
    return results


def _step(work: _Work, place: int) -> StepResult:
    step, splits = work.tests.steps[place], work.splits[place]
    if not work.code[place]:
        return StepResult(status="no_python_code_block")
    session = _session(work, "program")
    imports = _modules(work.tests.dependencies)
    text = _program(work.tests.dependencies, work.code[: place + 1], splits)
    problem = solutions.load(session, text, bare=True, imports=imports)
    if problem is not None:
        return StepResult(status="compile_error", message=problem)
    ran = solutions.run(session, "", timeout_s=work.step_s, most_bytes=VALUE_BYTES)
    lines = ran.output.decode("utf-8", "replace").splitlines()
    if ran.status != "ok":
        _check_libraries(work, imports)
        test = len(lines) if splits and ran.status == "runtime_error" else None
        return StepResult(status=ran.status, test=test, message=ran.message)
    if len(lines) != len(splits):
        return StepResult(status="runtime_error", message="the program ended before its tests did")
    return _compare(work, step, splits, lines) if splits else StepResult(status="passed")


def _program(dependencies: str, code: Sequence[str], splits: Sequence[SplitTest]) -> str:
    """The program of a step: what keeps values, the problem's imports, all code so far, what its tests compute."""
    parts = [_inside("keeping"), dependencies, *code]
    for each in splits:
        parts += [each.beside, "_srbench.tell()"]
    return "\n".join(parts)


def _compare(work: _Work, step: Step, splits: Sequence[SplitTest], lines: Sequence[str]) -> StepResult:
    """Runs the assertions over the values in `lines`, in the sandbox that knows the targets."""
    session = _session(work, "comparison")
    imports = (*_COMPARING, *_modules(work.tests.dependencies))
    problem = solutions.load(session, _inside("comparing_inside"), bare=True, imports=imports)
    if problem is not None:
        raise Unreachable("SANDBOX_FAILED", f"the sandbox cannot compare values: {problem}")
    asked: dict[str, Json] = {
        "step": step.number,
        "dependencies": work.tests.dependencies,
        "tests": [{"helpers": each.helpers, "check": each.check} for each in splits],
        "values": list(lines),
        "targets": base64.b64encode(work.targets[step.number]).decode(),
    }
    ran = solutions.run(session, json.dumps(asked), timeout_s=COMPARE_S, most_bytes=PROBLEM_BYTES)
    if ran.status != "ok":
        _check_libraries(work, imports)
        # Values that cannot be compared within the sandbox's bounds are not the expected ones.
        return StepResult(status="wrong_answer", message=f"the values could not be compared: {ran.status}")
    said = json.loads(ran.output)
    if said[-1] != "passed":
        message = "" if said[-1] == "failed" else f"comparing the value gave {said[-1].removeprefix('error ')}"
        return StepResult(status="wrong_answer", test=len(said) - 1, message=message)
    return StepResult(status="passed")


def _check_libraries(work: _Work, imports: Sequence[str]) -> None:
    """Raises `Unreachable` (`NO_LIBRARIES`) when it is the sandbox that lacks something, not the program that is wrong."""
    session = _session(work, "comparison")
    text = "\n".join((*(f"import {name}" for name in imports), work.tests.dependencies))
    if solutions.load(session, text, bare=True) is None:
        ran = solutions.run(session, "", timeout_s=COMPARE_S, most_bytes=PROBLEM_BYTES)
        if ran.status == "ok":
            return
        said = ran.message.strip().splitlines()
        raise Unreachable("NO_LIBRARIES", f"the sandbox cannot import what the problem needs: {said[-1] if said else ''}")


def _session(work: _Work, purpose: str) -> Session:
    """The sandbox for `purpose`; a new one when what ran in it ended it."""
    found = work.sessions.get(purpose)
    if found is None or not found.alive:
        if found is not None:
            found.close()
        found = work.sessions[purpose] = work.session()
    return found


def _modules(dependencies: str) -> tuple[str, ...]:
    """The modules that a problem imports, to be imported before programs are started."""
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(dependencies)):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module:
            found[node.module] = None
    return tuple(found)


def _inside(name: str) -> str:
    return (resources.files("srbench_grader.sandbox") / f"{name}.py").read_text()


GRADER = Grader(name="scicode", version=VERSION, run=run)
