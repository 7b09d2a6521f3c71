"""One attempt of an agent benchmark's harness at a cell: a process of its own that asks models through the endpoint.

An attempt cannot be resumed: after a crash of the executor its calls stand, and the cell is interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.completion import dump_json
from srbench_kit.values import Json, fill_value, object_of

from srbench_executor.caller import Caller
from srbench_executor.grading import GradeStream
from srbench_executor.harness import containers, process
from srbench_executor.harness.attempt import Attempt, Gone
from srbench_executor.harness.endpoint import Endpoint
from srbench_executor.harness.inspecting import PREFIX
from srbench_executor.harness.process import Exit, Folders, Stop
from srbench_executor.harness.result import BadResult, Result, evidence, read_result
from srbench_executor.harness.runners import Runner
from srbench_executor.judging import judged
from srbench_executor.request import chat_messages
from srbench_executor.verdicts import of_call, of_refusal
from srbench_executor.work import Cell, Verdict

INPUT_SCHEMA = "sr-bench-harness-input-v1"
OVER = Gone("attempt_over", "the attempt has ended")
# Refusals after which a harness that came to an end all the same has a result to be graded.
_CAPS = frozenset({"CALL_LIMIT"})
_LOG_TAIL = 300
_log = logging.getLogger(__name__)


class HarnessDriver:
    """Runs harnesses. `folder` holds what attempts write, `executor_id` marks their containers."""

    def __init__(self, endpoint: Endpoint, runners: Mapping[str, Runner], folder: Path, executor_id: str) -> None:
        self._endpoint = endpoint
        self._runners = runners
        self._folder = folder
        self._executor_id = executor_id

    async def sweep(self) -> None:
        """Removes what attempts of an earlier process left: work folders with dead tokens, containers, networks."""
        await asyncio.to_thread(shutil.rmtree, self._folder / "work", True)
        if any(runner.containers for runner in self._runners.values()):
            await containers.remove(containers.EXECUTOR_LABEL, self._executor_id)

    async def answer(self, cell: Cell, caller: Caller, grader: GradeStream) -> Verdict:
        """Runs the harness once and has its result judged."""
        assert cell.run is not None
        name = cell.lease.driver.removeprefix(PREFIX)
        runner = self._runners.get(name)
        if runner is None:
            return _failed("internal_error", f"this executor has no runner named {name!r}")
        attempt = Attempt(cell, cell.run, caller, runner.roles)
        folders = self._folders(cell)
        try:
            await self._endpoint.admit(attempt)
            self._write_input(cell, runner, attempt, folders)
            ended = await process.run(
                runner,
                folders,
                deadline=attempt.deadline,
                max_bytes=cell.run.limits.max_log_bytes,
                stopped=lambda: _stop_of(attempt),
            )
            result = _result(ended, folders)
        except OSError as error:
            return _failed("harness_failed", f"the harness cannot be started: {error.strerror or error}")
        finally:
            await self._endpoint.dismiss(attempt, OVER)
            await self._clean(runner, attempt, folders)
        verdict = _decided(attempt, ended, result, folders)
        if verdict is not None:
            return verdict
        assert isinstance(result, Result)
        graded = await judged(cell, caller, grader, [evidence(result)], attempt.call_count)
        return _with_facts(graded, attempt, result, folders, self._folder)

    def _folders(self, cell: Cell) -> Folders:
        place = Path(cell.lease.run_id) / f"{cell.lease.cell}-{cell.lease.token}"
        folders = Folders(work=self._folder / "work" / place, kept=self._folder / "artifacts" / place)
        for folder in (folders.work, folders.kept):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)
        return folders

    def _write_input(self, cell: Cell, runner: Runner, attempt: Attempt, folders: Folders) -> None:
        run, lease = attempt.run, cell.lease
        labels = {
            containers.EXECUTOR_LABEL: self._executor_id,
            containers.ATTEMPT_LABEL: _attempt_name(cell),
        }
        found: dict[str, Json] = {
            "schema": INPUT_SCHEMA,
            "run_id": lease.run_id,
            "cell": lease.cell,
            "attempt": lease.token,
            "benchmark": lease.public_case.benchmark,
            "case_id": lease.public_case.case_id,
            "messages": chat_messages(lease.public_case.messages),
            "task": object_of(lease.task),
            "options": run.options.get(lease.public_case.benchmark, {}),
            "seed": run.context.seed,
            "root": str(runner.root()),
            "artifacts": str(folders.kept),
            "labels": dict(labels),
            "endpoints": {
                role: {"base_url": self._endpoint.base_url, "api_key": token, "model": role}
                for role, token in attempt.tokens.items()
            },
            "limits": {
                # What runs there has no other clock in common with this process.
                "deadline": time.time() + attempt.deadline - time.monotonic(),
                "max_calls": run.limits.max_calls_per_case,
                "max_output_tokens": run.limits.max_output_tokens,
                "call_timeout_s": run.limits.total_timeout_s,
                "artifact_bytes": run.limits.max_log_bytes,
            },
        }
        descriptor = os.open(folders.input, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(dump_json(found))

    async def _clean(self, runner: Runner, attempt: Attempt, folders: Folders) -> None:
        await asyncio.to_thread(shutil.rmtree, folders.work, True)
        with contextlib.suppress(OSError):
            folders.work.parent.rmdir()
        if runner.containers:
            await containers.remove(containers.ATTEMPT_LABEL, _attempt_name(attempt.cell))


def _attempt_name(cell: Cell) -> str:
    return f"{cell.lease.run_id}-{cell.lease.cell}-{cell.lease.token}"


def _stop_of(attempt: Attempt) -> Stop | None:
    """Why the runner is to be ended now: the cell was stopped, or no call of it can ever leave again."""
    cut = attempt.cell.stopped
    if cut is not None:
        return Stop(cut.reason, cut.message)
    if attempt.refused is not None and attempt.refused.reason not in _CAPS:
        return Stop(attempt.refused.reason.lower(), attempt.refused.message)
    return None


def _result(ended: Exit, folders: Folders) -> Result | Verdict:
    """The runner's result, or the verdict on a runner without one."""
    if ended.stop is not None:
        return _failed(ended.stop.reason, ended.stop.message)
    if ended.code:
        return _failed("harness_failed", f"the harness ended with {ended.code}; {_last_words(folders.log)}")
    try:
        return read_result(folders.result)
    except BadResult as error:
        return _failed("harness_result_invalid", str(error))


