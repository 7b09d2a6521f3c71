"""A runner's process: started with a clean environment, watched for time and size, ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from srbench_executor.harness.runners import SCRIPTS, Runner

WATCH_S = 0.1
# A runner that is told to end has this long to remove its containers.
GRACE_S = 15.0
MAX_FILES = 20_000
# No model keys and no service tokens: nothing passes but what a program needs to run, and the way to a Docker engine.
PASSED = (
    *("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_CONTEXT"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where an attempt lives: `kept` stays (artifacts and log), `work` goes with the attempt."""

    work: Path
    kept: Path

    @property
    def input(self) -> Path:
        """The input file."""
        return self.work / "input.json"

    @property
    def result(self) -> Path:
        """The result file."""
        return self.work / "result.json"

    @property
    def log(self) -> Path:
        """What the runner said."""
        return self.kept / "harness.log"


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a runner was ended."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a runner ended: its exit code, and why it was ended where it did not end by itself."""

    code: int
    stop: Stop | None


def environment(runner: Runner, folders: Folders) -> dict[str, str]:
    """The environment of a runner."""
    found = {name: value for name in PASSED if (value := os.environ.get(name))}
    docker = Path.home() / ".docker"
    if "DOCKER_CONFIG" not in found and docker.is_dir():
        found["DOCKER_CONFIG"] = str(docker)
    home = folders.work / "home"
    return found | {
        "HOME": str(home),
        "TMPDIR": str(folders.work / "tmp"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        f"SR_BENCH_{runner.variable}_ROOT": str(runner.root()),
    }


async def run(
    runner: Runner, folders: Folders, *, deadline: float, max_bytes: int, stopped: Callable[[], Stop | None]
) -> Exit:
    """Runs `runner` to its end, or until `stopped` gives a reason, the deadline passes or it has written too much.

    Raises: `OSError` when it cannot be started.
    """
    for name in ("home", "tmp"):
        (folders.work / name).mkdir(mode=0o700)
    command = [sys.executable, "-I", str(SCRIPTS / "launch.py"), str(os.getpid()), str(max_bytes), str(GRACE_S)]
    command += [str(runner.python()), str(runner.script), str(folders.input), str(folders.result)]
    process = _start(command, folders, environment(runner, folders))
    stop: Stop | None = None

    def late() -> Stop | None:
        # One that has left its result while this process stood still did so in time, for all that is known.
        ended = process.poll() is not None and folders.result.exists()
        if ended or time.monotonic() < deadline:
            return None
        return Stop("deadline_exceeded", "the harness did not come to an end within the time of the case")

    try:
        while stop is None and process.poll() is None:
            await asyncio.sleep(WATCH_S)
            stop = stopped() or await _too_much(folders, max_bytes) or late()
        stop = stop or late()
    finally:
        code = await _end(process)
    return Exit(code=code, stop=stop)


def _start(command: list[str], folders: Folders, found: dict[str, str]) -> subprocess.Popen[bytes]:
    """Starts the launcher from this thread: the kernel tells it of the death of the thread that started it.

    `subprocess` makes no copy of this process (it uses vfork), which gRPC's threads would not survive.
    """
    with folders.log.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folders.work,
            env=found,
            start_new_session=True,
        )


async def _too_much(folders: Folders, max_bytes: int) -> Stop | None:
    size, files = await asyncio.to_thread(usage, folders.kept)
    if size >= max_bytes:
        return Stop("artifact_bytes_limit", f"the harness wrote {max_bytes} bytes of artifacts and output or more")
    if files > MAX_FILES:
        return Stop("artifact_bytes_limit", f"the harness wrote more than {MAX_FILES} files")
    return None


async def _end(process: subprocess.Popen[bytes]) -> int:
    """Ends the launcher, which ends all else; one that does not within its grace is killed with its group."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_S + 10
        while process.poll() is None and time.monotonic() < until:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(WATCH_S)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


def usage(folder: Path) -> tuple[int, int]:
    """The bytes and the number of files below `folder`; links are counted, not followed."""
    size = files = 0
    waiting = [folder]
    while waiting and files <= MAX_FILES:
        with contextlib.suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    with contextlib.suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_size
    return size, files
