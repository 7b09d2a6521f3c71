"""What runners need on this machine and what of it is there. Blocking; sends nothing to a model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grpc import aio
from srbench.v1 import setup_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit import wire

from srbench_executor.harness.runners import Runner

LOOK_S, REPORT_S, RETRY_S = 15.0, 3.0, 0.5
TIMEOUT_S = 20.0
RPC_TIMEOUT_S = 10.0
PREFIX = "harness:"
# Says which of the modules named are not there, without importing any of them.
_PROBE = "import sys, importlib.util as u; print(' '.join(m for m in sys.argv[1:] if u.find_spec(m) is None))"
_log = logging.getLogger(__name__)


class Inspector:
    """Looks at the runners now and then, and tells the planner."""

    def __init__(self, stub: WorkQueueServiceStub, executor_id: str, runners: Mapping[str, Runner]) -> None:
        self._stub = stub
        self._executor_id = executor_id
        self._runners = runners
        self._usable: frozenset[str] = frozenset()
        self._looked = asyncio.Event()
        self._some = asyncio.Event()

    @property
    def drivers(self) -> list[str]:
        """The drivers that the runners which lack nothing make."""
        return [f"{PREFIX}{name}" for name in self._usable]

    async def first_look(self) -> None:
        """Waits until the runners have been looked at."""
        await self._looked.wait()

    async def any_usable(self) -> None:
        """Waits until a runner lacks nothing."""
        await self._some.wait()

    async def run(self) -> None:
        """Looks and reports until cancelled. It reports more often than it looks: a planner that was started again has
        forgotten all."""
        while True:
            seen = self._marks()
            setups = await asyncio.to_thread(lambda: [inspect(runner) for runner in self._runners.values()])
            self._usable = frozenset(setup.runner for setup in setups if all(item.present for item in setup.items))
            (self._some.set if self._usable else self._some.clear)()
            self._looked.set()
            until = time.monotonic() + LOOK_S
            # What is being installed is looked at as soon as it changes.
            while time.monotonic() < until and self._marks() == seen:
                heard = await self._report(setups)
                await asyncio.sleep(REPORT_S if heard else RETRY_S)

    def _marks(self) -> list[int]:
        """When the places of the runners' files last changed; cheap, as a look is not."""
        places = [place for runner in self._runners.values() for place in (runner.python(), runner.root())]
        places += [found for runner in self._runners.values() for found in _packages(runner)]
        return [place.stat().st_mtime_ns if place.exists() else 0 for place in places]

    async def _report(self, setups: Sequence[pb.RunnerSetup]) -> bool:
        request = queue_pb.ReportRunnersRequest(executor_id=self._executor_id, runners=setups)
        request.variable_digests.extend(
            hashlib.sha256(name.encode()).hexdigest() for name, value in os.environ.items() if value
        )
        try:
            await self._stub.ReportRunners(request, timeout=RPC_TIMEOUT_S)  # type: ignore[misc]
        except aio.AioRpcError as error:
            _log.warning("the planner did not hear of the runners: %s", wire.to_error(error).message)
            return False
        return True


def _packages(runner: Runner) -> list[Path]:
    """The folders of an environment that change when packages come into it."""
    return sorted(runner.python().parents[1].glob("lib/python*/site-packages"))


def inspect(runner: Runner) -> pb.RunnerSetup:
    """What `runner` needs and what of it is there."""
    items = [_interpreter(runner)]
    if runner.root_holds:
        items.append(_root(runner))
    if runner.containers:
        items.append(_containers())
    return pb.RunnerSetup(runner=runner.name, items=items)


def _interpreter(runner: Runner) -> pb.SetupItem:
    python = runner.python()
    named = f"set SR_BENCH_{runner.variable}_PYTHON to an interpreter"
    item = pb.SetupItem(item="interpreter", remedy=f"{runner.install}, or {named}" if runner.install else named)
    if not (python.is_file() and os.access(python, os.X_OK)):
        item.detail = f"there is no interpreter {python}"
        return item
    code, said = _run([str(python), "-I", "-c", _PROBE, *runner.modules])
    if code:
        item.detail = f"{python} does not run: {said[-300:]}"
    elif said.strip():
        item.detail = f"{python} cannot import {', '.join(said.split())}"
    else:
        item.present, item.detail, item.remedy = True, str(python), ""
    return item


def _root(runner: Runner) -> pb.SetupItem:
    root = runner.root()
    missing = [name for name in runner.root_holds if not (root / name).exists()]
    if root.is_dir() and not missing:
        return pb.SetupItem(item="harness_root", present=True, detail=str(root))
    what = f"{root} has no {', '.join(missing)}" if root.is_dir() else f"there is no folder {root}"
    named = f"set SR_BENCH_{runner.variable}_ROOT to the checkout"
    return pb.SetupItem(
        item="harness_root", detail=what, remedy=f"{runner.install}, or {named}" if runner.install else named
    )


def _containers() -> pb.SetupItem:
    item = pb.SetupItem(item="containers", remedy="install and start Docker on the executor's machine")
    docker = shutil.which("docker")
    if docker is None:
        item.detail = "there is no docker command"
        return item
    code, said = _run([docker, "version", "--format", "{{.Server.Version}}"])
    if code:
        item.detail = f"the Docker engine does not answer: {said.strip()[-300:]}"
    else:
        item.present, item.detail, item.remedy = True, f"Docker engine {said.strip()}", ""
    return item


def _run(command: list[str], run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> tuple[int, str]:
    """The exit code and what was said; a command that cannot be run or hangs has failed."""
    try:
        done = run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=Path("/"))
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr or done.stdout
