"""A control group for one sandbox, version 1 or 2, where this process may make one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from srbench_kit.errors import Unreachable
from srbench_kit.ids import uuid7_hex

from srbench_grader.sandbox.limits import Limits

ROOT = Path("/sys/fs/cgroup")
PREFIX = "srbench-"
_PERIOD_US = 100_000
_TRIES, _PAUSE_S = 4000, 0.005


def usable(root: Path = ROOT) -> bool:
    """Whether control groups with the controllers that are needed can be made here."""
    return all(os.access(folder, os.W_OK) for folder in _parents(root)) if _parents(root) else False


def _parents(root: Path) -> list[Path]:
    if (root / "cgroup.controllers").is_file():
        have = set((root / "cgroup.subtree_control").read_text().split())
        return [root] if {"memory", "pids", "cpu"} <= have else []
    found = [root / name for name in ("memory", "pids", "cpu")]
    return found if all((folder / "cgroup.procs").is_file() for folder in found) else []


class Cgroup:
    """A group that exists until `remove`; `procs` are the files into which its first process writes itself."""

    def __init__(self, limits: Limits, root: Path = ROOT) -> None:
        name = f"{PREFIX}{os.getpid()}-{uuid7_hex()}"
        self._folders: list[Path] = []
        quota = str(int(limits.cpus * _PERIOD_US))
        second = (root / "cgroup.controllers").is_file()
        values: dict[str, dict[str, str]] = {
            "memory": {"memory.limit_in_bytes": str(limits.memory_bytes)},
            "pids": {"pids.max": str(limits.process_count)},
            "cpu": {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota},
        }
        if second:
            settings = {"memory.max": str(limits.memory_bytes), "memory.swap.max": "0"}
            settings |= {"pids.max": str(limits.process_count), "cpu.max": f"{quota} {_PERIOD_US}"}
            values = {"": settings}
        try:
            for controller, settings in values.items():
                folder = root / controller / name
                folder.mkdir()
                self._folders.append(folder)
                for key, value in settings.items():
                    self._set(folder / key, value)
        except OSError as error:
            self.remove()
            raise Unreachable("SANDBOX_FAILED", f"no control group can be made: {error.strerror}") from error

    def _set(self, file: Path, value: str) -> None:
        # Kernels without accounting of swap have no such file.
        if file.exists() or file.name != "memory.swap.max":
            file.write_text(value)

    @property
    def procs(self) -> list[str]:
        """The files that a process joins the group by."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def kill(self) -> None:
        """Ends every process in the group, daemons included, until none is left."""
        for _ in range(_TRIES):
            left = {int(number) for folder in self._folders for number in _read(folder / "cgroup.procs").split()}
            if not left:
                return
            for number in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(_PAUSE_S)

    def remove(self) -> None:
        """Ends what is left and removes the group."""
        self.kill()
        for folder in self._folders:
            for _ in range(_TRIES):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    # The kernel lets go of a dead process's group a moment later.
                    time.sleep(_PAUSE_S)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
