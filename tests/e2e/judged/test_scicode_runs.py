"""Problems in steps through the real processes, and kills between their steps: no step is ever sent twice."""

from __future__ import annotations

import collections
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest
from srbench.v1 import accounting_service_pb2 as facts
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import setup_pb2
from srbench_grader.sandbox.selection import PREPARED
from srbench_kit.values import object_of, to_value

from tests.e2e import evaluations
from tests.e2e.answering import Answering, answering
from tests.e2e.processes import Processes

pytestmark = pytest.mark.e2e
PRICES = {"subject": {"input": 1, "cached_input": 0.5, "cache_write": 1, "output": 10}}
CALL_COST = 200 * 10**6
STEPS = 3


class Model(Answering):
    """Writes the function that a step asks for."""

    def say(self, asked: dict[str, Any]) -> str:
        header = asked["messages"][-1]["content"].split("```python\n")[1].split("\n")[0]
        factor = 0 if header.startswith("def wrong") else 2
        return f"```python\n# Background: none.\n{header}\n    return {factor} * x\n```"


@pytest.fixture
def model() -> Iterator[str]:
    with answering(Model) as url:
        yield url


def problem(number: int) -> dict[str, Any]:
    names = [f"part{number}_{step}" for step in range(1, STEPS + 1)]
    if number % 2 == 0:
        names[1] = f"wrong{number}"
    return {
        "problem_name": f"Problem_{number}",
        "problem_id": str(number),
        "required_dependencies": "import numpy as np",
        "sub_steps": [
            {
                "step_number": f"{number}.{step}",
                "step_description_prompt": f"Problem {number}: double it, part {step}.",
                "function_header": f"def {name}(x):\n    '''Twice x.'''",
                "test_cases": [f"assert np.allclose({name}(np.array([{step}.0, 7.5])), target)"],
                "return_line": "    return y",
            }
            for step, name in enumerate(names, 1)
        ],
    }


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """Task file and targets; the environment of the processes."""
    rows = [problem(number) for number in range(1, 24)]
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with h5py.File(tmp_path / "test_data.h5", "w") as file:
        for row in rows:
            for step in range(1, STEPS + 1):
                file[f"{row['problem_id']}.{step}/test1/var1"] = [2.0 * step, 15.0]
    return {
        "SR_BENCH_SANDBOX": "bwrap",
        "SR_BENCH_SANDBOX_PYTHON": PREPARED,
        "SR_BENCH_HOME": str(tmp_path / "home"),
        "SR_BENCH_SCICODE_TEST_DATA": str(tmp_path / "test_data.h5"),
    }


def run(processes: Processes, folder: Path, url: str) -> tuple[str, Any]:
    dataset = evaluations.prepared(processes, "scicode", "quick", str(folder / "problems.jsonl"), "synthetic")
    sha256 = hashlib.sha256((folder / "test_data.h5").read_bytes()).hexdigest()
    subject = {"id": "subject", "kind": "single", "model": "subject", "base_url": url, "prices": PRICES}
    manifest = {
        "version": "sr-bench-1.0",
        "dataset": {"id": dataset.id},
        "targets": [subject],
        "benchmark_options": {"scicode": {"test_data_sha256": sha256, "test_timeout_s": 30}},
        "profile": "quick",
    }
    with processes.planner() as planner:
        started = planner.CreateRun(pb.CreateRunRequest(manifest=to_value(manifest), idempotency_key="k"))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with processes.planner() as planner:
            found = planner.GetRun(pb.GetRunRequest(id=started.id, summary=True))
        if found.status not in ("queued", "running"):
            return found.id, found
        time.sleep(0.2)
    raise TimeoutError("the run did not end")


def calls(processes: Processes, run_id: str) -> list[Any]:
    with processes.accounting() as accounting:
        return list(accounting.ListCalls(facts.ListCallsRequest(run_id=run_id, page_size=100)).calls)


def test_each_step_is_a_metered_call_and_a_problem_is_right_when_all_steps_are(
    tmp_path: Path, model: str, data: dict[str, str]
) -> None:
    processes = Processes(tmp_path / "store", env=data)
    processes.start()
    try:
        run_id, found = run(processes, tmp_path, model)
        made = calls(processes, run_id)
        with processes.accounting() as accounting:
            outcomes = accounting.ListOutcomes(facts.ListOutcomesRequest(run_id=run_id, page_size=100)).results
            report = accounting.GetReport(facts.GetReportRequest(run_id=run_id))
    finally:
        processes.stop()
    assert found.status == "completed"
    ordinals = collections.Counter(call.ordinal for call in made)
    assert ordinals == {0: 3, 1: 3, 2: 3}
    assert {call.cost_picodollars for call in made} == {CALL_COST}
    for outcome in outcomes:
        number = int(outcome.case_id.partition("/")[2])
        details: Any = object_of(outcome.details)
        assert outcome.correct is (number % 2 == 1), details
        assert details["steps_passed"] == (3 if number % 2 else 2)
        assert outcome.cost_picodollars == STEPS * CALL_COST
    (metrics,) = report.summary.targets
    assert metrics.cost_picodollars == 9 * CALL_COST
    assert metrics.total == 3
    longest = max(Model.requests, key=lambda asked: len(asked["messages"]))
    roles = [message["role"] for message in longest["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("point", "interrupted"),
    [("after_settle@2", 0), ("before_outcome@1", 0), ("after_dispatch@2", 1)],
    ids=["between two steps", "after all steps", "in a step"],
)
def test_a_kill_between_steps_sends_no_step_twice(
    tmp_path: Path, model: str, data: dict[str, str], point: str, interrupted: int
) -> None:
    processes = Processes(tmp_path / "store", env=data, crash={"executor": f"executor.{point}"})
    processes.start()
    try:
        run_id, found = run(processes, tmp_path, model)
        made = calls(processes, run_id)
    finally:
        processes.stop()
    assert processes.crashed("executor"), f"{point} was never reached"
    asked = collections.Counter(json.dumps(request["messages"]) for request in Model.requests)
    assert set(asked.values()) == {1}, "a step was sent twice"
    assert len({(call.case_id, call.ordinal) for call in made}) == len(made)
    assert len(asked) <= len(made)
    assert found.status == ("interrupted" if interrupted else "completed")
    if not interrupted:
        assert len(asked) == len(made) == 9


def test_what_scicode_lacks_is_said_at_once_and_setup_tells_how_to_mend_it(
    tmp_path: Path, model: str, data: dict[str, str]
) -> None:
    data |= {"SR_BENCH_SANDBOX_PYTHON": "/usr/bin/python3", "SR_BENCH_SCICODE_TEST_DATA": str(tmp_path / "nothing.h5")}
    processes = Processes(tmp_path / "store", env=data)
    processes.start()
    try:
        with pytest.raises(Exception, match="2 things are missing") as caught:
            run(processes, tmp_path, model)
        with processes.planner() as planner:
            items = planner.InspectSetup(setup_pb2.InspectSetupRequest(benchmarks=["scicode"])).items
    finally:
        processes.stop()
    assert "scicode has no libraries" in str(caught.value)
    assert "scicode has no test data" in str(caught.value)
    assert [(item.item, item.present) for item in items] == [
        *(("sandbox", True), ("libraries", False), ("test_data", False))
    ]
    assert all(item.remedy for item in items if not item.present)
    assert Model.requests == []
