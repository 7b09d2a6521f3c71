"""What a plan must give harnesses, and what is known of the executors that run them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from srbench.v1 import setup_pb2 as pb
from srbench.v1 import work_queue_service_pb2
from srbench_kit.values import Json, object_of
from srbench_planner import harness_needs
from srbench_planner.benchmark import Harness
from srbench_planner.case_set import CaseSet
from srbench_planner.ports import HarnessNeeds
from srbench_planner.runner_book import FRESH_S, RunnerBook, digest_of

from tests.unit.planner.planner_doubles import Spec

CASES: list[dict[str, Json]] = [
    {"id": "x/a", "benchmark": "x", "metadata": {"s": 100}},
    {"id": "x/b", "benchmark": "x", "metadata": {"s": 900}},
]
LIMITS: dict[str, Json] = {"case_timeout_s": 1000, "max_run_seconds": 1800, "max_calls_per_case": 50}
HARNESS = Harness(
    runner="r", roles=("simulator",), needs=lambda facts: HarnessNeeds(case_timeout_s=float(facts["s"]), calls=50)
)  # type: ignore[arg-type]
SPEC = Spec(id="x", weight=0.1, driver="harness", harness=HARNESS)


def reasons(options: dict[str, Json], **limits: Json) -> list[str]:
    found = harness_needs.missing([SPEC], CASES, options, LIMITS | limits)
    return [f"{error.reason} {error.facts['field']}" for error in found]


def test_a_plan_that_gives_enough_lacks_nothing() -> None:
    assert reasons({"x": {"simulator": "s"}}) == []


def test_everything_that_is_too_small_is_said_at_once_and_names_the_case_that_needs_most() -> None:
    assert reasons({}, case_timeout_s=600, max_calls_per_case=32) == [
        "MISSING_FIELD benchmark_options.x.simulator",
        "BAD_FIELD limits.case_timeout_s",
        "BAD_FIELD limits.max_calls_per_case",
    ]
    (error,) = harness_needs.missing([SPEC], CASES, {"x": {"simulator": "s"}}, LIMITS | {"case_timeout_s": 600})
    assert "at least 900: x/b of x" in error.message


def test_an_agent_that_may_take_fewer_steps_needs_fewer_calls() -> None:
    assert reasons({"x": {"simulator": "s", "max_steps": 10}}, max_calls_per_case=10) == []


def test_a_lease_names_the_runner_and_holds_only_what_it_may_see() -> None:
    harness = Harness(runner="r", task_fields=("name", "digest"))
    case: dict[str, Json] = {
        "id": "x/a",
        "benchmark": "x",
        "messages": [{"role": "user", "content": "do"}],
        "metadata": {"name": "a", "digest": "d", "hidden_sha256": "h", "expected": 1},
    }
    cases = CaseSet("c", [case], {"x": Spec(id="x", weight=0.1, driver="harness", harness=harness)})
    lease = work_queue_service_pb2.Lease.FromString(cases.lease_payload(0))
    assert (cases.drivers(), lease.driver) == (["harness:r"], "harness:r")
    assert object_of(lease.task) == {"name": "a", "digest": "d"}


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def setup(runner: str, **present: bool) -> pb.RunnerSetup:
    return pb.RunnerSetup(runner=runner, items=[pb.SetupItem(item=name, present=there) for name, there in present.items()])


async def test_the_executor_that_lacks_least_speaks_for_all() -> None:
    book = RunnerBook(Clock())
    book.report("e1", [setup("r", interpreter=False, containers=False)])
    book.report("e2", [setup("r", interpreter=True, containers=False)])
    assert [(item.item, item.present, item.benchmark) for item in await book.inspect("r", "x")] == [
        ("interpreter", True, "x"),
        ("containers", False, "x"),
    ]


async def test_a_runner_that_no_live_executor_has_is_missing() -> None:
    clock = Clock()
    book = RunnerBook(clock)
    book.report("e1", [setup("r", interpreter=True)])
    (item,) = await book.inspect("other", "x")
    assert (item.item, item.present) == ("executor", False)
    clock.now = FRESH_S + 1
    book.report("e2", [])
    (item,) = await book.inspect("r", "x")
    assert (item.item, item.present) == ("executor", False)


async def test_keys_are_looked_for_in_all_live_executors_and_nothing_is_said_while_none_is_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("srbench_planner.runner_book.FIRST_WAIT_S", 0.01)
    clock = Clock()
    book = RunnerBook(clock)
    assert await book.unset(["A_KEY"]) == []
    book.report("e1", [], [digest_of("A_KEY")])
    book.report("e2", [], [digest_of("B_KEY")])
    assert await book.unset(["B_KEY", "A_KEY", "C_KEY", "C_KEY"]) == ["C_KEY"]
    clock.now = FRESH_S + 1
    book.report("e2", [], [digest_of("B_KEY")])
    assert await book.unset(["A_KEY", "B_KEY"]) == ["A_KEY"]
