"""What the executor knows of the runs it works for: their bounds and their targets, with secrets to send and to remove."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field

from srbench.v1 import plan_pb2, target_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit.redact import Redactor
from srbench_kit.values import Json, object_of

from srbench_executor.request import Endpoint, endpoint, parameters

TIMEOUT_S = 10.0
KEPT_RUNS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A target, ready to be called."""

    target: target_pb2.Target
    endpoint: Endpoint
    params: dict[str, Json]

    def key(self) -> str | None:
        """The bearer token, read from the environment now; empty when none is sent, `None` when it is missing."""
        name = self.target.api_key_env
        return os.environ.get(name) or None if name else ""


@dataclass(slots=True, kw_only=True)
class Run:
    """One run, constant but for its cells. `options`: the frozen options by benchmark."""

    context: queue_pb.RunContext
    subjects: list[Subject]
    auxiliary: dict[str, Subject]
    redactor: Redactor
    # When the run must be over, by this process's monotonic clock; infinite when its context says nothing.
    deadline: float
    options: dict[str, dict[str, Json]] = field(default_factory=dict)
    cells: set[object] = field(default_factory=set)

    @property
    def limits(self) -> plan_pb2.Limits:
        """The run's bounds."""
        return self.context.limits


def prepare(context: queue_pb.RunContext) -> Run:
    """Works out of a run's context what all its calls share."""
    sampling = object_of(context.sampling)

    def subject(target: target_pb2.Target) -> Subject:
        params = parameters(sampling, object_of(target.request_params))
        return Subject(target=target, endpoint=endpoint(target.base_url), params=params)

    every = [*context.targets, *context.auxiliary_targets]
    options = object_of(context.benchmark_options)
    names = {name for target in every for name in (target.api_key_env, target.preview_api_key_env) if name}
    return Run(
        context=context,
        subjects=[subject(target) for target in context.targets],
        auxiliary={target.id: subject(target) for target in context.auxiliary_targets},
        options={name: given for name, given in options.items() if isinstance(given, dict)},
        deadline=time.monotonic() + _left_s(context),
        redactor=Redactor([value for name in sorted(names) if (value := os.environ.get(name))]),
    )


def _left_s(context: queue_pb.RunContext) -> float:
    """What is left of the run's time; a planner of before tells only when it must be over."""
    if context.HasField("time_left"):
        return context.time_left.ToNanoseconds() / 1e9
    if context.HasField("deadline_time"):
        return context.deadline_time.ToNanoseconds() / 1e9 - time.time()
    return float("inf")


class RunBook:
    """Runs by id, fetched from the planner once each; of runs with no cell in hand the latest few are kept."""

    def __init__(self, stub: WorkQueueServiceStub) -> None:
        self._stub = stub
        self._runs: dict[str, asyncio.Task[Run]] = {}

    async def get(self, run_id: str) -> Run:
        """The run. Raises: `AioRpcError` of the planner, `InvalidInput` for a target that cannot be called."""
        task = self._runs.get(run_id)
        if task is None:
            task = self._runs[run_id] = asyncio.create_task(self._fetch(run_id))
            task.add_done_callback(lambda done: self._forget_failed(run_id, done))
            self._prune()
        if task.done() and not task.cancelled() and task.exception() is None:
            return task.result()
        # Shielded: one cell that is stopped must not take the answer from the others.
        return await asyncio.shield(task)

    async def _fetch(self, run_id: str) -> Run:
        context: queue_pb.RunContext = await self._stub.GetRunContext(  # type: ignore[misc]
            queue_pb.GetRunContextRequest(run_id=run_id), timeout=TIMEOUT_S
        )
        return prepare(context)

    def _forget_failed(self, run_id: str, task: asyncio.Task[Run]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._runs.pop(run_id, None)

    def _prune(self) -> None:
        for run_id, task in list(self._runs.items())[: max(0, len(self._runs) - KEPT_RUNS)]:
            if task.done() and not task.cancelled() and task.exception() is None and not task.result().cells:
                del self._runs[run_id]
