"""Judges programs by running them on a case's tests: LiveCodeBench's problems, standard input or one function."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_grader import solutions
from srbench_grader.code_blocks import program_in
from srbench_grader.grading import PARSED, UNPARSED, Case, Grader, Grading, Submission
from srbench_grader.hidden_tests import IoTests, io_tests
from srbench_grader.solutions import Solved
from srbench_grader.workshop import Workshop

VERSION = "sr-bench-code-v2"
TEST_TIMEOUT_S = 6.0
# Without an option all tests together have what upstream gives them, at least and at most these.
LEAST_GRADE_S, MOST_GRADE_S = 300.0, 1800.0
MAX_KEPT_CHARS = 20_000


async def run(submission: Submission, case: Case, workshop: Workshop) -> Grading:
    """Judges the program in an answer: right when every test passes. An answer without a program is wrong.

    Raises: `InvalidInput` (`BAD_TESTS`, `BAD_OPTION`), `NotFound` (`NO_HIDDEN_TESTS`), `Unreachable` (`NO_SANDBOX`,
    `SANDBOX_FAILED`): failures to grade, never wrong answers.
    """
    code = await workshop.apart.read(program_in, submission.text)
    if code is None:
        return Grading(correct=False, status=UNPARSED, details={"reason": "no_python_code_block"})
    tests = io_tests(await workshop.hidden(case), case.case_id)
    if tests.function:
        code = await workshop.apart.read(program_in, submission.text, tests.function) or code
    test_s = seconds(case.options, "test_timeout_s", TEST_TIMEOUT_S)
    usual_s = min(max((test_s + 1) * len(tests.tests) + 5, LEAST_GRADE_S), MOST_GRADE_S)
    grade_s = seconds(case.options, "grade_timeout_s", usual_s)

    def work() -> tuple[Solved, str]:
        return _solve(code, tests, case.options, workshop, test_s, grade_s)

    solved, identity = await workshop.work(work)
    details: dict[str, Json] = {
        "tests_passed": solved.tests_passed,
        "tests_total": solved.test_count,
        "sandbox": identity,
    }
    if solved.status == "grade_time_limit":
        return Grading(
            correct=None, status=PARSED, details=details, failure_reason="GRADE_TIMEOUT", failure_message=solved.message
        )
    if not solved.passed:
        details |= {"reason": solved.status, "failed_test": solved.test, "message": solved.message}
    return Grading(correct=solved.passed, status=PARSED, extracted=code[:MAX_KEPT_CHARS], details=details)


def _solve(
    code: str, tests: IoTests, options: Mapping[str, Json], workshop: Workshop, test_s: float, grade_s: float
) -> tuple[Solved, str]:
    with closing(workshop.ready_session(options)) as session:
        solved = solutions.solve(session, code, tests, test_timeout_s=test_s, grade_timeout_s=grade_s)
    return solved, workshop.sandbox(options).identity


def seconds(options: Mapping[str, Json], name: str, default: float) -> float:
    """An option in seconds. Raises: `InvalidInput` (`BAD_OPTION`)."""
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise InvalidInput("BAD_OPTION", f"{name} is {value!r}; expected seconds above 0")
    return float(value)


GRADER = Grader(name="code", version=VERSION, run=run)