def _decided(attempt: Attempt, ended: Exit, result: Result | Verdict, folders: Folders) -> Verdict | None:
    """The verdict when something else than the result decides it: a stop, a refusal, a failed call; else `None`."""
    cut, refused, last = attempt.cell.stopped, attempt.refused, attempt.last
    if refused is not None and refused.reason == "ALREADY_DISPATCHED":
        return Verdict(state=queue_pb.CELL_STATE_INTERRUPTED, reason="executor_lost", message=refused.message)
    if cut is not None:
        return _stopped(attempt, cut.reason, cut.message)
    if refused is not None and refused.reason == "MISSING_KEY":
        return _failed("missing_key", refused.message)
    if refused is not None and not (
        refused.reason in _CAPS and isinstance(result, Result) and result.status == "completed"
    ):
        return of_refusal(refused, cut)
    if last is not None and last.status in (pb.CALL_STATUS_FAILED, pb.CALL_STATUS_NOT_ACCEPTED) and ended.stop is None:
        # What a harness makes of a model that could not be asked is no statement about the model.
        return of_call(last)
    if isinstance(result, Verdict):
        return result
    if result.status == "failed":
        return _failed(result.reason, attempt.run.redactor.text(result.message or f"the harness failed: {result.reason}"))
    return None


def _stopped(attempt: Attempt, reason: str, message: str) -> Verdict:
    if reason != "executor_lost":
        return Verdict(state=queue_pb.CELL_STATE_CANCELLED, reason=reason, message=message)
    if attempt.call_count:
        return Verdict(state=queue_pb.CELL_STATE_INTERRUPTED, reason=reason, message=message)
    # This executor is being stopped and has asked nobody anything: another one shall.
    return Verdict(state=queue_pb.CELL_STATE_QUEUED)


def _with_facts(verdict: Verdict, attempt: Attempt, result: Result, folders: Folders, folder: Path) -> Verdict:
    """`verdict` with what this process knows of the attempt."""
    if verdict.grade is None:
        return verdict
    kept: dict[str, Json] = {
        "calls": {role: count for role, count in attempt.counts.items() if count},
        "artifacts": str(folders.kept.relative_to(folder)),
    }
    trajectory = folders.kept / result.trajectory
    if result.trajectory and trajectory.is_file() and not trajectory.is_symlink():
        data = trajectory.read_bytes()
        kept["trajectory"] = result.trajectory
        kept["trajectory_sha256"], kept["trajectory_bytes"] = hashlib.sha256(data).hexdigest(), len(data)
    details = object_of(verdict.grade.details) | {"harness": kept}
    verdict.grade.ClearField("details")
    fill_value(verdict.grade.details, details)
    return verdict


def _last_words(log: Path) -> str:
    """The last line that the runner wrote."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
        if lines:
            return f"its last words: {lines[-1][-_LOG_TAIL:]}"
    return "it said nothing"


def _failed(reason: str, message: str) -> Verdict:
    return Verdict(state=queue_pb.CELL_STATE_FAILED, reason=reason, message=message)
