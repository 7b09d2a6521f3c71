"""Small evaluations for tests: manifests over inline questions, and waiting for runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit.values import Json, to_value

from tests.e2e.processes import Processes

PRICE: dict[str, Json] = {"input": 1, "cached_input": 0.1, "cache_write": 1, "output": 2}
T = TypeVar("T")
TERMINAL = ("completed", "failed", "cancelled", "interrupted")


def question(number: int) -> dict[str, Json]:
    """One multiple-choice case; the answer is A."""
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "messages": [{"role": "user", "content": f"Question {number}?\n\nA. yes\nB. no\n\nReply with the letter."}],
        "answer": "A",
        "choices": ["yes", "no"],
        "metadata": {"stratum": "math", "split": "dev"},
    }


def target(name: str, base_url: str, **more: Json) -> dict[str, Json]:
    """A single, priced target whose model has its name."""
    return {"id": name, "kind": "single", "model": name, "base_url": base_url, "prices": {name: dict(PRICE)}} | more


def manifest(cases: int, targets: list[dict[str, Json]], *, first: int = 0, **limits: Json) -> dict[str, Json]:
    """A manifest over `cases` questions, from number `first` on."""
    given: list[Json] = [question(number) for number in range(first, first + cases)]
    wanted: list[Json] = list(targets)
    bounds: dict[str, Json] = {"max_cost_usd": 1, "max_output_tokens": 64} | limits
    return {"version": "sr-bench-1.0", "name": "test", "cases": given, "targets": wanted, "limits": bounds}


def patient(method: Callable[..., T], request: Any) -> T:
    """The answer to a read, asked again while its service is being started again: a kill may cut the very call."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return method(request, timeout=60)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def prepared(processes: Processes, benchmark: str, profile: str, source: str, revision: str) -> planner.Dataset:
    """The dataset of `benchmark` that is made of the file or folder `source`."""
    with processes.planner() as stub:
        request = planner.CreateDatasetPreparationRequest(
            benchmarks=[benchmark], profile=profile, source_path=source, revision=revision
        )
        job = stub.CreateDatasetPreparation(request)
        deadline = time.monotonic() + 60
        while job.status not in ("completed", "failed") and time.monotonic() < deadline:
            time.sleep(0.1)
            job = stub.GetDatasetPreparation(planner.GetDatasetPreparationRequest(id=job.id))
        assert job.status == "completed", job
        return stub.GetDataset(planner.GetDatasetRequest(id=job.dataset.id))


def start(processes: Processes, document: dict[str, Json], key: str = "key") -> str:
    """Starts a run and gives its id."""
    with processes.planner() as stub:
        request = planner.CreateRunRequest(manifest=to_value(document), idempotency_key=key)
        # Safe to ask again: the key names the run.
        return str(patient(stub.CreateRun, request).id)


def finish(processes: Processes, run_id: str, timeout_s: float = 90) -> planner.Run:
    """The run once it has ended."""
    deadline = time.monotonic() + timeout_s
    with processes.planner() as stub:
        while True:
            run = patient(stub.GetRun, planner.GetRunRequest(id=run_id, summary=True))
            if run.status in TERMINAL:
                return run
            if time.monotonic() > deadline:
                logs = {path.name: path.read_text()[-1500:] for path in processes.store.glob("*.log")}
                raise TimeoutError(f"the run is still {run.status}: {run.progress} {logs}")
            time.sleep(0.05)


def cells(processes: Processes, run_id: str) -> list[Any]:
    """All cells of a run."""
    with processes.planner() as stub:
        return list(patient(stub.ListCells, planner.ListCellsRequest(run_id=run_id, page_size=1000)).cells)


def calls(processes: Processes, run_id: str, *, active: bool = False) -> list[Any]:
    """The calls of a run."""
    with processes.accounting() as stub:
        request = accounting.ListCallsRequest(run_id=run_id, page_size=500, active=active)
        return list(patient(stub.ListCalls, request).calls)


def outcomes(processes: Processes, run_id: str) -> list[Any]:
    """The outcomes of a run."""
    with processes.accounting() as stub:
        request = accounting.ListOutcomesRequest(run_id=run_id, page_size=500)
        return list(patient(stub.ListOutcomes, request).results)


def spend(processes: Processes, run_id: str) -> Any:
    """The run's money."""
    with processes.accounting() as stub:
        return patient(stub.GetSpend, accounting.GetSpendRequest(run_id=run_id))


def report(processes: Processes, run_id: str) -> Any:
    """The run's report."""
    with processes.accounting() as stub:
        return stub.GetReport(accounting.GetReportRequest(run_id=run_id), timeout=60)
